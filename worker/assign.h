/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ASSIGN_H
#define WORKER_ASSIGN_H

/* The requests of a worker, from their assignment until their last frame.
 *
 *     assign ──▶ preparing ──it has its ids──▶ prepared ──between steps──▶ running ──▶ its end
 *                    (a prompt of ids is prepared from the start)
 *
 * Whatever happens, a request gets exactly one end, with its last frame and `finished`; except that a request
 * replaced by a newer attempt publishes nothing more. */

#include <stdbool.h>
#include <stdint.h>

#include "proto/message.h"
#include "common/sampling_defaults.h"
#include "engine/engine.h"
#include "worker/instruments/trace.h"
#include "worker/link/link.h"
#include "worker/prepare/prepare.h"
#include "worker/publish.h"

struct request;

struct assignments {
    struct link *link;
    struct preparer *preparer;
    struct engine *engine; /* knows a request by its address */
    struct publisher *publisher;
    struct trace *trace; /* NULL: no trace */
    const struct prompt_encoder *encoder;
    const struct sampling_defaults *sampling; /* for requests that an older broker did not complete */
    struct request *requests;                 /* uthash by topic */
    struct request *silent;     /* utlist: out of the table, but still held by engine or preparer */
    struct request *unstarted;  /* utlist, in order of arrival: preparing or prepared */
    uint32_t n;                 /* number of all */
    uint32_t n_running;         /* held by the engine */
    enum proto_error closed;    /* PROTO_OK: accepts new ones */
    const char *closed_because; /* a literal */
};

/* Sets the parts that the assignments use; all of them must outlive the assignments, except in
 * assignments_deinit. */
void assignments_init(struct assignments *assignments, struct link *link, struct preparer *preparer,
                      struct engine *engine, struct publisher *publisher,
                      const struct prompt_encoder *encoder, const struct sampling_defaults *sampling);

/* Frees the remaining requests. The preparer must have ended, and the engine must take no more steps. */
void assignments_deinit(struct assignments *assignments);

/* Takes an `assign`, the message that the link received last. If it cannot be served, it ends at once. */
void assignments_take(struct assignments *assignments);

/* A `credit`: these requests may generate more. Ignores requests that are no longer here. */
void assignments_credit(struct assignments *assignments, const struct message *credit);

/* Ends a request: at once, or within a step if it is running. Ignores unknown ones. */
void assignments_cancel(struct assignments *assignments, const struct message *cancel);

/* Accepts no new ones from now on: they end with this error and reason. */
void assignments_close(struct assignments *assignments, enum proto_error error, const char *because);

/* The same, and requests that the engine does not have yet end in the same way. */
void assignments_abandon(struct assignments *assignments, enum proto_error error, const char *because);

/* Ends all requests with the error they were closed for, after frames with all of their output except
 * withheld text, so that another worker can continue them. */
void assignments_give_back(struct assignments *assignments);

/* Ends requests whose deadline has passed and that do not run yet; the engine does so for the others. */
void assignments_expire(struct assignments *assignments, uint64_t now);

/* Passes prepared requests to the engine. Between steps only; everything else here may be called inside
 * one. */
void assignments_start(struct assignments *assignments);

/* The engine's sink; arg is the assignments. */
void assignments_event(void *arg, const struct engine_event *event);

/* The topic of a request that the engine knows by this tag. */
const uint8_t *assignments_topic_of(uint64_t tag);

/* Requests that wait for their ids or for the end of the step. */
uint32_t assignments_unstarted(const struct assignments *assignments);

#endif
