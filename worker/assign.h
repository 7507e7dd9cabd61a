/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ASSIGN_H
#define WORKER_ASSIGN_H

/* The requests that a worker has, from their assignment until their last frame.
 *
 *     assign ──▶ preparing ──its ids are there──▶ prepared ──between steps──▶ running ──▶ its end
 *                    (a prompt of ids is prepared when it comes)
 *
 * Whatever happens to it, a request gets exactly one end, with its last frame and `finished`; but one whose
 * place a newer attempt has taken says nothing more. */

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
    struct trace *trace; /* NULL: it is told of nothing */
    const struct prompt_encoder *encoder;
    const struct sampling_defaults *sampling; /* where an older broker did not complete a request */
    struct request *requests;                 /* uthash by topic */
    struct request *silent;     /* utlist: out of the table, but engine or preparer still hold them */
    struct request *unstarted;  /* utlist, in order of arrival: preparing or prepared */
    uint32_t n;                 /* all of them */
    uint32_t n_running;         /* those that the engine holds */
    enum proto_error closed;    /* PROTO_OK: new ones are taken */
    const char *closed_because; /* a literal */
};

/* Fills in what the assignments work with; all of it outlives them, but for assignments_deinit. */
void assignments_init(struct assignments *assignments, struct link *link, struct preparer *preparer,
                      struct engine *engine, struct publisher *publisher,
                      const struct prompt_encoder *encoder, const struct sampling_defaults *sampling);

/* Forgets the requests that are left. The preparer must have ended and the engine takes no more steps. */
void assignments_deinit(struct assignments *assignments);

/* Takes an `assign`, the message that the link received last. One that cannot be served ends at once. */
void assignments_take(struct assignments *assignments);

/* A `credit`: these requests may make more. Those that are not here any more are passed over. */
void assignments_credit(struct assignments *assignments, const struct message *credit);

/* Ends a request: at once, or within a step when it runs. Unknown ones are nothing. */
void assignments_cancel(struct assignments *assignments, const struct message *cancel);

/* Takes no new ones from now on: they end with this error and reason. */
void assignments_close(struct assignments *assignments, enum proto_error error, const char *because);

/* The same, and those that the engine does not have yet end likewise. */
void assignments_abandon(struct assignments *assignments, enum proto_error error, const char *because);

/* Ends all that there are with the error they were closed for, behind frames of all that was made of them but
 * the text that is withheld: whoever is given them next goes on from there. */
void assignments_give_back(struct assignments *assignments);

/* Ends those that do not run yet and whose deadline has passed; the engine sees to the others. */
void assignments_expire(struct assignments *assignments, uint64_t now);

/* Hands what is prepared to the engine. Between steps only; all else here may be called inside of one. */
void assignments_start(struct assignments *assignments);

/* The engine's sink; arg is the assignments. */
void assignments_event(void *arg, const struct engine_event *event);

/* The topic of a request that the engine knows by this tag. */
const uint8_t *assignments_topic_of(uint64_t tag);

/* Requests that wait for their ids or for the end of the step. */
uint32_t assignments_unstarted(const struct assignments *assignments);

#endif
