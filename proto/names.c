/* SPDX-License-Identifier: MIT */
/* The names of kinds, errors, end reasons and worker states, as they stand on the wire.
 *
 * Each table is indexed by its enum and checked to be complete; the wire never carries a number for any of
 * them, so enums may be reordered and names may not. */

#include "proto/fields.h"

static const char *const kind_names[] = {
    [MESSAGE_NONE] = "none",
    [MESSAGE_HELLO] = "hello",
    [MESSAGE_JOIN] = "join",
    [MESSAGE_GENERATE] = "generate",
    [MESSAGE_GENERATE_PART] = "generate_part",
    [MESSAGE_CANCEL] = "cancel",
    [MESSAGE_REPLAY] = "replay",
    [MESSAGE_ATTACH] = "attach",
    [MESSAGE_STATUS] = "status",
    [MESSAGE_TOKENIZE] = "tokenize",
    [MESSAGE_DETOKENIZE] = "detokenize",
    [MESSAGE_PREFIXES] = "prefixes",
    [MESSAGE_TENANTS] = "tenants",
    [MESSAGE_TRACE] = "trace",
    [MESSAGE_PROFILE] = "profile",
    [MESSAGE_TRIM] = "trim",
    [MESSAGE_PING] = "ping",
    [MESSAGE_BYE] = "bye",
    [MESSAGE_HELLO_OK] = "hello_ok",
    [MESSAGE_WELCOME] = "welcome",
    [MESSAGE_ACCEPTED] = "accepted",
    [MESSAGE_ERROR] = "error",
    [MESSAGE_CANCEL_OK] = "cancel_ok",
    [MESSAGE_REPLAY_OK] = "replay_ok",
    [MESSAGE_ATTACH_OK] = "attach_ok",
    [MESSAGE_STATUS_OK] = "status_ok",
    [MESSAGE_TOKENIZE_OK] = "tokenize_ok",
    [MESSAGE_DETOKENIZE_OK] = "detokenize_ok",
    [MESSAGE_PREFIXES_OK] = "prefixes_ok",
    [MESSAGE_TENANTS_OK] = "tenants_ok",
    [MESSAGE_TRACE_OK] = "trace_ok",
    [MESSAGE_PROFILE_OK] = "profile_ok",
    [MESSAGE_TRIM_OK] = "trim_ok",
    [MESSAGE_PONG] = "pong",
    [MESSAGE_BYE_OK] = "bye_ok",
    [MESSAGE_END] = "end",
    [MESSAGE_FRAME] = "frame",
    [MESSAGE_PROGRESS] = "progress",
    [MESSAGE_REGISTER] = "register",
    [MESSAGE_READY] = "ready",
    [MESSAGE_HEARTBEAT] = "heartbeat",
    [MESSAGE_FINISHED] = "finished",
    [MESSAGE_REGISTER_OK] = "register_ok",
    [MESSAGE_ASSIGN] = "assign",
    [MESSAGE_CREDIT] = "credit",
    [MESSAGE_ACK] = "ack",
    [MESSAGE_RESEND] = "resend",
    [MESSAGE_DRAIN] = "drain",
};
_Static_assert(sizeof kind_names / sizeof *kind_names == MESSAGE_KIND_COUNT, "a name for every kind");

static const char *const error_names[] = {
    [PROTO_OK] = "ok",
    [PROTO_BAD_REQUEST] = "bad_request",
    [PROTO_TOO_LONG] = "too_long",
    [PROTO_OVERLOADED] = "overloaded",
    [PROTO_NO_WORKER] = "no_worker",
    [PROTO_WORKER_LOST] = "worker_lost",
    [PROTO_DEADLINE] = "deadline",
    [PROTO_CONFLICT] = "conflict",
    [PROTO_UNSUPPORTED] = "unsupported",
    [PROTO_UNKNOWN_REQUEST] = "unknown_request",
    [PROTO_DRAINING] = "draining",
    [PROTO_HELLO_REQUIRED] = "hello_required",
    [PROTO_MODEL_ERROR] = "model_error",
    [PROTO_INTERNAL] = "internal",
};
_Static_assert(sizeof error_names / sizeof *error_names == PROTO_ERROR_COUNT, "a name for every error");

static const char *const reason_names[] = {
    [END_STOP] = "stop",         [END_LENGTH] = "length", [END_CANCELLED] = "cancelled",
    [END_DEADLINE] = "deadline", [END_ERROR] = "error",
};
_Static_assert(sizeof reason_names / sizeof *reason_names == END_REASON_COUNT, "a name for every reason");

static const char *const limit_names[] = {
    [LIMIT_NONE] = "none",
    [LIMIT_MAX_TOKENS] = "max_tokens",
    [LIMIT_CONTEXT] = "context",
    [LIMIT_POOL] = "pool",
};
_Static_assert(sizeof limit_names / sizeof *limit_names == END_LIMIT_COUNT, "a name for every limit");

static const char *const state_names[] = {
    [WORKER_ABSENT] = "absent", [WORKER_STARTING] = "starting", [WORKER_LOADING] = "loading",
    [WORKER_READY] = "ready",   [WORKER_DRAINING] = "draining", [WORKER_FAILED] = "failed",
};
_Static_assert(sizeof state_names / sizeof *state_names == WORKER_STATE_COUNT, "a name for every state");

static const char *const trace_names[] = {
    [TRACE_STEP] = "step",
    [TRACE_ADMITTED] = "admitted",
    [TRACE_TOKENIZED] = "tokenized",
    [TRACE_SLOT] = "slot",
    [TRACE_PREFIX] = "prefix",
    [TRACE_PREFILL_BEGIN] = "prefill_begin",
    [TRACE_PREFILL_END] = "prefill_end",
    [TRACE_FIRST_TOKEN] = "first_token",
    [TRACE_SLOT_LOST] = "slot_lost",
    [TRACE_GIVEN_BACK] = "given_back",
    [TRACE_END] = "end",
};
_Static_assert(sizeof trace_names / sizeof *trace_names == TRACE_WHAT_COUNT, "a name for all that is traced");

static const char *const policy_names[] = {[DISCONNECT_CANCEL] = "cancel", [DISCONNECT_KEEP] = "keep"};

static const char *const grammar_names[] = {[GRAMMAR_TEXT_GBNF] = "gbnf",
                                            [GRAMMAR_TEXT_JSON] = "json",
                                            [GRAMMAR_TEXT_SCHEMA] = "schema",
                                            [GRAMMAR_TEXT_REGEX] = "regex"};
_Static_assert(sizeof grammar_names / sizeof *grammar_names == GRAMMAR_TEXT_KIND_COUNT,
               "a name for every kind of grammar");

const struct name_table names_of_kinds = {kind_names, MESSAGE_KIND_COUNT};
const struct name_table names_of_errors = {error_names, PROTO_ERROR_COUNT};
const struct name_table names_of_reasons = {reason_names, END_REASON_COUNT};
const struct name_table names_of_limits = {limit_names, END_LIMIT_COUNT};
const struct name_table names_of_states = {state_names, WORKER_STATE_COUNT};
const struct name_table names_of_traces = {trace_names, TRACE_WHAT_COUNT};
const struct name_table names_of_policies = {policy_names, 2};
const struct name_table names_of_grammars = {grammar_names, GRAMMAR_TEXT_KIND_COUNT};

/* A value that came over the wire was checked; one from a caller's mistake still gets a name. */
static const char *name_at(const char *const *names, unsigned n, unsigned i)
{
    return i < n ? names[i] : "invalid";
}

const char *message_kind_name(enum message_kind kind)
{
    return name_at(kind_names, MESSAGE_KIND_COUNT, kind);
}

const char *proto_error_name(enum proto_error error)
{
    return name_at(error_names, PROTO_ERROR_COUNT, error);
}

const char *end_reason_name(enum end_reason reason)
{
    return name_at(reason_names, END_REASON_COUNT, reason);
}

const char *end_limit_name(enum end_limit limit)
{
    return name_at(limit_names, END_LIMIT_COUNT, limit);
}

const char *worker_state_name(enum worker_state state)
{
    return name_at(state_names, WORKER_STATE_COUNT, state);
}

const char *trace_what_name(enum trace_what what)
{
    return name_at(trace_names, TRACE_WHAT_COUNT, what);
}

bool name_find(const struct name_table *table, struct bytes name, uint32_t *ret_value)
{
    for (uint32_t i = 0; i < table->n; i++) {
        if (strlen(table->names[i]) == name.len && memcmp(table->names[i], name.data, name.len) == 0) {
            *ret_value = i;
            return true;
        }
    }
    return false;
}

enum message_kind message_kind_find(struct bytes name)
{
    /* Frames outnumber all else by far. */
    if (name.len == 5 && memcmp(name.data, "frame", 5) == 0)
        return MESSAGE_FRAME;
    const struct name_table kinds = {kind_names, MESSAGE_KIND_COUNT};
    uint32_t kind;
    return name_find(&kinds, name, &kind) ? (enum message_kind)kind : MESSAGE_NONE;
}

int epoch_compare(struct epoch a, struct epoch b)
{
    if (a.boot != b.boot)
        return a.boot < b.boot ? -1 : 1;
    return a.move == b.move ? 0 : a.move < b.move ? -1 : 1;
}
