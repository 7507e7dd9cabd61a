/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_WORKER_H
#define BROKER_CHOOSE_WORKER_H

/* A worker as the broker sees it: what it registered, its requests, and which of its frames are safe.
 *
 * There is one struct for each place in the pool ("worker-0", …), for the life of the broker; each process in
 * that place is one incarnation. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/choose/hit_estimate.h"
#include "broker/wire/outbox.h"
#include "broker/books/request.h"
#include "common/sampling_defaults.h"
#include "common/system/socket_news.h"
#include "proto/message.h"

#define WORKER_ENDPOINT_MAX 128
#define WORKER_MAX          64 /* places in a pool */

/* A worker takes messages one at a time, and 4 MiB take milliseconds, so messages in flight delay those sent
 * after them. Large messages are sent up to this bound in total, or a larger one alone; the others wait here,
 * where brief messages pass them. */
#define WORKER_UNDER_WAY_BYTES ((size_t)1 << 20)

struct worker_credits {   /* not sent to the worker yet */
    struct buffer topics; /* of struct request_key */
    struct ids counts;    /* one per topic */
};

struct worker {
    uint32_t index;
    char name[32];
    uint32_t incarnation;                    /* of the current process; 0 before the first */
    char link_endpoint[WORKER_ENDPOINT_MAX]; /* of its link, while we are connected to it */
    char endpoint[WORKER_ENDPOINT_MAX];      /* of its stream */
    enum worker_state state;

    /* What it registered; texts are zero-terminated. */
    char model[PROTO_MAX_NAME_BYTES + 1];
    char device[PROTO_MAX_NAME_BYTES + 1];
    uint32_t device_number, device_capability;
    char device_uuid[PROTO_MAX_NAME_BYTES + 1], device_driver[PROTO_MAX_NAME_BYTES + 1];
    char arithmetic[PROTO_MAX_NAME_BYTES + 1];
    char choices[PROTO_MAX_NAME_BYTES + 1];
    uint8_t digest[16];
    char digest_text[2 * 16 + 1]; /* the same, hexadecimal */
    uint32_t context, slots;
    uint32_t embedding; /* numbers of an embedding; 0: not available */
    bool ranks;         /* those numbers are the scores of a pair of texts */
    bool chat;
    char tools[PROTO_MAX_NAME_BYTES + 1];
    bool thinks;
    char dialect[PROTO_MAX_DIALECT_BYTES + 1];
    char sampling[PROTO_MAX_TEXT_BYTES + 1]; /* its sampling defaults (sampling_defaults.h) */
    struct sampling_defaults defaults;       /* the same */
    struct bytes aliases[PROTO_MAX_ALIASES]; /* [n_aliases], from the options, without the model's name */
    uint32_t n_aliases;

    struct peer link; /* our routing id for the connection to its process; len 0: none */
    struct peer peer; /* the same once it has registered; len 0: it has not, or was given up on */
    struct outbox outbox;
    struct worker_credits credits;
    size_t under_way;             /* bytes of large messages sent to it that it has not taken yet */
    bool held;                    /* a large message waits: no other large one is sent meanwhile */
    uint64_t asked;               /* ref of the large tokenize question in progress; 0: none */
    uint64_t asked_by_foreign_ns; /* clock_ns of the last question from outside the run directory */
    uint64_t ending_ns;           /* clock_ns when it announced its end; 0: it has not */
    bool relieved;                /* it was then told to give back its requests */

    /* Its stream. */
    void *stream;            /* SUB socket; NULL when not connected */
    struct socket_news news; /* of the stream */
    uint64_t wseq;           /* frames up to here are in the journal */
    uint64_t acked_wseq;     /* frames up to here were acknowledged */
    uint64_t ack_due;        /* clock_ns when the next acknowledgement is due; 0: none */
    uint64_t resend_asked;   /* clock_ns of the last resend; 0: no gap */
    uint32_t repeats;        /* repeated frames since the last new one */
    uint64_t promised_wseq;  /* its last frame according to its heartbeat, possibly still in flight */
    bool drained;            /* its stream was empty when last read */
    bool adopted;            /* from an earlier broker */
    bool settled;            /* it has since been told which requests it should have */
    uint64_t adopted_wseq;   /* frames up to here may be in the journal already */

    /* Its share of the work. */
    struct request *requests; /* list by worker_prev/next */
    uint32_t n_requests;
    uint32_t n_bulky;   /* of those, large ones without a token yet */
    uint32_t n_waiting; /* of those, requests that wait for room in the journal and need no slot (growth.h) */
    uint32_t n_finished; /* of those, requests that finished while frames were missing */
    uint64_t load;       /* estimated tokens to process and generate for those */
    uint64_t recent;     /* the same for its recent requests */

    /* For its own cache, and for the prefix store. */
    struct hit_estimate cached, restored;
};

/* Whether requests may be assigned to it at all. */
bool worker_is_serving(const struct worker *worker);

/* The worker has announced its end: nothing more is assigned to it. */
void worker_is_ending(struct worker *worker, uint64_t now);

/* Whether its model has this name, as its own or as an alias. */
bool worker_answers_to(const struct worker *worker, struct bytes name);

/* How many requests it may have at once: one per slot, and a few more to refill slots without a round trip.
 */
uint32_t worker_capacity(const struct worker *worker);

/* Whether a request of this many bytes may be sent to it now. Large requests may not be sent while the worker
 * is held, and may take only half of its capacity until their first token: tokenizing megabytes takes a
 * second, during which small requests must not wait. */
bool worker_may_be_sent(const struct worker *worker, size_t bytes);

/* Adds a request to the worker's list and load, or removes it. */
void worker_take(struct worker *worker, struct request *request);
void worker_drop(struct worker *worker, struct request *request);

/* The first ids of a request have arrived: its prompt is processed and no longer counts as load. */
void worker_prefilled(struct worker *worker, struct request *request);

#endif
