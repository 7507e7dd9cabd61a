/* SPDX-License-Identifier: MIT */
/* See publish.h. */

#include "broker/core/publish.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "proto/prompts/space.h"

#define COUNT_NS (50 * CLOCK_NS_PER_MS) /* between two counts of what a session has */

int publish_init(struct broker *broker, struct error *err)
{
    int r = fleet_secret_read(broker->options.fleet_secret, &broker->fleet_secret, err);
    if (r < 0)
        return error_prefix(err, r, "fleet-secret");
    if (routing_publish(&broker->routing, broker->fleet_secret.seed) < 0)
        return error_set(err, -ENOMEM, "out of memory");
    return 0;
}

static void refuse(struct broker *broker, struct session *session, enum message_kind of, uint64_t ref,
                   enum proto_error error, const char *text)
{
    struct message no = {.kind = MESSAGE_ERROR};
    no.error.of = of;
    no.error.ref = ref;
    no.error.error = error;
    no.error.text = bytes_of_string(text);
    client_link_send(&broker->client_link, session, &no);
}

/* ---- load ---- */

/* What its worker has, or will have, to do for it. */
static uint64_t left_of(const struct request *request)
{
    if (request->state == REQUEST_QUEUED)
        return request->prompt_tokens + request->decode;
    return (request->prefilled ? 0 : request->prefill) + request->decode;
}

static uint64_t own_load(struct session *session)
{
    const uint64_t now = clock_ns();
    if (session->load_ns != 0 && now - session->load_ns < COUNT_NS)
        return session->load;
    session->load_ns = now;
    session->load = 0;
    for (const struct request *request = session->requests; request; request = request->session_next)
        session->load += left_of(request);
    return session->load;
}

void publish_load(const struct broker *broker, struct session *session, struct message *pong)
{
    uint64_t kept = 0, n_serving = 0;
    pong->pong.load = broker->queue.tokens;
    pong->pong.own = own_load(session);
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        const struct worker *worker = &broker->workers[i];
        pong->pong.load += worker->load;
        if (!worker_is_serving(worker))
            continue;
        n_serving++;
        pong->pong.slots += worker->slots;
        kept += hit_estimate_expects(&worker->cached, 1000);
    }
    pong->pong.kept = n_serving > 0 ? (uint32_t)(kept / n_serving) : 0;
    pong->pong.draining = broker->draining;
}

/* ---- prefixes ---- */

static struct bytes bytes_of_hashes(uint64_t *hashes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hashes[i] = htole64(hashes[i]);
    return (struct bytes){hashes, n * sizeof *hashes};
}

static void tell_changes(const struct broker *broker, uint64_t from, struct prefixes_delta *delta,
                         struct message *ok)
{
    ok->prefixes_ok.next = prefixes_changes(&broker->routing.prefixes, from, PROTO_MAX_PIECES, delta);
    ok->prefixes_ok.added = bytes_of_hashes(delta->added, delta->n_added);
    ok->prefixes_ok.dropped = bytes_of_hashes(delta->dropped, delta->n_dropped);
}

/* Part of all, which take several answers. What changes meanwhile has the number `next` or a later one. */
static void tell_all(const struct broker *broker, uint64_t next, uint32_t at, uint64_t *hashes,
                     struct message *ok)
{
    size_t n;
    ok->prefixes_ok.begins = at == 0;
    ok->prefixes_ok.next = at == 0 ? broker->routing.prefixes.next_change : next;
    ok->prefixes_ok.at = prefixes_scan(&broker->routing.prefixes, at, PROTO_MAX_PIECES, hashes, &n);
    ok->prefixes_ok.added = bytes_of_hashes(hashes, n);
}

void publish_prefixes(struct broker *broker, struct session *session, const struct message *message)
{
    uint64_t added[PROTO_MAX_PIECES], dropped[PROTO_MAX_PIECES];
    struct prefixes_delta delta = {.added = added, .dropped = dropped};
    const uint64_t ref = message->prefixes.ref, next = message->prefixes.next;
    const struct bytes secret = message->prefixes.secret;
    char space[PROMPT_SPACE_BYTES];
    if (!broker->fleet_secret.text[0]) {
        refuse(broker, session, MESSAGE_PREFIXES, ref, PROTO_UNSUPPORTED,
               "prefixes: the pool has no --fleet-secret");
        return;
    }
    if (!fleet_secret_is(&broker->fleet_secret, secret.data, secret.len)) {
        refuse(broker, session, MESSAGE_PREFIXES, ref, PROTO_BAD_REQUEST,
               "prefixes: secret: not that of this pool's fleet");
        return;
    }
    struct message ok = {.kind = MESSAGE_PREFIXES_OK};
    ok.prefixes_ok.ref = ref;
    ok.prefixes_ok.boot = broker->supervisor.boot;
    ok.prefixes_ok.pieces = broker->routing.prefixes.n_had;
    prompt_space_base(broker->options.share_prefixes, session->key ? &session->client : NULL, session->near,
                      space);
    ok.prefixes_ok.space = bytes_of_string(space);
    const bool knows = message->prefixes.boot == broker->supervisor.boot &&
                       prefixes_remembers(&broker->routing.prefixes, next);
    if (knows && message->prefixes.at == 0)
        tell_changes(broker, next, &delta, &ok);
    else
        tell_all(broker, next, knows ? message->prefixes.at : 0, added, &ok);
    client_link_send(&broker->client_link, session, &ok);
}

/* ---- tenants ---- */

void publish_tenants(struct broker *broker, struct session *session, const struct message *message)
{
    static const struct id128 nobody;
    const struct id128 *client = session->key ? &session->client : &nobody;
    const uint64_t ref = message->tenants.ref;
    struct error reason = {{0}};
    struct tenant_use *sums;
    struct message ok = {.kind = MESSAGE_TENANTS_OK};
    if (session->key == 0 && !session->near) {
        refuse(broker, session, MESSAGE_TENANTS, ref, PROTO_BAD_REQUEST,
               "tenants: needs a client in the run directory, or with a key");
        return;
    }
    enum proto_error r = tellings_take(&broker->tellings, &session->id, client, &message->tenants.tenants,
                                       broker->now, &reason);
    if (r == PROTO_OK && tellings_sum(&broker->tellings, &session->id, client, broker->now, &sums,
                                      &ok.tenants_ok.tenants.n) < 0)
        r = error_set(&reason, PROTO_INTERNAL, "tenants: out of memory");
    if (r != PROTO_OK) {
        refuse(broker, session, MESSAGE_TENANTS, ref, r, reason.text);
        return;
    }
    ok.tenants_ok.ref = ref;
    ok.tenants_ok.tenants.items = sums;
    client_link_send(&broker->client_link, session, &ok);
    free(sums);
}
