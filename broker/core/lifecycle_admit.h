/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_LIFECYCLE_ADMIT_H
#define BROKER_CORE_LIFECYCLE_ADMIT_H

/* The beginning of a request's life: it is admitted, already known, or rejected. */

#include "broker/books/record.h"
#include "broker/core/broker.h"
#include "common/error.h"

struct arrival { /* a generate as received */
    struct session *session;
    struct id128 id;
    const struct generation *generation; /* borrows from the body */
    struct bytes body;                   /* the whole message */
    struct record_room *room;            /* the body's block if it came in parts, which it keeps; else NULL */
};

struct verdict {
    enum proto_error error;
    struct request *request; /* PROTO_OK: the new or the known one */
    bool again;              /* PROTO_OK: it was known */
    uint32_t retry_ms;       /* PROTO_OVERLOADED: when to retry */
    struct quotas quotas;    /* of its tenant, if the request has limits for it */
    struct error reason;     /* of an error */
};

/* Plans how far the request may grow: at admission, and after a recovery. */
void lifecycle_plan(const struct broker *broker, struct request *request,
                    const struct generation *generation);

void lifecycle_admit(struct broker *broker, const struct arrival *arrival, struct verdict *ret_verdict);

#endif
