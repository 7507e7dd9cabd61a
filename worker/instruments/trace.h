/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSTRUMENTS_TRACE_H
#define WORKER_INSTRUMENTS_TRACE_H

/* Traces what a worker does: a record for each step and for each event of a request.
 *
 * Records are made only while a client asks for them: a question (`trace`) starts tracing, and it ends
 * TRACE_LEASE_NS after the last question. Records are numbered, and the last TRACE_RECORDS are kept; an
 * answer says how many of the requested records were already overwritten. One thread. */

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "engine/engine.h"
#include "proto/message.h"
#include "worker/link/link.h"

#define TRACE_RECORDS  4096
#define TRACE_LEASE_NS (3 * CLOCK_NS_PER_S)

struct trace {
    struct link *link;
    struct engine *engine;
    const uint8_t *(*topic_of)(uint64_t tag); /* of a request in the engine: session ‖ id */
    struct engine_observer observer;
    uint32_t incarnation;
    uint64_t begun_ns;         /* the origin of times */
    struct trace_record *ring; /* [TRACE_RECORDS] by number % TRACE_RECORDS; NULL: not tracing */
    char (*names)[PROTO_MAX_NAME_BYTES + 1]; /* clients' names for requests, of records that have one */
    uint64_t first, next;      /* numbers of the first record since tracing started, and of the next */
    uint64_t steps;            /* the engine's count when it was last traced */
    uint64_t until_ns;         /* end of the lease */
    struct trace_record *told; /* [PROTO_MAX_TRACE] of the current answer; NULL if the ring is NULL */
};

/* The link and the engine must outlive it. A zeroed trace may be closed too. */
void trace_init(struct trace *trace, struct link *link, struct engine *engine, uint32_t incarnation,
                const uint8_t *(*topic_of)(uint64_t tag));
void trace_close(struct trace *trace);

/* Answers a `trace`: with trace_ok, or an error. */
void trace_take(struct trace *trace, const struct message *message, uint64_t now);

/* Stops tracing when there has been no question for a while. */
void trace_expire(struct trace *trace, uint64_t now);

/* Adds an event of a request, at `now` on clock_ns; does nothing while not tracing. `trace` may be NULL. */
void trace_add_mark(struct trace *trace, const uint8_t topic[PROTO_TOPIC_BYTES], enum trace_what what,
                    uint64_t n, uint64_t now);
static inline void trace_mark(struct trace *trace, const uint8_t topic[PROTO_TOPIC_BYTES],
                              enum trace_what what, uint64_t n, uint64_t now)
{
    if (trace && trace->ring)
        trace_add_mark(trace, topic, what, n, now);
}

/* The first event of a request; only this one has the client's name for it. */
void trace_admitted(struct trace *trace, const uint8_t topic[PROTO_TOPIC_BYTES], struct bytes request_id,
                    uint64_t queue_us, uint64_t now);

/* The last event of a request here: its end, or, with the error `draining`, that it is given back. */
void trace_end(struct trace *trace, const uint8_t topic[PROTO_TOPIC_BYTES], const struct ending *ending,
               uint64_t n_output);

#endif
