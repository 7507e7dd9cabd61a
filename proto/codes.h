/* SPDX-License-Identifier: MIT */
#ifndef PROTO_CODES_H
#define PROTO_CODES_H

/* Errors, reasons and states. On the wire they are names (names.c). */

/* Errors of the protocol, by name on the wire. */
enum proto_error {
    PROTO_OK,
    PROTO_BAD_REQUEST,
    PROTO_TOO_LONG,
    PROTO_OVERLOADED, /* retry_after_ms says when to retry */
    PROTO_NO_WORKER,
    PROTO_WORKER_LOST,
    PROTO_DEADLINE,
    PROTO_CONFLICT,
    PROTO_UNSUPPORTED,
    PROTO_UNKNOWN_REQUEST,
    PROTO_DRAINING,
    PROTO_HELLO_REQUIRED,
    PROTO_MODEL_ERROR,
    PROTO_INTERNAL,
    PROTO_ERROR_COUNT
};
const char *proto_error_name(enum proto_error error); /* "ok" for PROTO_OK */

/* Why a request ended. */
enum end_reason {
    END_STOP,   /* a stop id, a stop string or the model's own end */
    END_LENGTH, /* it reached the limit that enum end_limit names */
    END_CANCELLED,
    END_DEADLINE,
    END_ERROR, /* error and text say which */
    END_REASON_COUNT
};
const char *end_reason_name(enum end_reason reason);

/* Which limit ended an answer with END_LENGTH. */
enum end_limit {
    LIMIT_NONE, /* unknown */
    LIMIT_MAX_TOKENS,
    LIMIT_CONTEXT, /* the model's context, or the part of it that fits the KV cache */
    LIMIT_POOL,    /* the pool's limit for an answer */
    END_LIMIT_COUNT
};
const char *end_limit_name(enum end_limit limit); /* "none" for LIMIT_NONE */

/* Worker states, on the board and in status. */
enum worker_state {
    WORKER_ABSENT,
    WORKER_STARTING,
    WORKER_LOADING,
    WORKER_READY,
    WORKER_DRAINING,
    WORKER_FAILED,
    WORKER_STATE_COUNT
};
const char *worker_state_name(enum worker_state state);

/* The subject of a trace record: a step, or an event of a request. */
enum trace_what {
    TRACE_STEP,          /* a step was read */
    TRACE_ADMITTED,      /* assigned to the worker; n: µs in the broker's queue */
    TRACE_TOKENIZED,     /* its ids are known, and the engine has it; n: ids of the prompt */
    TRACE_SLOT,          /* it has a slot; n: which one */
    TRACE_PREFIX,        /* at the same time, n ids were found in the prefix cache */
    TRACE_PREFILL_BEGIN, /* a step with its first n ids was submitted */
    TRACE_PREFILL_END,   /* its prompt is computed: n ids of it */
    TRACE_FIRST_TOKEN,   /* n: ids that came at once */
    TRACE_SLOT_LOST, /* preempted, or out of credit; n: its ids, prompt included. It waits for another slot */
    TRACE_GIVEN_BACK, /* the worker is ending, and another takes over; n: ids of its answer so far */
    TRACE_END,        /* n: ids of its answer */
    TRACE_WHAT_COUNT
};
const char *trace_what_name(enum trace_what what);

#endif
