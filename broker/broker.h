/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

/* The broker: everything it holds, and its one loop.
 *
 * One thread runs all of it. The parts that keep books (journal, queue, ledger, sessions, admission, workers)
 * know no socket; the parts that own a socket (frontend, backend, ingest, stream) decode, check, and hand
 * over to lifecycle, which alone moves a request from state to state. */

#include <stdbool.h>
#include <stdint.h>

#include "broker/admission.h"
#include "broker/journal.h"
#include "broker/options.h"
#include "broker/queue.h"
#include "broker/request.h"
#include "broker/session.h"
#include "broker/stream.h"
#include "broker/supervisor.h"
#include "broker/tokenize.h"
#include "broker/worker.h"
#include "common/error.h"
#include "proto/message.h"

/* Most messages taken from one socket before the loop looks at the others, and most bytes from clients: large
 * prompts take time to decode. */
#define BROKER_BATCH       1024
#define BROKER_BATCH_BYTES ((size_t)8 << 20)

#define BROKER_ENDPOINT_MAX 300

struct broker_counters {
    uint64_t admitted, ended, rejected, tokens;
};

struct broker {
    struct options options;
    int lock_fd;
    uint64_t boot;
    uint64_t secret; /* seeds hashes and drawn seeds */
    uint64_t draws;  /* seeds drawn so far */
    uint64_t now;    /* clock_ns of this turn of the loop */
    bool draining;
    bool announced; /* "ready:" was printed */
    uint64_t loading_shown_ns;
    uint64_t next_trim_ns; /* when unused memory may be given back again */
    bool trim_pays;        /* requests were kept at the last time: there is something to give back */
    bool any_ready;        /* some worker became ready */

    void *context;
    void *frontend; /* ROUTER */
    void *backend;  /* ROUTER */
    struct stream stream;
    char frontend_endpoint[BROKER_ENDPOINT_MAX];
    char backend_endpoint[BROKER_ENDPOINT_MAX];
    char stream_endpoints[2][BROKER_ENDPOINT_MAX]; /* told in hello_ok */
    size_t n_stream_endpoints;

    struct message_decoder *decoder;         /* of the frontend and the backend */
    struct message_decoder *request_decoder; /* of bodies, while another message is in use */
    struct message_decoder *frame_decoder;   /* of frames */
    struct buffer scratch;                   /* the message being encoded */
    struct journal_page page;                /* the replay being answered */

    struct journal journal;
    struct ledger ledger;
    struct queue queue;
    struct admission admission;
    struct sessions sessions;
    struct tokenize tokenize;
    struct request *abandoned; /* live ones without a session; list by session_prev/next */
    struct worker workers[WORKER_MAX];
    uint32_t n_workers;
    struct supervisor supervisor;
    struct broker_counters counters;
    uint64_t stranger_ns;  /* when a stranger on the backend was last logged */
    bool outboxes_waiting; /* something could not be sent at once */
};

/* Prepares the run directory, binds, and sets up the supervisor; nothing is spawned yet. On failure
 * everything is undone. 0 or -errno with the reason. */
int broker_init(struct broker *broker, const struct options *options, struct error *err);

/* Serves until a signal ends it (0) or every worker failed for good (-ECHILD with the reason).
 * `signal_fd` delivers SIGTERM, SIGINT, SIGHUP and SIGCHLD. */
int broker_run(struct broker *broker, int signal_fd, struct error *err);

/* Ends what is left, workers included, and frees everything. */
void broker_deinit(struct broker *broker);

#endif
