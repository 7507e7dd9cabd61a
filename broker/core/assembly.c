/* SPDX-License-Identifier: MIT */
/* The parts of a generate, put behind one another. */

#include "broker/core/assembly.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "broker/books/record.h"
#include "common/amount.h"

enum state { OPEN, KNOWN, REFUSED };

struct assembly {
    struct id128 id;
    enum state state;
    uint32_t total, have;
    struct tenancy tenancy; /* told by its first part */
    struct record_room room;
    struct admission_hold hold;
    uint64_t until;
    struct session *session;
    struct assembly *prev, *next; /* broker->assemblies: the open ones */
};

/* ---- one that ends ---- */

/* Back to nobody; it stays known as what is passed over. */
static void give_back(struct broker *broker, struct assembly *assembly)
{
    if (assembly->state == OPEN) {
        DL_DELETE(broker->assemblies, assembly);
        admission_let_go(&broker->admission, &assembly->hold);
        record_room_give(broker->journal.vault, &assembly->room);
    }
    assembly->state = REFUSED;
}

void assembly_drop(struct broker *broker, struct session *session)
{
    if (!session->assembly)
        return;
    give_back(broker, session->assembly);
    free(session->assembly);
    session->assembly = NULL;
}

struct record_room *assembly_release(struct broker *broker, struct session *session)
{
    admission_let_go(&broker->admission, &session->assembly->hold);
    return &session->assembly->room;
}

bool assembly_is_of(const struct session *session, const struct tenancy *tenancy)
{
    const struct tenancy *told = &session->assembly->tenancy;
    return told->named == tenancy->named && memcmp(&told->id, &tenancy->id, sizeof told->id) == 0;
}

void assembly_cancel(struct broker *broker, struct session *session, const struct id128 *id)
{
    const struct assembly *assembly = session->assembly;
    if (assembly && assembly->state == OPEN && memcmp(&assembly->id, id, sizeof *id) == 0)
        give_back(broker, session->assembly);
}

void assembly_expire(struct broker *broker)
{
    struct assembly *assembly, *next;
    DL_FOREACH_SAFE(broker->assemblies, assembly, next)
    {
        struct error reason;
        if (assembly->until > broker->now)
            continue;
        error_set(&reason, PROTO_DEADLINE, "its parts took too long: %s of %s received",
                  amount_of_bytes(assembly->have).text, amount_of_bytes(assembly->total).text);
        struct message no = {.kind = MESSAGE_ERROR};
        no.error.of = MESSAGE_GENERATE;
        no.error.has_id = true;
        no.error.id = assembly->id;
        no.error.error = PROTO_DEADLINE;
        no.error.text = bytes_of_string(reason.text);
        broker->counters.rejected++;
        give_back(broker, assembly);
        client_link_send(&broker->client_link, assembly->session, &no);
    }
}

void assembly_stood_still(struct broker *broker, uint64_t late)
{
    struct assembly *assembly;
    DL_FOREACH(broker->assemblies, assembly)
    {
        assembly->until += late;
    }
}

/* ---- one that begins ---- */

static enum proto_error check_total(const struct broker *broker, uint32_t total, struct error *reason)
{
    const uint32_t context = broker_largest_context(broker);
    const struct limits limits = proto_limits(context);
    if (total <= limits.generate_bytes)
        return PROTO_OK;
    if (limits.prompt_ids != context)
        return error_set(reason, PROTO_TOO_LONG, "the request has %s; the pool accepts %s",
                         amount_of_bytes(total).text, amount_of_bytes(limits.generate_bytes).text);
    return error_set(reason, PROTO_TOO_LONG,
                     "the request has %s; the pool accepts %s, %d for each token of its context of %u",
                     amount_of_bytes(total).text, amount_of_bytes(limits.generate_bytes).text,
                     PROTO_PROMPT_ID_BYTES, context);
}

/* Takes room for all of it, and counts that. */
static enum proto_error open_it(struct broker *broker, struct assembly *assembly,
                                struct assembly_verdict *verdict)
{
    const struct party party = {session_client(assembly->session), &assembly->tenancy};
    if (broker->draining)
        return error_set(&verdict->reason, PROTO_DRAINING, "the pool is shutting down");
    enum proto_error no = check_total(broker, assembly->total, &verdict->reason);
    if (no != PROTO_OK)
        return no;
    no = admission_check_queue(&broker->admission, &party, assembly->total, &verdict->reason);
    if (no == PROTO_OK && record_room_take(broker->journal.vault, assembly->total, &assembly->room) < 0)
        no = error_set(&verdict->reason, PROTO_OVERLOADED, "no memory for a request of %s",
                       amount_of_bytes(assembly->total).text);
    if (no == PROTO_OK && admission_hold(&broker->admission, &party, assembly->total, &assembly->hold) < 0) {
        record_room_give(broker->journal.vault, &assembly->room);
        no = error_set(&verdict->reason, PROTO_OVERLOADED, "out of memory");
    }
    if (no == PROTO_OVERLOADED)
        verdict->retry_ms = admission_retry_ms(&broker->admission, broker->now);
    if (no != PROTO_OK)
        return no;
    assembly->state = OPEN;
    assembly->until = broker->now + ASSEMBLY_NS + assembly->total / ASSEMBLY_BYTES_A_S * CLOCK_NS_PER_S;
    DL_APPEND(broker->assemblies, assembly);
    return PROTO_OK;
}

static struct request *known_request(struct broker *broker, const struct assembly *assembly)
{
    const struct request_key key = {assembly->session->id, assembly->id};
    return ledger_find(&broker->ledger, &key);
}

static enum proto_error refuse_other(struct error *reason)
{
    return error_set(reason, PROTO_CONFLICT, "this id was used for another request");
}

static enum proto_error begin(struct broker *broker, struct session *session, const struct message *message,
                              struct assembly_verdict *verdict)
{
    assembly_drop(broker, session);
    struct assembly *assembly = calloc(1, sizeof *assembly);
    if (!assembly)
        return error_set(&verdict->reason, PROTO_OVERLOADED, "out of memory");
    session->assembly = assembly;
    assembly->session = session;
    assembly->state = REFUSED; /* until it is not */
    assembly->id = message->generate_part.id;
    assembly->total = message->generate_part.total;
    assembly->tenancy = broker_tenancy(broker, session, message->generate_part.tenant);
    const struct request *known = known_request(broker, assembly);
    if (!known)
        return open_it(broker, assembly, verdict);
    if (record_body_bytes(known) != assembly->total)
        return refuse_other(&verdict->reason);
    assembly->state = KNOWN;
    return PROTO_OK;
}

/* ---- one that goes on ---- */

static enum proto_error check_next(const struct assembly *assembly, const struct message *message,
                                   struct error *reason)
{
    if (message->generate_part.total != assembly->total)
        return error_set(reason, PROTO_BAD_REQUEST, "generate_part: total: %u, but earlier parts have %u",
                         message->generate_part.total, assembly->total);
    if (message->generate_part.at != assembly->have)
        return error_set(reason, PROTO_BAD_REQUEST, "generate_part: at: %u, but %u bytes have been received",
                         message->generate_part.at, assembly->have);
    return PROTO_OK;
}

/* Of a request that has ended there is only the hash: its client could only deceive itself. */
static enum proto_error compare(struct broker *broker, const struct assembly *assembly, struct bytes data,
                                struct error *reason)
{
    const struct request *known = known_request(broker, assembly);
    if (!known)
        return error_set(reason, PROTO_OVERLOADED, "the request expired while it was being sent again");
    if (known->body.len == 0)
        return PROTO_OK;
    return memcmp((const uint8_t *)known->body.data + assembly->have, data.data, data.len) == 0
               ? PROTO_OK
               : refuse_other(reason);
}

static enum proto_error go_on(struct broker *broker, struct assembly *assembly, const struct message *message,
                              struct assembly_verdict *verdict)
{
    const struct bytes data = message->generate_part.data;
    enum proto_error no = check_next(assembly, message, &verdict->reason);
    if (no == PROTO_OK && assembly->state == KNOWN)
        no = compare(broker, assembly, data, &verdict->reason);
    else if (no == PROTO_OK && broker->draining)
        no = error_set(&verdict->reason, PROTO_DRAINING, "the pool is shutting down");
    if (no != PROTO_OK)
        return no;
    if (assembly->state == OPEN)
        memcpy(assembly->room.bytes + assembly->have, data.data, data.len);
    assembly->have += (uint32_t)data.len;
    if (assembly->have < assembly->total)
        return PROTO_OK;
    verdict->what = assembly->state == OPEN ? ASSEMBLY_WHOLE : ASSEMBLY_AGAIN;
    verdict->bytes = (struct bytes){assembly->room.bytes, assembly->total};
    if (assembly->state == KNOWN)
        verdict->request = known_request(broker, assembly);
    return PROTO_OK;
}

void assembly_take(struct broker *broker, struct session *session, const struct message *message,
                   struct assembly_verdict *ret_verdict)
{
    const struct id128 *id = &message->generate_part.id;
    enum proto_error no = PROTO_OK;
    *ret_verdict = (struct assembly_verdict){.what = ASSEMBLY_MORE};
    if (message->generate_part.at == 0)
        no = begin(broker, session, message, ret_verdict);
    else if (!session->assembly || memcmp(&session->assembly->id, id, sizeof *id) != 0)
        no = error_set(&ret_verdict->reason, PROTO_BAD_REQUEST,
                       "generate_part: at: %u, but the first part of this request has not been received",
                       message->generate_part.at);
    else if (session->assembly->state == REFUSED)
        return;
    if (no == PROTO_OK)
        no = go_on(broker, session->assembly, message, ret_verdict);
    if (no == PROTO_OK)
        return;
    if (session->assembly && memcmp(&session->assembly->id, id, sizeof *id) == 0)
        give_back(broker, session->assembly);
    ret_verdict->what = ASSEMBLY_REFUSES;
    ret_verdict->error = no;
}
