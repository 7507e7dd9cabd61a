/* SPDX-License-Identifier: MIT */
/* The broker's parts, put together in the order in which they need one another, and taken apart the other way
 * round. */

#include "broker/setup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "broker/wire/connections.h"
#include "broker/frames.h"
#include "broker/core/lifecycle.h"
#include "broker/core/lifecycle_sessions.h"
#include "broker/core/publish.h"
#include "broker/core/recover.h"
#include "broker/sockets.h"
#include "common/clock.h"

static void init_tables(struct broker *broker)
{
    broker->journal.limit =
        broker->options.journal > 0 ? (uint64_t)broker->options.journal << 20 : JOURNAL_LIMIT_BYTES;
    broker->ledger.retention_ns = broker->options.retention * CLOCK_NS_PER_S;
    broker->allowance = (struct allowance){.sessions = broker->options.client_sessions,
                                           .subscriptions = broker->options.client_subscriptions,
                                           .tokens = broker->options.client_tokens};
    broker->admission.max_client_requests = broker->options.client_requests;
    broker->ledger.seed = broker->sessions.seed = broker->admission.shares.seed = broker->rates.seed =
        broker->secret;
    queue_init(&broker->queue, broker->secret);
    growth_init(&broker->growth, &broker->journal, &broker->ledger, &broker->admission);
    broker->admission.secret = broker->secret;
    broker->admission.max_queued = ADMISSION_MAX_QUEUED;
    broker->admission.max_queued_bytes = ADMISSION_MAX_QUEUED_BYTES;
    broker->n_workers = broker->options.workers;
    broker->client_link.sessions = &broker->sessions;
    broker->client_link.most_unread = CLIENT_LINK_UNREAD_BYTES;
    broker->client_link.credit.wake_fd = -1;
    broker->sessions.credit = &broker->client_link.credit;
    broker->worker_link.supervisor = &broker->supervisor;
    broker->worker_link.workers = broker->workers;
    broker->worker_link.n_workers = broker->n_workers;
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        broker->workers[i].index = i;
        snprintf(broker->workers[i].name, sizeof broker->workers[i].name, "worker-%u", i);
    }
}

int broker_init(struct broker *broker, const struct options *options, struct error *err)
{
    broker->options = *options;
    broker->now = clock_ns();
    broker->supervisor.rundir_fd = -1;
    if (getrandom(&broker->secret, sizeof broker->secret, 0) != sizeof broker->secret)
        return error_set(err, -EIO, "random numbers are not available");
    init_tables(broker);
    broker->most_connections = connections_raise_limit();
    int r = credit_total_init(&broker->client_link.credit, err);
    if (r == 0)
        r = supervisor_init(&broker->supervisor, (int)options->supervision_fd, options->workers, err);
    if (r == 0)
        r = vault_open(broker->supervisor.vault_fd, &broker->journal.vault, err);
    broker->rates.vault = broker->journal.vault;
    if (r == 0)
        r = sockets_bind(broker, err);
    if (r == 0 &&
        (message_decoder_new(&broker->decoder) < 0 || message_decoder_new(&broker->request_decoder) < 0 ||
         message_decoder_new(&broker->frame_decoder) < 0))
        r = error_set(err, -ENOMEM, "out of memory");
    const bool shares =
        options->prefix_store > 0 && !(options->has_cached_blocks && options->cached_blocks == 0);
    if (r == 0 &&
        routing_init(&broker->routing, broker->workers, broker->n_workers, shares, broker->secret) < 0)
        r = error_set(err, -ENOMEM, "out of memory");
    if (r == 0 && options->fleet_secret[0])
        r = publish_init(broker, err);
    if (r == 0 && (r = recover(broker, err)) < 0) {
        broker_leave(broker); /* what was found stays, for another try */
        return r;
    }
    if (r == 0)
        supervisor_serving(&broker->supervisor);
    else
        broker_deinit(broker);
    return r;
}

static void close_workers(struct broker *broker)
{
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        frames_close(&broker->workers[i]);
        outbox_deinit(&broker->workers[i].outbox);
        buffer_deinit(&broker->workers[i].credits.topics);
        ids_deinit(&broker->workers[i].credits.counts);
    }
}

static void free_tables(struct broker *broker)
{
    lifecycle_clear(broker);
    queue_deinit(&broker->queue);
    growth_deinit(&broker->growth);
    routing_deinit(&broker->routing);
    rates_deinit(&broker->rates);
    tellings_deinit(&broker->tellings);
    broker->journal.vault = vault_close(broker->journal.vault);
    tokenize_table_deinit(&broker->tokenize);
    journal_page_deinit(&broker->page);
    buffer_deinit(&broker->scratch);
    message_decoder_free(broker->decoder);
    message_decoder_free(broker->request_decoder);
    message_decoder_free(broker->frame_decoder);
}

static void close_sockets(struct broker *broker)
{
    stream_deinit(&broker->stream);
    client_link_deinit(&broker->client_link);
    worker_link_deinit(&broker->worker_link);
    zap_deinit(&broker->zap);
    client_keys_deinit(&broker->client_keys);
    if (broker->context)
        zmq_ctx_term(broker->context);
}

void broker_leave(struct broker *broker)
{
    close_workers(broker);
    close_sockets(broker);
}

void broker_deinit(struct broker *broker)
{
    if (broker->stream.n_shards > 0 && broker->client_link.router)
        lifecycle_end_all(broker, "the pool was stopped");
    close_workers(broker);
    free_tables(broker);
    close_sockets(broker);
    credit_total_deinit(&broker->client_link.credit);
    sockets_unlink(broker);
    supervisor_deinit(&broker->supervisor);
}
