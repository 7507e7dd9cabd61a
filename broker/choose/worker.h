/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_WORKER_H
#define BROKER_CHOOSE_WORKER_H

/* A worker as the broker sees it: what it registered, which requests it has, which of its frames are safe.
 *
 * There is one struct for each place in the pool ("worker-0", …), for the life of the broker; each process
 * that takes the place is one incarnation. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/choose/hit_estimate.h"
#include "broker/wire/outbox.h"
#include "broker/books/request.h"
#include "proto/message.h"

#define WORKER_ENDPOINT_MAX 128
#define WORKER_MAX          64 /* places in a pool */

/* A worker takes one message after the other, and one of 4 MiB takes milliseconds, so messages under way
 * delay what is sent after them. Large messages are sent up to this bound, a larger one alone; the others
 * wait here, where brief messages pass them. */
#define WORKER_UNDER_WAY_BYTES ((size_t)1 << 20)

struct worker_credits {   /* that the worker has not been told of */
    struct buffer topics; /* of struct request_key */
    struct ids counts;    /* as many */
};

struct worker {
    uint32_t index;
    char name[32];
    uint32_t incarnation;                    /* of the process that has the place now; 0 before the first */
    char link_endpoint[WORKER_ENDPOINT_MAX]; /* where its link is, while we are connected to it */
    char endpoint[WORKER_ENDPOINT_MAX];      /* its stream */
    enum worker_state state;

    /* What it registered; texts are zero-terminated. */
    char model[PROTO_MAX_NAME_BYTES + 1];
    char device[PROTO_MAX_NAME_BYTES + 1];
    uint8_t digest[16];
    uint32_t context, slots;
    uint32_t embedding; /* numbers of an embedding; 0: not available */
    bool chat;
    char tools[PROTO_MAX_NAME_BYTES + 1];
    bool thinks;
    char dialect[PROTO_MAX_DIALECT_BYTES + 1];
    char sampling[PROTO_MAX_TEXT_BYTES + 1]; /* what requests that do not say get (sampling_defaults.h) */
    struct bytes aliases[PROTO_MAX_ALIASES]; /* [n_aliases] of the pool's options: not its own name */
    uint32_t n_aliases;

    struct peer link; /* the connection to its process, as we call it; len 0: there is none */
    struct peer peer; /* the same once it has registered; len 0: it has not, or is given up */
    struct outbox outbox;
    struct worker_credits credits;
    size_t under_way;   /* bytes of messages to it, brief ones aside, that it has not taken yet */
    bool held;          /* for one that is not brief and waits: no other of these is sent meanwhile */
    uint64_t asked;     /* ref of the large tokenize that it works on; 0: none */
    uint64_t ending_ns; /* clock_ns since when it says that it is ending; 0: it does not */
    bool relieved;      /* and it was told to give back what it has */

    /* Its stream. */
    void *stream;           /* SUB socket; NULL when not connected */
    uint64_t wseq;          /* frames up to here are in the journal */
    uint64_t acked_wseq;    /* frames up to here were acknowledged */
    uint64_t ack_due;       /* clock_ns when the rest is; 0: nothing to acknowledge */
    uint64_t resend_asked;  /* clock_ns of the last resend; 0: no gap */
    uint32_t repeats;       /* frames that came again since the last new one */
    uint64_t promised_wseq; /* made, by its last heartbeat but possibly still under way */
    bool drained;           /* nothing more was there when its stream was last read */
    bool adopted;           /* an earlier broker had it */
    bool settled;           /* and it has been told since what it should have */
    uint64_t adopted_wseq;  /* frames up to here may be in the journal already */

    /* Its share of the work. */
    struct request *requests; /* list by worker_prev/next */
    uint32_t n_requests;
    uint32_t n_bulky;    /* of those, how many came as large ones and have no token yet */
    uint32_t n_waiting;  /* of those, how many wait for room in the journal, and need no slot (growth.h) */
    uint32_t n_finished; /* of those, how many finished while frames were missing */
    uint64_t load;       /* tokens that are to be read and made for those, roughly */
    uint64_t recent;     /* the same of those that it had lately */

    /* Of what its own cache should have, and of what it should get from the prefix store. */
    struct hit_estimate cached, restored;
};

/* True when requests may be assigned to it at all. */
bool worker_is_serving(const struct worker *worker);

/* It says that it is ending: nothing more is assigned to it. */
void worker_is_ending(struct worker *worker, uint64_t now);

/* Whether its model has this name, as its own or as an alias. */
bool worker_answers_to(const struct worker *worker, struct bytes name);

/* How many requests it may have at once: its slots, and a few more to refill them without a round trip. */
uint32_t worker_capacity(const struct worker *worker);

/* Whether a request of so many bytes may be sent to it now. Large ones may not while the worker is held, and
 * may take only half of its places until they were read: tokenizing megabytes takes a second, in which small
 * requests must not wait for a place. */
bool worker_may_be_sent(const struct worker *worker, size_t bytes);

/* Puts a request on the worker's list and load, and takes it off again. */
void worker_take(struct worker *worker, struct request *request);
void worker_drop(struct worker *worker, struct request *request);

/* The first ids of a request are here: its prompt is read, and no load any more. */
void worker_prefilled(struct worker *worker, struct request *request);

#endif
