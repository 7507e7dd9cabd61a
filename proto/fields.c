/* SPDX-License-Identifier: MIT */
/* The tables: every kind's fields with their keys, types and bounds, in the order in which they are encoded.
 *
 * This is the protocol as data; PROTOCOL.md is the same for people. Offsets are from struct message for the
 * table of a kind, from the part's own struct for the table of a part. Macros name the few shapes that occur,
 * so that a line below reads like a line of PROTOCOL.md. */

#include "proto/fields.h"

/* A field a line, however long. */
/* clang-format off */
#define KEY(k, t, o) .key = (k), .key_len = sizeof(k) - 1, .type = (t), .offset = (uint32_t)(o)
#define REQUIRED     .flags = FIELD_REQUIRED | FIELD_ALWAYS
#define ALWAYS       .flags = FIELD_ALWAYS
#define LEFT         .flags = FIELD_LEFT
#define IN(part)     offsetof(struct message, part)
/* Does not compile where a field_set is too small. */
#define N_OF(array) (sizeof(array) / sizeof *(array) * sizeof(char[sizeof(array) / sizeof *(array) <= FIELD_TABLE_MOST ? 1 : -1]))
#define TABLE(array) {.fields = (array), .n = N_OF(array)}
#define CHECKED_TABLE(array, test) {.fields = (array), .n = N_OF(array), .check = (test)}
#define PART(array, type, test) {.fields = (array), .n = N_OF(array), .size = sizeof(type), .check = (test)}

#define ID(k, o)           {KEY(k, FIELD_ID, o), REQUIRED}
#define EPOCH(k, o)        {KEY(k, FIELD_EPOCH, o), REQUIRED}
#define RANGE(k, o)        {KEY(k, FIELD_RANGE, o), REQUIRED}
#define FLAG(k, o)         {KEY(k, FIELD_BOOL, o)}
#define U32(k, o)          {KEY(k, FIELD_U32, o), REQUIRED, .high = UINT32_MAX}
#define U32_OR_0(k, o)     {KEY(k, FIELD_U32, o), .high = UINT32_MAX}
#define U64(k, o)          {KEY(k, FIELD_U64, o), REQUIRED, .high = UINT64_MAX}
#define U64_OR_0(k, o)     {KEY(k, FIELD_U64, o), .high = UINT64_MAX}
#define COUNTER(k, o)      {KEY(k, FIELD_U64, o), REQUIRED, .high = FIELDS_MAX_COUNTER}
#define COUNTER_OR_0(k, o) {KEY(k, FIELD_U64, o), .high = FIELDS_MAX_COUNTER}
#define NAME(k, o)         {KEY(k, FIELD_NAME, o), REQUIRED, .high = PROTO_MAX_NAME_BYTES}
#define NAME_OR_0(k, o)    {KEY(k, FIELD_NAME, o), .high = PROTO_MAX_NAME_BYTES}
#define DIALECT_OR_0(k, o) {KEY(k, FIELD_TEXT, o), .high = PROTO_MAX_DIALECT_BYTES}
#define TEXT_OR_0(k, o)    {KEY(k, FIELD_TEXT, o), .high = PROTO_MAX_TEXT_BYTES}
#define QUOTA(what, o) \
    U64_OR_0("limit_" what, o + offsetof(struct quota, limit)), \
    U64_OR_0("remaining_" what, o + offsetof(struct quota, remaining)), \
    U64_OR_0("reset_" what "_ms", o + offsetof(struct quota, reset_ms))
#define QUOTAS(o) \
    QUOTA("requests", o + offsetof(struct quotas, requests)), QUOTA("tokens", o + offsetof(struct quotas, tokens))
#define ALIASES(k, o)      {KEY(k, FIELD_NAMES, o), .low = 1, .high = PROTO_MAX_ALIASES, .item_high = PROTO_MAX_NAME_BYTES}
#define FEATURES(k, o)     {KEY(k, FIELD_NAMES, o), .high = PROTO_MAX_FEATURES, .item_high = PROTO_MAX_NAME_BYTES}
#define MILLISECONDS(k, o) {KEY(k, FIELD_REAL, o), ALWAYS, .real_high = 1e15}
#define MILLISECONDS_OR_0(k, o) {KEY(k, FIELD_REAL, o), .real_high = 1e15}

/* Thirty days: enough for any deadline, and no sum of clocks overflows. */
#define MAX_DEADLINE_MS 2592000000ull

#define OPTION(l, h) .letter = (l), .help = (h)
#define HELP(h)      .help = (h)

static const struct field text_bias_fields[] = {
    {KEY("text", FIELD_TEXT, offsetof(struct text_bias, text)), REQUIRED, .high = PROTO_MAX_WORD_BYTES},
    {KEY("bias", FIELD_REAL, offsetof(struct text_bias, bias)), REQUIRED, .real_low = -SAMPLING_MAX_BIAS, .real_high = SAMPLING_MAX_BIAS},
};
static const struct field_table text_bias_table = PART(text_bias_fields, struct text_bias, NULL);

/* The fields of struct generation, a generate's own and an assign's: it stands first in both. */
_Static_assert(IN(generate.generation) == IN(assign.generation), "one table for both");
#define GIVEN(member) IN(generate.generation.member)
#define SAMPLING_REAL(name, least, most, initial_value, l, h) \
    {KEY(#name, FIELD_REAL, GIVEN(sampling.name)), LEFT, .real_low = (least), .real_high = (most), .initial = (initial_value), OPTION(l, h)},
#define SAMPLING_COUNT(name, least, most, initial_value, l, h) \
    {KEY(#name, FIELD_I32, GIVEN(sampling.name)), LEFT, .low = (least), .high = (most), .initial = (initial_value), OPTION(l, h)},
#define GENERATION \
    {KEY("prompt", FIELD_PROMPT, GIVEN(prompt)), REQUIRED}, \
    {KEY("embed", FIELD_BOOL, GIVEN(embed)), HELP("text and ids only: the answer is the prompt's embedding, without tokens")}, \
    {KEY("special", FIELD_BOOL, GIVEN(prompt.special)), HELP("text prompts: parse control tokens in the text")}, \
    {KEY("suffix", FIELD_TEXT, GIVEN(prompt.suffix)), .present = GIVEN(prompt.has_suffix), .high = PROTO_MAX_GENERATE_BYTES, HELP("text only, which may be empty then: fill in the gap between it and this text")}, \
    {KEY("files", FIELD_TEXT, GIVEN(prompt.files)), .high = PROTO_MAX_GENERATE_BYTES, HELP("with `suffix`: JSON, an array of other files, objects with filename and text")}, \
    {KEY("document", FIELD_TEXT, GIVEN(prompt.document)), .present = GIVEN(prompt.has_document), .high = PROTO_MAX_GENERATE_BYTES, HELP("text with `embed` only, for models that rank: score how well this text answers the prompt")}, \
    {KEY("continue_turn", FIELD_BOOL, GIVEN(prompt.continue_turn)), HELP("messages only: continue the last one, which is the assistant's")}, \
    {KEY("tools", FIELD_TEXT, GIVEN(tools)), .high = PROTO_MAX_GENERATE_BYTES, HELP("messages only: JSON, an array of the tools that the model may call")}, \
    {KEY("template_kwargs", FIELD_TEXT, GIVEN(prompt.template_kwargs)), .high = PROTO_MAX_GENERATE_BYTES, HELP("messages only: JSON, an object of variables for the chat template")}, \
    {KEY("marks", FIELD_BOOL, GIVEN(marks)), HELP("messages only: write out the control tokens around calls, thoughts and answers")}, \
    {KEY("model", FIELD_NAME, GIVEN(model)), .high = PROTO_MAX_NAME_BYTES, HELP("which model, by name; empty: any")}, \
    {KEY("max_tokens", FIELD_U32, GIVEN(max_tokens)), .low = 1, .high = INT32_MAX, OPTION("N", "max tokens to generate; left out: to the end of the context")}, \
    {KEY("fit_context", FIELD_BOOL, GIVEN(fit_context)), HELP("reduce max_tokens to fit the context instead of rejecting the request")}, \
    SAMPLING_PARAMETERS(SAMPLING_REAL, SAMPLING_COUNT) \
    {KEY("logit_bias", FIELD_BIASES, GIVEN(sampling.logit_bias)), .high = SAMPLING_MAX_BIASES, .real_low = -SAMPLING_MAX_BIAS, .real_high = SAMPLING_MAX_BIAS, HELP("added to the logits of these ids, −∞: never; biases of a repeated id add up")}, \
    {KEY("logit_bias_text", FIELD_MAPS, GIVEN(logit_bias_text)), .high = SAMPLING_MAX_BIASES, .table = &text_bias_table, HELP("the same for each id of one of these texts")}, \
    {KEY("bad_words", FIELD_NAMES, GIVEN(bad_words)), .low = 1, .high = PROTO_MAX_BAD_WORDS, .item_high = PROTO_MAX_WORD_BYTES, HELP("texts whose ids the output never completes")}, \
    {KEY("dry_sequence_breakers", FIELD_NAMES, GIVEN(dry_breakers)), .present = GIVEN(has_dry_breakers), .low = 1, .high = PROTO_MAX_DRY_BREAKERS, .item_high = PROTO_MAX_WORD_BYTES, HELP("DRY: repeats end at these texts; left out: newline, colon, quotation mark and asterisk")}, \
    {KEY("seed", FIELD_U64, GIVEN(sampling.seed)), .present = GIVEN(has_seed), .high = UINT64_MAX, OPTION("N", "same seed, same request: same output; left out: a random one")}, \
    {KEY("stop", FIELD_NAMES, GIVEN(stop)), .low = 1, .high = PROTO_MAX_STOPS, .item_high = PROTO_MAX_STOP_BYTES, HELP("end the output before the first of them")}, \
    {KEY("stop_ids", FIELD_IDS, GIVEN(stop_ids)), .high = PROTO_MAX_STOP_IDS, HELP("end the output, in addition to the model's own end ids")}, \
    {KEY("ignore_eos", FIELD_BOOL, GIVEN(ignore_eos)), HELP("never sample the model's own end ids; not with a grammar")}, \
    {KEY("min_tokens", FIELD_U32, GIVEN(min_tokens)), .high = INT32_MAX, OPTION("N", "no end id and no stop ends the output before this many tokens; not with a grammar")}, \
    {KEY("thinking_budget", FIELD_U32, GIVEN(prompt.thinking_budget)), .present = GIVEN(prompt.has_thinking_budget), .high = INT32_MAX, OPTION("N", "end a thought after this many tokens, as the chat template ends one; 0 = no thought")}, \
    {KEY("grammar", FIELD_TEXT, GIVEN(grammar.text)), .high = PROTO_MAX_GRAMMAR_BYTES, HELP("what the output must match, in the form that grammar_kind names")}, \
    {KEY("grammar_kind", FIELD_ENUM, GIVEN(grammar.kind)), .names = &names_of_grammars, HELP("gbnf, json (any object, without grammar), schema or regex")}, \
    {KEY("logprobs", FIELD_U32, GIVEN(logprobs)), .high = PROTO_MAX_LOGPROBS + 1, HELP("n: log probabilities of the id and of the n − 1 most likely; 0 = none")}, \
    {KEY("pieces", FIELD_BOOL, GIVEN(pieces)), HELP("with `logprobs`: frames also carry the bytes of each of those ids")}, \
    {KEY("priority", FIELD_I32, GIVEN(priority)), .low = -8, .high = 8, OPTION("N", "higher ones go first")}, \
    {KEY("deadline_ms", FIELD_U64, GIVEN(deadline_ms)), .high = MAX_DEADLINE_MS, OPTION("N", "end this many milliseconds after arrival at the broker; 0 = none")}, \
    {KEY("on_disconnect", FIELD_ENUM, GIVEN(on_disconnect)), .names = &names_of_policies, HELP("what happens to the request when the session leaves")}, \
    {KEY("keep_s", FIELD_U32, GIVEN(keep_s)), .high = 86400, HELP("seconds, for `keep`")}, \
    {KEY("cache_salt", FIELD_NAME, GIVEN(cache_salt)), .high = PROTO_MAX_NAME_BYTES, HELP("cached prefixes are shared with requests of the same salt only; empty: with those of the same tenant")}, \
    {KEY("cache_prompt", FIELD_BOOL, GIVEN(cache_prompt)), .initial = true, HELP("false: neither look up nor keep the prompt in the prefix cache")}, \
    {KEY("tenant", FIELD_NAME, GIVEN(tenant)), .high = PROTO_MAX_NAME_BYTES, HELP("on whose behalf the client asks: turns and shares are divided among tenants")}, \
    {KEY("request_id", FIELD_NAME, GIVEN(request_id)), .high = PROTO_MAX_NAME_BYTES, HELP("a name for the request in logs and status: printable ASCII without blanks")}, \
    {KEY("progress", FIELD_BOOL, GIVEN(progress)), HELP("report how much of the prompt has been processed")}, \
    {KEY("require", FIELD_NAMES, GIVEN(require)), .high = PROTO_MAX_FEATURES, .item_high = PROTO_MAX_NAME_BYTES, HELP("features that the request needs")}, \
    {KEY("output", FIELD_IDS, GIVEN(output)), .high = PROTO_MAX_PROMPT_IDS, HELP("ids generated before, elsewhere: continue after them")}, \
    {KEY("off", FIELD_U64, GIVEN(off)), .high = FIELDS_MAX_COUNTER, HELP("with `output`: bytes of its text that the client has")}, \
    {KEY("lost", FIELD_U32, GIVEN(lost)), .high = PROTO_MAX_LOST, HELP("workers that died with the request so far")}, \
    {KEY("prompt_digest", FIELD_DIGEST, GIVEN(prompt_digest)), HELP("of the prompt that `output` continues, from one of its frames; left out: any")}

/* ---- parts ---- */

static const struct field usage_fields[] = {
    U32("prompt_tokens", offsetof(struct usage, prompt_tokens)),
    U32_OR_0("cached_tokens", offsetof(struct usage, cached_tokens)),
    U32("output_tokens", offsetof(struct usage, output_tokens)),
    U32_OR_0("drafted_tokens", offsetof(struct usage, drafted_tokens)),
    U32_OR_0("accepted_tokens", offsetof(struct usage, accepted_tokens)),
};
static const struct field_table usage_table = PART(usage_fields, struct usage, field_table_check_usage);

static const struct field timing_fields[] = {
    MILLISECONDS("queue_ms", offsetof(struct timing, queue_ms)),
    MILLISECONDS("prefill_ms", offsetof(struct timing, prefill_ms)),
    MILLISECONDS_OR_0("prepare_ms", offsetof(struct timing, prepare_ms)),
    MILLISECONDS_OR_0("wait_ms", offsetof(struct timing, wait_ms)),
    MILLISECONDS_OR_0("lookup_ms", offsetof(struct timing, lookup_ms)),
    MILLISECONDS("decode_ms", offsetof(struct timing, decode_ms)),
};
static const struct field_table timing_table = PART(timing_fields, struct timing, NULL);

static const struct field ending_fields[] = {
    {KEY("reason", FIELD_ENUM, offsetof(struct ending, reason)), REQUIRED, .names = &names_of_reasons},
    {KEY("error", FIELD_ENUM, offsetof(struct ending, error)), .low = 1, .names = &names_of_errors},
    TEXT_OR_0("text", offsetof(struct ending, text)),
    {KEY("stop", FIELD_TEXT, offsetof(struct ending, stop)), .high = PROTO_MAX_STOP_BYTES},
    {KEY("limit", FIELD_ENUM, offsetof(struct ending, limit)), .low = 1, .names = &names_of_limits},
    U32_OR_0("lost", offsetof(struct ending, lost)),
    {KEY("usage", FIELD_MAP, offsetof(struct ending, usage)), REQUIRED, .table = &usage_table},
    {KEY("timing", FIELD_MAP, offsetof(struct ending, timing)), REQUIRED, .table = &timing_table},
};
static const struct field_table ending_table = PART(ending_fields, struct ending, field_table_check_ending);
#define ENDING(o) {KEY("end", FIELD_MAP, o), REQUIRED, .table = &ending_table}

static const struct field limits_fields[] = {
    U32("request_bytes", offsetof(struct limits, request_bytes)),
    U32("prompt_ids", offsetof(struct limits, prompt_ids)),
    U32("stops", offsetof(struct limits, stops)),
    U32("stop_bytes", offsetof(struct limits, stop_bytes)),
    U32("stop_ids", offsetof(struct limits, stop_ids)),
    U32("logprobs", offsetof(struct limits, logprobs)),
    U32_OR_0("logit_bias", offsetof(struct limits, logit_bias)),
    U32_OR_0("grammar_bytes", offsetof(struct limits, grammar_bytes)),
    U32_OR_0("max_tokens", offsetof(struct limits, max_tokens)),
    U32_OR_0("generate_bytes", offsetof(struct limits, generate_bytes)),
};
static const struct field_table limits_table = PART(limits_fields, struct limits, NULL);

static const struct field model_fields[] = {
    NAME("name", offsetof(struct model_info, name)),
    {KEY("digest", FIELD_DIGEST, offsetof(struct model_info, digest)), REQUIRED},
    U32("context", offsetof(struct model_info, context)),
    U32_OR_0("workers", offsetof(struct model_info, workers)),
    FLAG("chat", offsetof(struct model_info, chat)),
    {KEY("embedding", FIELD_U32, offsetof(struct model_info, embedding)), .high = PROTO_MAX_EMBEDDING},
    FLAG("ranks", offsetof(struct model_info, ranks)),
};
static const struct field_table model_table = PART(model_fields, struct model_info, NULL);

#define USED(k, o) {KEY(k, FIELD_REAL, o), .real_high = PROTO_MAX_USED}
static const struct field tenant_use_fields[] = {
    ID("id", offsetof(struct tenant_use, id)),
    COUNTER_OR_0("requests", offsetof(struct tenant_use, requests)),
    COUNTER_OR_0("tokens", offsetof(struct tenant_use, tokens)),
    USED("rpm", offsetof(struct tenant_use, rpm)),
    USED("tpm", offsetof(struct tenant_use, tpm)),
    USED("rpd", offsetof(struct tenant_use, rpd)),
    USED("tpd", offsetof(struct tenant_use, tpd)),
    U32_OR_0("gateways", offsetof(struct tenant_use, gateways)),
};
static const struct field_table tenant_use_table = PART(tenant_use_fields, struct tenant_use, NULL);

#define STATE(k, o) {KEY(k, FIELD_ENUM, o), REQUIRED, .names = &names_of_states}
#define REAL(k, o)  {KEY(k, FIELD_REAL, o), .real_high = 1e12}
#define HISTOGRAM(k, o) {KEY(k, FIELD_HISTOGRAM, o), .low = HISTOGRAM_BUCKETS + 1, .high = HISTOGRAM_BUCKETS + 1}
#define SECONDS(k, o)   HISTOGRAM(k, o)
#define ROWS(k, o)      HISTOGRAM(k, o)
#define SHARES(k, o)    HISTOGRAM(k, o)
#define WORKER_ROW(type, name, ...) type(#name, offsetof(struct worker_status, name)),
static const struct field worker_fields[] = {
    WORKER_STATUS_FIELDS(WORKER_ROW)
};
_Static_assert(sizeof worker_fields / sizeof *worker_fields <= FIELDS_MAX_KEYS,
               "receivers take no larger map");
static const struct field_table worker_table = PART(worker_fields, struct worker_status, NULL);

#define REQUEST_ROW(type, name, ...) type(#name, offsetof(struct request_status, name)),
static const struct field request_fields[] = {
    REQUEST_STATUS_FIELDS(REQUEST_ROW)
};
static const struct field_table request_table = PART(request_fields, struct request_status, NULL);

#define TRACED(type, name) type(#name, offsetof(struct trace_record, name))
static const struct field trace_fields[] = {
    {KEY("what", FIELD_ENUM, offsetof(struct trace_record, what)), REQUIRED, .names = &names_of_traces},
    TRACED(U64, at_us), TRACED(U64_OR_0, n),
    TRACED(U32_OR_0, decode_rows), TRACED(U32_OR_0, prefill_rows), TRACED(U32_OR_0, padding_rows), TRACED(U32_OR_0, ids),
    TRACED(U32_OR_0, total_us), TRACED(U32_OR_0, embed_us), TRACED(U32_OR_0, layers_us), TRACED(U32_OR_0, sample_us),
    {KEY("session", FIELD_ID, offsetof(struct trace_record, session))},
    {KEY("id", FIELD_ID, offsetof(struct trace_record, id))},
    TRACED(NAME_OR_0, request_id),
    {KEY("reason", FIELD_ENUM, offsetof(struct trace_record, reason)), .names = &names_of_reasons},
};
static const struct field_table trace_table = PART(trace_fields, struct trace_record, NULL);

#define MEASURED(name) U64_OR_0(#name, offsetof(struct kernel_profile, name))
static const struct field kernel_fields[] = {
    NAME("name", offsetof(struct kernel_profile, name)),
    MEASURED(n), MEASURED(ns), MEASURED(bytes), MEASURED(macs), MEASURED(blocks), MEASURED(threads), MEASURED(shared_bytes),
    MEASURED(loaded), MEASURED(sectors), MEASURED(asked), MEASURED(passes), MEASURED(conflicts),
};
static const struct field_table kernel_table = PART(kernel_fields, struct kernel_profile, NULL);

static const struct field given_fields[] = {
    NAME("kind", offsetof(struct given_memory, kind)),
    U64_OR_0("bytes", offsetof(struct given_memory, bytes)),
};
static const struct field_table given_table = PART(given_fields, struct given_memory, NULL);

static const struct field chat_fields[] = {
    NAME("role", offsetof(struct chat_message, role)),
    {KEY("content", FIELD_TEXT, offsetof(struct chat_message, content)), REQUIRED, .high = PROTO_MAX_GENERATE_BYTES},
    NAME_OR_0("name", offsetof(struct chat_message, name)),
    {KEY("tool_calls", FIELD_TEXT, offsetof(struct chat_message, tool_calls)), .high = PROTO_MAX_GENERATE_BYTES},
    NAME_OR_0("tool_call_id", offsetof(struct chat_message, tool_call_id)),
    {KEY("thought", FIELD_TEXT, offsetof(struct chat_message, thought)), .high = PROTO_MAX_GENERATE_BYTES},
};
static const struct field_table chat_table = PART(chat_fields, struct chat_message, NULL);

/* ---- client → broker ---- */

static const struct field hello_fields[] = {
    RANGE("proto", IN(hello.proto)),
    FEATURES("features", IN(hello.features)),
    ID("session", IN(hello.session)),
};
static const struct field join_fields[] = {
    U64("nonce", IN(join.nonce)),
};
static const struct field generate_fields[] = {
    ID("id", IN(generate.id)),
    GENERATION,
    {KEY("rpm", FIELD_U64, GIVEN(rates.rpm)), .high = PROTO_MAX_RATE, HELP("most requests of the tenant in a minute; 0 = no limit")},
    {KEY("tpm", FIELD_U64, GIVEN(rates.tpm)), .high = PROTO_MAX_RATE, HELP("most tokens of the tenant, of prompts and answers, in a minute")},
    {KEY("rpd", FIELD_U64, GIVEN(rates.rpd)), .high = PROTO_MAX_RATE, HELP("most requests of the tenant in a day")},
    {KEY("tpd", FIELD_U64, GIVEN(rates.tpd)), .high = PROTO_MAX_RATE, HELP("most tokens of the tenant in a day")},
    {KEY("part", FIELD_BOOL, GIVEN(part)), HELP("belongs to a request that was counted: these limits count its tokens only")},
};
static const struct field generate_part_fields[] = {
    ID("id", IN(generate_part.id)),
    U32("total", IN(generate_part.total)),
    U32("at", IN(generate_part.at)),
    {KEY("data", FIELD_BIN, IN(generate_part.data)), REQUIRED, .low = 1, .high = PROTO_MAX_REQUEST_BYTES},
    NAME_OR_0("tenant", IN(generate_part.tenant)),
};
static const struct field cancel_fields[] = {
    {KEY("session", FIELD_ID, IN(cancel.session))},
    ID("id", IN(cancel.id)),
};
static const struct field replay_fields[] = {
    ID("id", IN(replay.id)),
    {KEY("epoch", FIELD_EPOCH, IN(replay.epoch))},
    COUNTER("next", IN(replay.next)),
};
static const struct field attach_fields[] = {
    {KEY("session", FIELD_ID, IN(attach.session))},
    ID("id", IN(attach.id)),
    COUNTER_OR_0("next", IN(attach.next)),
};
static const struct field status_fields[] = {
    U64_OR_0("ref", IN(status.ref)),
    {KEY("requests", FIELD_U32, IN(status.requests)), .high = PROTO_MAX_REQUESTS},
    NAME_OR_0("request_id", IN(status.request_id)),
};
static const struct field tokenize_fields[] = {
    U64_OR_0("ref", IN(tokenize.ref)),
    NAME_OR_0("model", IN(tokenize.model)),
    {KEY("text", FIELD_TEXT, IN(tokenize.text)), .present = IN(tokenize.has_text), .high = PROTO_MAX_REQUEST_BYTES},
    {KEY("messages", FIELD_MAPS, IN(tokenize.prompt.chat)), .high = PROTO_MAX_MESSAGES, .table = &chat_table},
    {KEY("tools", FIELD_TEXT, IN(tokenize.tools)), .high = PROTO_MAX_REQUEST_BYTES},
    {KEY("template_kwargs", FIELD_TEXT, IN(tokenize.prompt.template_kwargs)), .high = PROTO_MAX_REQUEST_BYTES},
    FLAG("continue_turn", IN(tokenize.prompt.continue_turn)),
    FLAG("special", IN(tokenize.special)),
    FLAG("bare", IN(tokenize.bare)),
    FLAG("pieces", IN(tokenize.pieces)),
    FLAG("written", IN(tokenize.written)),
};
static const struct field detokenize_fields[] = {
    U64_OR_0("ref", IN(detokenize.ref)),
    NAME_OR_0("model", IN(detokenize.model)),
    {KEY("ids", FIELD_IDS, IN(detokenize.ids)), REQUIRED, .high = PROTO_MAX_QUESTION_IDS},
    FLAG("special", IN(detokenize.special)),
};
static const struct field trace_question_fields[] = {
    U64_OR_0("ref", IN(trace.ref)),
    NAME("worker", IN(trace.worker)),
    COUNTER_OR_0("from", IN(trace.from)),
    {KEY("most", FIELD_U32, IN(trace.most)), .high = PROTO_MAX_TRACE},
};
static const struct field profile_fields[] = {
    U64_OR_0("ref", IN(profile.ref)),
    NAME("worker", IN(profile.worker)),
    {KEY("run", FIELD_U64, IN(profile.run)), REQUIRED, .low = 1, .high = UINT64_MAX},
    {KEY("steps", FIELD_U32, IN(profile.steps)), REQUIRED, .low = 1, .high = PROTO_MAX_PROFILE},
};
static const struct field trim_fields[] = {
    U64_OR_0("ref", IN(trim.ref)),
    NAME("worker", IN(trim.worker)),
    {KEY("run", FIELD_U64, IN(trim.run)), REQUIRED, .low = 1, .high = UINT64_MAX},
    FLAG("prefixes", IN(trim.prefixes)),
};
static const struct field ping_fields[] = {
    U64_OR_0("ref", IN(ping.ref)),
    {KEY("taken", FIELD_BINS, IN(ping.taken)), .high = PROTO_MAX_TAKEN, .item_high = sizeof(struct id128)},
    FLAG("load", IN(ping.load)),
};
static const struct field prefixes_fields[] = {
    U64_OR_0("ref", IN(prefixes.ref)),
    U64_OR_0("boot", IN(prefixes.boot)),
    U64_OR_0("next", IN(prefixes.next)),
    U32_OR_0("at", IN(prefixes.at)),
    {KEY("secret", FIELD_TEXT, IN(prefixes.secret)), REQUIRED, .high = PROTO_MAX_FLEET_SECRET},
};
static const struct field tenants_fields[] = { /* also tenants_ok */
    U64_OR_0("ref", IN(tenants.ref)),
    {KEY("tenants", FIELD_MAPS, IN(tenants.tenants)), .high = PROTO_MAX_TENANTS, .table = &tenant_use_table},
};

/* ---- broker → client ---- */

static const struct field hello_ok_fields[] = {
    RANGE("proto", IN(hello_ok.proto)),
    FEATURES("features", IN(hello_ok.features)),
    U64("boot", IN(hello_ok.boot)),
    {KEY("stream", FIELD_NAMES, IN(hello_ok.stream)), REQUIRED, .low = 1, .high = 8, .item_high = PROTO_MAX_NAME_BYTES},
    {KEY("limits", FIELD_MAP, IN(hello_ok.limits)), REQUIRED, .table = &limits_table},
    U32("lease_ms", IN(hello_ok.lease_ms)),
    {KEY("models", FIELD_MAPS, IN(hello_ok.models)), .high = PROTO_MAX_WORKERS, .table = &model_table},
};
static const struct field welcome_fields[] = {
    U64("nonce", IN(welcome.nonce)),
};
static const struct field accepted_fields[] = {
    ID("id", IN(accepted.id)),
    EPOCH("epoch", IN(accepted.epoch)),
    U64("seed", IN(accepted.seed)),
    FLAG("again", IN(accepted.again)),
    QUOTAS(IN(accepted.quotas)),
};
static const struct field error_fields[] = {
    {KEY("id", FIELD_ID, IN(error.id)), .present = IN(error.has_id)},
    U64_OR_0("ref", IN(error.ref)),
    {KEY("error", FIELD_ENUM, IN(error.error)), REQUIRED, .low = 1, .names = &names_of_errors},
    {KEY("text", FIELD_TEXT, IN(error.text)), REQUIRED, .high = PROTO_MAX_TEXT_BYTES},
    U32_OR_0("retry_after_ms", IN(error.retry_after_ms)),
    {KEY("of", FIELD_ENUM, IN(error.of)), .low = 1, .names = &names_of_kinds},
    QUOTAS(IN(error.quotas)),
};
static const struct field cancel_ok_fields[] = {
    ID("id", IN(cancel_ok.id)),
};
static const struct field replay_ok_fields[] = {
    ID("id", IN(replay_ok.id)),
    EPOCH("epoch", IN(replay_ok.epoch)),
    COUNTER("from", IN(replay_ok.from)),
    COUNTER("next", IN(replay_ok.next)),
    FLAG("done", IN(replay_ok.done)),
    {KEY("frames", FIELD_BINS, IN(replay_ok.frames)), .high = PROTO_MAX_PAGE_FRAMES, .item_high = PROTO_MAX_FRAME_BYTES},
};
static const struct field attach_ok_fields[] = {
    ID("id", IN(attach_ok.id)),
    EPOCH("epoch", IN(attach_ok.epoch)),
    COUNTER("next", IN(attach_ok.next)),
    COUNTER_OR_0("from", IN(attach_ok.from)),
    COUNTER_OR_0("off", IN(attach_ok.off)),
};
#define POOL_ROW(type, name, ...) type(#name, IN(status_ok.name)),
static const struct field status_ok_fields[] = {
    U64_OR_0("ref", IN(status_ok.ref)),
    POOL_STATUS_FIELDS(POOL_ROW)
    {KEY("workers", FIELD_MAPS, IN(status_ok.workers)), .high = PROTO_MAX_WORKERS, .table = &worker_table},
    {KEY("requests", FIELD_MAPS, IN(status_ok.requests)), .high = PROTO_MAX_REQUESTS, .table = &request_table},
};
static const struct field tokenize_ok_fields[] = {
    U64_OR_0("ref", IN(tokenize_ok.ref)),
    {KEY("ids", FIELD_IDS, IN(tokenize_ok.ids)), REQUIRED, .high = PROTO_MAX_REQUEST_BYTES},
    {KEY("pieces", FIELD_BINS, IN(tokenize_ok.pieces)), .high = PROTO_MAX_QUESTION_IDS, .item_high = PROTO_MAX_PIECE_BYTES},
    {KEY("text", FIELD_TEXT, IN(tokenize_ok.text)), .high = PROTO_MAX_REQUEST_BYTES},
};
static const struct field detokenize_ok_fields[] = {
    U64_OR_0("ref", IN(detokenize_ok.ref)),
    {KEY("text", FIELD_TEXT, IN(detokenize_ok.text)), REQUIRED, .high = PROTO_MAX_REQUEST_BYTES},
};
static const struct field trace_ok_fields[] = {
    U64_OR_0("ref", IN(trace_ok.ref)),
    U32_OR_0("incarnation", IN(trace_ok.incarnation)),
    COUNTER("next", IN(trace_ok.next)),
    COUNTER_OR_0("lost", IN(trace_ok.lost)),
    {KEY("records", FIELD_MAPS, IN(trace_ok.records)), .high = PROTO_MAX_TRACE, .table = &trace_table},
};
static const struct field profile_ok_fields[] = {
    U64_OR_0("ref", IN(profile_ok.ref)),
    FLAG("done", IN(profile_ok.done)),
    U32_OR_0("steps", IN(profile_ok.steps)),
    U64_OR_0("bandwidth", IN(profile_ok.bandwidth)),
    {KEY("kernels", FIELD_MAPS, IN(profile_ok.kernels)), .high = PROTO_MAX_KERNELS, .table = &kernel_table},
};
static const struct field trim_ok_fields[] = {
    U64_OR_0("ref", IN(trim_ok.ref)),
    U64_OR_0("blocks", IN(trim_ok.blocks)),
    U64_OR_0("resident_before", IN(trim_ok.resident_before)),
    U64_OR_0("resident_after", IN(trim_ok.resident_after)),
    U64_OR_0("device_free_before", IN(trim_ok.device_free_before)),
    U64_OR_0("device_free_after", IN(trim_ok.device_free_after)),
    {KEY("given", FIELD_MAPS, IN(trim_ok.given)), .high = PROTO_MAX_GIVEN, .table = &given_table},
};
static const struct field pong_fields[] = {
    U64_OR_0("ref", IN(pong.ref)),
    U64_OR_0("load", IN(pong.load)),
    U64_OR_0("own", IN(pong.own)),
    U32_OR_0("slots", IN(pong.slots)),
    {KEY("kept", FIELD_U32, IN(pong.kept)), .high = 1000},
    FLAG("draining", IN(pong.draining)),
};
static const struct field prefixes_ok_fields[] = {
    U64_OR_0("ref", IN(prefixes_ok.ref)),
    U64("boot", IN(prefixes_ok.boot)),
    U64("next", IN(prefixes_ok.next)),
    U32_OR_0("at", IN(prefixes_ok.at)),
    U32_OR_0("pieces", IN(prefixes_ok.pieces)),
    FLAG("begins", IN(prefixes_ok.begins)),
    {KEY("space", FIELD_TEXT, IN(prefixes_ok.space)), .high = PROTO_MAX_SPACE_BYTES},
    {KEY("added", FIELD_BIN, IN(prefixes_ok.added)), .high = PROTO_MAX_PIECES * sizeof(uint64_t)},
    {KEY("dropped", FIELD_BIN, IN(prefixes_ok.dropped)), .high = PROTO_MAX_PIECES * sizeof(uint64_t)},
};
static const struct field end_fields[] = {
    ID("id", IN(end.id)),
    EPOCH("epoch", IN(end.epoch)),
    COUNTER("count", IN(end.count)),
    ENDING(IN(end.end)),
};

/* ---- the streams ---- */

static const struct field frame_fields[] = {
    ID("id", IN(frame.id)),
    EPOCH("epoch", IN(frame.epoch)),
    COUNTER("seq", IN(frame.seq)),
    COUNTER("off", IN(frame.off)),
    {KEY("ids", FIELD_IDS, IN(frame.ids)), REQUIRED, .high = PROTO_MAX_FRAME_IDS},
    {KEY("text", FIELD_TEXT, IN(frame.text)), REQUIRED, .high = PROTO_MAX_FRAME_BYTES},
    {KEY("logprobs", FIELD_LOGPROBS, IN(frame.logprobs)), .high = PROTO_MAX_LOGPROBS + 1},
    {KEY("pieces", FIELD_BINS, IN(frame.pieces)), .high = PROTO_MAX_FRAME_IDS * (PROTO_MAX_LOGPROBS + 1), .item_high = PROTO_MAX_PIECE_BYTES},
    {KEY("embedding", FIELD_FLOATS, IN(frame.embedding)), .high = PROTO_MAX_EMBEDDING},
    {KEY("prompt_digest", FIELD_DIGEST, IN(frame.prompt_digest))},
    COUNTER_OR_0("wseq", IN(frame.wseq)),
    {KEY("end", FIELD_MAP, IN(frame.end)), .present = IN(frame.has_end), .table = &ending_table},
};

static const struct field progress_fields[] = {
    ID("id", IN(progress.id)),
    EPOCH("epoch", IN(progress.epoch)),
    U32("total", IN(progress.total)),
    U32_OR_0("cached", IN(progress.cached)),
    U32_OR_0("read", IN(progress.read)),
};

/* ---- worker ↔ broker ---- */

static const struct field register_fields[] = {
    RANGE("proto", IN(register_.proto)),
    FEATURES("features", IN(register_.features)),
    NAME("name", IN(register_.name)),
    U32("incarnation", IN(register_.incarnation)),
    U32("pid", IN(register_.pid)),
    U32("slots", IN(register_.slots)),
    NAME("stream", IN(register_.stream)),
    NAME("model", IN(register_.model)),
    {KEY("digest", FIELD_DIGEST, IN(register_.digest)), REQUIRED},
    U32("context", IN(register_.context)),
    FLAG("chat", IN(register_.chat)),
    NAME_OR_0("tools", IN(register_.tools)),
    FLAG("thinks", IN(register_.thinks)),
    DIALECT_OR_0("dialect", IN(register_.dialect)),
    TEXT_OR_0("sampling", IN(register_.sampling)),
    U32_OR_0("kv_blocks", IN(register_.kv_blocks)),
    U32_OR_0("max_prompt", IN(register_.max_prompt)),
    {KEY("embedding", FIELD_U32, IN(register_.embedding)), .high = PROTO_MAX_EMBEDDING},
    FLAG("ranks", IN(register_.ranks)),
    NAME_OR_0("device", IN(register_.device)),
    U32_OR_0("device_number", IN(register_.device_number)),
    NAME_OR_0("device_uuid", IN(register_.device_uuid)),
    NAME_OR_0("device_driver", IN(register_.device_driver)),
    U32_OR_0("device_capability", IN(register_.device_capability)),
    NAME_OR_0("arithmetic", IN(register_.arithmetic)),
    COUNTER_OR_0("wseq", IN(register_.wseq)),
    COUNTER_OR_0("acked", IN(register_.acked)),
};
static const struct field ready_fields[] = {
    U32("incarnation", IN(ready.incarnation)),
};
static const struct field heartbeat_fields[] = {
    U64_OR_0("ref", IN(heartbeat.ref)),
    U32_OR_0("active", IN(heartbeat.active)),
    U32_OR_0("waiting", IN(heartbeat.waiting)),
    U32_OR_0("kv_free", IN(heartbeat.kv_free)),
    COUNTER_OR_0("wseq", IN(heartbeat.wseq)),
    COUNTER_OR_0("waiting_tokens", IN(heartbeat.waiting_tokens)),
    FLAG("draining", IN(heartbeat.draining)),
};
static const struct field finished_fields[] = {
    ID("session", IN(finished.session)),
    ID("id", IN(finished.id)),
    EPOCH("epoch", IN(finished.epoch)),
    COUNTER("count", IN(finished.count)),
    COUNTER("wseq", IN(finished.wseq)),
    ENDING(IN(finished.end)),
};
static const struct field register_ok_fields[] = {
    U64("boot", IN(register_ok.boot)),
    ID("subscription", IN(register_ok.subscription)),
    U32("heartbeat_ms", IN(register_ok.heartbeat_ms)),
};
static const struct field assign_fields[] = {
    ID("session", IN(assign.session)),
    ID("id", IN(assign.id)),
    EPOCH("epoch", IN(assign.epoch)),
    {KEY("deadline_left_ms", FIELD_U64, IN(assign.deadline_left_ms)), .high = MAX_DEADLINE_MS},
    COUNTER_OR_0("queue_us", IN(assign.queue_us)),
    COUNTER_OR_0("credit", IN(assign.credit)),
    COUNTER_OR_0("most", IN(assign.most)),
    {KEY("cache_space", FIELD_NAME, GIVEN(cache_space)), .high = PROTO_MAX_SPACE_BYTES},
    GENERATION,
};
static const struct field credit_fields[] = {
    {KEY("topics", FIELD_BINS, IN(credit.topics)), REQUIRED, .high = PROTO_MAX_CREDITS, .item_high = PROTO_TOPIC_BYTES},
    {KEY("counts", FIELD_IDS, IN(credit.counts)), REQUIRED, .high = PROTO_MAX_CREDITS},
};
static const struct field ack_fields[] = {
    COUNTER("wseq", IN(ack.wseq)),
};
static const struct field resend_fields[] = {
    COUNTER("wseq", IN(resend.wseq)),
};
static const struct field drain_fields[] = {
    FLAG("hand_over", IN(drain.hand_over)),
};

/* clang-format on */

static const struct field_table tables[] = {
    [MESSAGE_HELLO] = TABLE(hello_fields),
    [MESSAGE_JOIN] = TABLE(join_fields),
    [MESSAGE_GENERATE] = CHECKED_TABLE(generate_fields, field_table_check_generate),
    [MESSAGE_GENERATE_PART] = CHECKED_TABLE(generate_part_fields, field_table_check_part),
    [MESSAGE_CANCEL] = TABLE(cancel_fields),
    [MESSAGE_REPLAY] = TABLE(replay_fields),
    [MESSAGE_ATTACH] = TABLE(attach_fields),
    [MESSAGE_STATUS] = TABLE(status_fields),
    [MESSAGE_TOKENIZE] = CHECKED_TABLE(tokenize_fields, field_table_check_tokenize),
    [MESSAGE_DETOKENIZE] = TABLE(detokenize_fields),
    [MESSAGE_PREFIXES] = TABLE(prefixes_fields),
    [MESSAGE_TENANTS] = CHECKED_TABLE(tenants_fields, field_table_check_tenants),
    [MESSAGE_TRACE] = TABLE(trace_question_fields),
    [MESSAGE_PROFILE] = TABLE(profile_fields),
    [MESSAGE_TRIM] = TABLE(trim_fields),
    [MESSAGE_PING] = TABLE(ping_fields),
    [MESSAGE_BYE] = {0},
    [MESSAGE_HELLO_OK] = TABLE(hello_ok_fields),
    [MESSAGE_WELCOME] = TABLE(welcome_fields),
    [MESSAGE_ACCEPTED] = TABLE(accepted_fields),
    [MESSAGE_ERROR] = TABLE(error_fields),
    [MESSAGE_CANCEL_OK] = TABLE(cancel_ok_fields),
    [MESSAGE_REPLAY_OK] = TABLE(replay_ok_fields),
    [MESSAGE_ATTACH_OK] = TABLE(attach_ok_fields),
    [MESSAGE_STATUS_OK] = TABLE(status_ok_fields),
    [MESSAGE_TOKENIZE_OK] = TABLE(tokenize_ok_fields),
    [MESSAGE_DETOKENIZE_OK] = TABLE(detokenize_ok_fields),
    [MESSAGE_PREFIXES_OK] = TABLE(prefixes_ok_fields),
    [MESSAGE_TENANTS_OK] = CHECKED_TABLE(tenants_fields, field_table_check_tenants),
    [MESSAGE_TRACE_OK] = TABLE(trace_ok_fields),
    [MESSAGE_PROFILE_OK] = TABLE(profile_ok_fields),
    [MESSAGE_TRIM_OK] = TABLE(trim_ok_fields),
    [MESSAGE_PONG] = TABLE(pong_fields),
    [MESSAGE_BYE_OK] = {0},
    [MESSAGE_END] = TABLE(end_fields),
    [MESSAGE_FRAME] = TABLE(frame_fields),
    [MESSAGE_PROGRESS] = TABLE(progress_fields),
    [MESSAGE_REGISTER] = TABLE(register_fields),
    [MESSAGE_READY] = TABLE(ready_fields),
    [MESSAGE_HEARTBEAT] = TABLE(heartbeat_fields),
    [MESSAGE_FINISHED] = TABLE(finished_fields),
    [MESSAGE_REGISTER_OK] = TABLE(register_ok_fields),
    [MESSAGE_ASSIGN] = CHECKED_TABLE(assign_fields, field_table_check_generation),
    [MESSAGE_CREDIT] = CHECKED_TABLE(credit_fields, field_table_check_credit),
    [MESSAGE_ACK] = TABLE(ack_fields),
    [MESSAGE_RESEND] = TABLE(resend_fields),
    [MESSAGE_DRAIN] = TABLE(drain_fields),
};
_Static_assert(sizeof tables / sizeof *tables == MESSAGE_KIND_COUNT, "a table for every kind");

const struct field_table *field_table_of_chat(void)
{
    return &chat_table;
}

const struct field_table *field_table_of(enum message_kind kind)
{
    return kind > MESSAGE_NONE && kind < MESSAGE_KIND_COUNT ? &tables[kind] : NULL;
}

size_t message_max_bytes(enum message_kind kind)
{
    switch (kind) {
    case MESSAGE_FRAME:
        return PROTO_MAX_FRAME_BYTES;
    case MESSAGE_REPLAY_OK: /* frames up to PROTO_MAX_FRAME_BYTES in all, and what wraps them */
        return PROTO_MAX_PAGE_BYTES;
    case MESSAGE_ASSIGN:
        return PROTO_MAX_WORKER_BYTES;
    case MESSAGE_GENERATE:
        return PROTO_MAX_GENERATE_BYTES;
    default:
        return PROTO_MAX_ANSWER_BYTES;
    }
}

struct limits proto_limits(uint32_t context)
{
    struct limits limits = PROTO_LIMITS;
    if (context == 0 || context >= PROTO_MAX_PROMPT_IDS)
        return limits;
    limits.prompt_ids = context > PROTO_LEAST_PROMPT_IDS ? context : PROTO_LEAST_PROMPT_IDS;
    limits.generate_bytes = PROTO_PROMPT_ID_BYTES * limits.prompt_ids;
    return limits;
}

const struct field *field_find(const struct field_table *table, const char *key)
{
    for (uint8_t i = 0; i < table->n; i++)
        if (strcmp(table->fields[i].key, key) == 0)
            return &table->fields[i];
    return NULL;
}

void field_table_initials(const struct field_table *table, void *ret_value)
{
    for (uint8_t i = 0; i < table->n; i++) {
        const struct field *f = &table->fields[i];
        void *at = (uint8_t *)ret_value + f->offset;
        if (f->flags & FIELD_LEFT && f->type == FIELD_REAL)
            *(double *)at = SAMPLING_LEFT_REAL;
        else if (f->flags & FIELD_LEFT)
            *(int32_t *)at = SAMPLING_LEFT_COUNT;
        if (f->flags & FIELD_LEFT || f->initial == 0)
            continue;
        if (f->type == FIELD_BOOL)
            *(bool *)at = true;
        else if (f->type == FIELD_U32)
            *(uint32_t *)at = (uint32_t)f->initial;
        else
            *(double *)at = f->initial;
    }
}

void generation_defaults(struct generation *ret_generation)
{
    struct message message = {0};
    field_table_initials(&tables[MESSAGE_GENERATE], &message);
    *ret_generation = message.generate.generation;
}
