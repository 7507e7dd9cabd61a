/* SPDX-License-Identifier: MIT */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

/* A worker process: what its parts share. worker.c runs the loop; link.c speaks with the broker; assign.c
 * turns assignments into engine requests; publish.c turns engine events into frames; report.c tells the
 * board. One thread. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "proto/board.h"
#include "proto/message.h"
#include "worker/engine/engine.h"
#include "worker/model/chat_template.h"
#include "worker/model/model.h"
#include "worker/options.h"
#include "worker/stream.h"

#include <uthash.h>

/* A request that this worker has, from its assignment until its last frame. The engine knows it by address.
 */
struct request {
    uint8_t topic[PROTO_TOPIC_BYTES]; /* session ‖ id */
    struct epoch epoch;
    double queue_ms;
    bool muted; /* a newer attempt has its place: whatever it still says is dropped */

    /* made, and not yet in a frame */
    struct ids ids;
    struct buffer text;
    struct buffer logprobs; /* of struct token_logprob, [ids.len][width] */
    uint32_t width;
    uint64_t seq, off;                           /* of the first id and byte of them */
    uint64_t flushed_ns;                         /* when the last frame went */
    struct request *next_pending, *prev_pending; /* utlist of those with something to flush */
    bool is_pending;

    UT_hash_handle hh; /* by topic; muted ones are not in the table */
};

/* What the broker said while a step was running, to be taken in after it. */
struct deferred {
    struct deferred *next, *prev;
    size_t len;
    uint8_t data[];
};

struct worker {
    struct worker_options options;
    struct model *model;
    struct chat_template *chat; /* NULL: none, or none that can be used */
    struct error no_chat;       /* then: why */
    size_t most_prompt_bytes;   /* a longer text has more tokens than fit, however they are cut */
    struct engine *engine;
    bool in_step; /* inside engine_step: requests cannot be submitted */

    void *zmq;
    void *control; /* DEALER to the broker */
    struct stream stream;
    struct message_decoder *decoder;
    struct buffer scratch; /* of the message being sent */
    struct buffer reason;  /* of an ending, made fit to send */
    struct deferred *deferred;

    struct request *requests; /* uthash by topic */
    struct request *pending;  /* utlist */
    uint32_t n_requests;

    /* registration */
    bool registered, ready;
    struct id128 mark; /* the subscription that the broker said it makes */
    uint64_t boot;
    uint64_t heartbeat_ns; /* between heartbeats */
    uint64_t next_register_ns, next_heartbeat_ns;
    uint64_t heard_ns; /* when the broker last said something kind */
    uint64_t heartbeats;

    enum worker_state state;
    bool has_work;         /* the engine has something to do */
    bool draining;         /* no new work; ends when all is done and acknowledged */
    bool failed;           /* the same, because the device failed */
    uint64_t done_ns;      /* draining and nothing runs any more, since then; 0: not yet */
    uint64_t next_look_ns; /* inside a step: when to look at the sockets again */

    /* the board */
    struct board *board;
    size_t board_bytes;
    struct board_slot *slot; /* NULL: no board */
    uint64_t next_report_ns;
    uint64_t step_started_ns; /* of the running step; 0: idle */
    uint64_t rate_since_ns, rate_tokens;
    double tokens_per_s;
};

/* Runs a worker until it is told to stop. The exit status of the process: 0, 1, or PROGRAM_EXIT_PERMANENT
 * after one line that says why. */
int worker_run(const struct worker_options *options);

/* ---- link.c: the broker ---- */

int link_open(struct worker *worker, struct error *err); /* 0 or -errno */
void link_close(struct worker *worker);

/* Takes in what the broker said. While a step runs only what ends or eases work is heeded; the rest waits. */
void link_read(struct worker *worker);

/* Registers, says ready and sends heartbeats when they are due. */
void link_tend(struct worker *worker, uint64_t now);

/* Sends a message; one that cannot be encoded or sent is logged. */
void link_send(struct worker *worker, const struct message *message);

/* ---- assign.c ---- */

/* Takes an assignment. One that cannot be served ends at once, with its last frame. */
void assign_take(struct worker *worker, const struct message *message);

/* Text → ids for a client. */
void assign_tokenize(struct worker *worker, const struct message *message);

/* ---- publish.c ---- */

/* The engine's sink: arg is the worker. */
void publish_event(void *arg, const struct engine_event *event);

/* Sends what waits: all of it after a long step, else what was held back for the time of a frame. */
void publish_due(struct worker *worker, uint64_t now, uint64_t step_ns);

/* Ends a request that the engine never had, or has no more, with the reason; frees it. */
void publish_refusal(struct worker *worker, struct request *request, enum proto_error error,
                     const char *text);

/* Frees the requests that are left when the worker ends before them. */
void publish_forget(struct worker *worker);

/* ---- report.c: the board ---- */

int report_open(struct worker *worker, struct error *err); /* 0 or -errno */
void report_close(struct worker *worker);

/* Writes the worker's slot, if there is a board. */
void report_write(struct worker *worker, uint64_t now);

#endif
