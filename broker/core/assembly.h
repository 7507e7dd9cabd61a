/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_ASSEMBLY_H
#define BROKER_CORE_ASSEMBLY_H

/* A generate that arrives in parts, until it is complete. A session has one at a time.
 *
 *     first part ──▶ OPEN ──the last one──▶ whole: admitted like any other, from the block where it lies
 *        │            └──a part that does not fit, a cancel, too late──▶ REFUSED
 *        ├──the ledger has the request──▶ KNOWN ──the last one──▶ accepted again
 *        │                                  └──a part that differs──▶ REFUSED
 *        └──no room──▶ REFUSED: one error is sent, and further parts are ignored
 *
 * Its bytes are in the vault, where the request's body will be, but not kept: the next broker does not find
 * them, and the client sends everything again. They count in the queue for its session and tenant from the
 * first part on, so incomplete requests take no room from others. */

#include "broker/core/broker.h"

/* The time limit from the first part to the last: this, and a second more for each ASSEMBLY_BYTES_A_S
 * bytes. */
#define ASSEMBLY_NS        (30 * CLOCK_NS_PER_S)
#define ASSEMBLY_BYTES_A_S (64u << 10)

enum assembly_what {
    ASSEMBLY_MORE,    /* send nothing: parts are missing, or the error was sent before */
    ASSEMBLY_WHOLE,   /* all bytes are there */
    ASSEMBLY_AGAIN,   /* complete, and the request is already known */
    ASSEMBLY_REFUSES, /* rejected: send the error */
};

struct assembly_verdict {
    enum assembly_what what;
    struct bytes bytes;      /* WHOLE: until assembly_drop */
    struct request *request; /* AGAIN */
    enum proto_error error;  /* REFUSES */
    uint32_t retry_ms;
    struct error reason;
};

/* Takes a generate_part of the session. */
void assembly_take(struct broker *broker, struct session *session, const struct message *message,
                   struct assembly_verdict *ret_verdict);

/* The complete generate no longer counts for its session and tenant here. Returns its block, for
 * struct arrival. */
struct record_room *assembly_release(struct broker *broker, struct session *session);

/* Whether its parts named this tenancy. */
bool assembly_is_of(const struct session *session, const struct tenancy *tenancy);

/* The request with this id was cancelled: frees its parts. */
void assembly_cancel(struct broker *broker, struct session *session, const struct id128 *id);

/* Frees the session's parts, if any. */
void assembly_drop(struct broker *broker, struct session *session);

/* Rejects requests whose parts take too long. Call it periodically. */
void assembly_expire(struct broker *broker);

/* The broker stood still for `late` nanoseconds, in which no part could arrive: extends the time limits. */
void assembly_stood_still(struct broker *broker, uint64_t late);

#endif
