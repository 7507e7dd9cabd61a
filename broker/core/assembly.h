/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_ASSEMBLY_H
#define BROKER_CORE_ASSEMBLY_H

/* A generate that comes in parts, until it is whole. A session has one at a time.
 *
 *     first part ──▶ OPEN ──the last one──▶ whole: admitted like any other, from the block where it lies
 *        │            └──a part that does not fit, a cancel, too late──▶ REFUSED
 *        ├──the ledger has the request──▶ KNOWN ──the last one──▶ it is told again
 *        │                                  └──a part that differs──▶ REFUSED
 *        └──no room──▶ REFUSED: told once; what still comes of it is passed over
 *
 * An open one lies in the vault, where the body of its request will be, without being kept: the next broker
 * finds nothing of it, and its client begins anew. Its bytes count in the queue for its session and tenant
 * from the first part on, so what is never finished takes from nobody but them. */

#include "broker/core/broker.h"

/* Most time from the first part to the last. */
#define ASSEMBLY_NS        (30 * CLOCK_NS_PER_S)
#define ASSEMBLY_BYTES_A_S (64u << 10) /* and a second more for so many bytes */

enum assembly_what {
    ASSEMBLY_MORE,    /* there is nothing to say yet, or any more */
    ASSEMBLY_WHOLE,   /* all bytes are there */
    ASSEMBLY_AGAIN,   /* of a request that is known */
    ASSEMBLY_REFUSES, /* with an error, which is told */
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

/* What is whole counts no longer for its session and tenant. Returns the block where it lies, for
 * struct arrival. */
struct record_room *assembly_release(struct broker *broker, struct session *session);

/* Whether that tenancy is the one which its parts told. */
bool assembly_is_of(const struct session *session, const struct tenancy *tenancy);

/* The request of this id is not to come: gives its parts back. */
void assembly_cancel(struct broker *broker, struct session *session, const struct id128 *id);

/* Gives back what the session has, if anything; it has none then. */
void assembly_drop(struct broker *broker, struct session *session);

/* Refuses those that take too long. Now and then. */
void assembly_expire(struct broker *broker);

/* The broker stood still for so many nanoseconds, in which nothing could come. */
void assembly_stood_still(struct broker *broker, uint64_t late);

#endif
