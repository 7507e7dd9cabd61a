/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_BROKER_H
#define BROKER_CORE_BROKER_H

/* The broker's whole state. One thread runs everything (loop.h).
 *
 *     from_clients      from_workers      frames      processes     input: decode and check
 *           └───────────────┬───────────────┴─────────────┘
 *                 lifecycle · tokenize · replay                     the only place where states change
 *           ┌───────────────┼───────────────┐
 *      client_link     worker_link        stream                    output, which never waits
 *           └───────────────┼───────────────┘
 *     journal · ledger · queue · admission · sessions · workers     the books: no socket, no message
 *
 * Dependencies point down only: a file includes nothing from the lines above its own
 * (scripts/check/includes). Functions of books and links take only what they need; those of the lines above
 * take the whole broker. status reads the books. */

#include <stdbool.h>
#include <stdint.h>

#include "broker/choose/admission.h"
#include "broker/settings/allowance.h"
#include "broker/books/client_keys.h"
#include "broker/choose/growth.h"
#include "broker/links/client_link.h"
#include "broker/books/journal.h"
#include "broker/books/ledger.h"
#include "broker/books/rates.h"
#include "broker/settings/options.h"
#include "broker/choose/queue.h"
#include "broker/books/request.h"
#include "broker/choose/routing.h"
#include "common/files/fleet_secret.h"
#include "broker/books/session.h"
#include "broker/links/stream.h"
#include "broker/books/tellings.h"
#include "broker/links/supervisor.h"
#include "broker/core/tokenize_table.h"
#include "broker/choose/worker.h"
#include "broker/links/worker_link.h"
#include "broker/links/zap.h"
#include "proto/message.h"

/* The most messages taken from one socket before the loop turns to the others, and the most bytes of clients'
 * messages: large prompts take time to decode. */
#define BROKER_BATCH       1024
#define BROKER_BATCH_BYTES ((size_t)8 << 20)

#define BROKER_ENDPOINT_MAX 300

struct broker_counters {
    uint64_t admitted, ended, rejected, moved, tokens;
};

struct broker_endpoints {
    char frontend[BROKER_ENDPOINT_MAX];
    char streams[2][BROKER_ENDPOINT_MAX]; /* [n_streams], sent in hello_ok */
    size_t n_streams;
};

struct broker {
    struct options options;
    uint64_t secret; /* the seed of hashes and of drawn seeds */
    uint64_t now;    /* clock_ns of this turn of the loop */
    bool draining;
    bool any_ready;              /* some worker has become ready */
    uint32_t most_connections;   /* further clients are turned away */
    uint64_t stranger_logged_ns; /* when a stranger on the worker link was last logged */

    void *context;
    struct broker_endpoints endpoints;
    struct client_link client_link;
    struct worker_link worker_link;
    struct stream stream;
    struct client_keys client_keys; /* for TCP */
    struct zap zap;

    struct message_decoder *decoder;         /* of messages from clients and workers */
    struct message_decoder *request_decoder; /* of bodies, while another message is in use */
    struct message_decoder *frame_decoder;   /* of frames */
    struct buffer scratch;                   /* a frame or welcome being encoded for the stream */
    struct journal_page page;                /* the replay being answered */
    size_t paged_bytes;                      /* of pages sent in this turn of the loop */

    struct journal journal;
    struct ledger ledger;
    struct queue queue;
    struct admission admission;
    struct growth growth;
    struct allowance allowance;
    struct rate_book rates;
    struct tellings tellings;
    struct sessions sessions;
    struct assembly *assemblies; /* requests that arrive in parts; list */
    struct tokenize_table tokenize;
    struct worker workers[WORKER_MAX];
    uint32_t n_workers;
    struct routing routing;
    struct fleet_secret fleet_secret; /* known to those that may read the book of prefixes */
    struct supervisor supervisor;
    struct broker_counters counters;
};

/* The number of unfinished requests. */
static inline size_t broker_n_alive(const struct broker *broker)
{
    size_t alive = broker->queue.n;
    for (uint32_t i = 0; i < broker->n_workers; i++)
        alive += broker->workers[i].n_requests;
    return alive;
}

/* The tenancy of a session's requests that name this tenant. */
static inline struct tenancy broker_tenancy(const struct broker *broker, const struct session *session,
                                            struct bytes tenant)
{
    return tenancy_of(tenant, session_client(session), session->near && session->key == 0, broker->secret);
}

/* The largest context of all workers; 0 while none has registered. */
static inline uint32_t broker_largest_context(const struct broker *broker)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < broker->n_workers; i++)
        if (broker->workers[i].context > largest)
            largest = broker->workers[i].context;
    return largest;
}

#endif
