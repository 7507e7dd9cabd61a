/* SPDX-License-Identifier: MIT */
/* Questions (status, trace, profile, trim, prefixes, tenants, tokenize, detokenize) and their answers, known
 * by their references and kinds.
 *
 * A question is asked again after a second, two, four … until its answer comes, and at once when the session
 * opens again: so a broker that restarts in between is met in stride. What is answered is copied out of the
 * message into memory that the client owns until the next answer of its kind. Texts are made fit for a
 * terminal on the way: where they come from anybody may write them. */

#include "client/lib/question.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/core/outgoing.h"
#include "common/hex.h"
#include "common/utf8.h"

#include <utlist.h>

#define AGAIN_NS (1 * CLOCK_NS_PER_S) /* from asking to asking again, at first */

/* Copies a text into `*memory` (which is large enough), zero-terminated. */
static const char *keep(char **memory, struct bytes text)
{
    char *kept = utf8_printable(text, text.len + 1, *memory);
    *memory += text.len + 1;
    return kept;
}

/* The same of a list, whose pointers go into `*pointers`: they end with a NULL. */
static const char *const *keep_list(const char ***pointers, char **memory, struct text_list list)
{
    const char **kept = *pointers;
    for (size_t i = 0; i < list.n; i++)
        kept[i] = keep(memory, list.items[i]);
    kept[list.n] = NULL;
    *pointers += list.n + 1;
    return kept;
}

_Static_assert(QUERN_HISTOGRAM_BOUNDS == HISTOGRAM_BOUNDS, "quern.h repeats it");

static struct quern_histogram keep_histogram(const struct histogram *from,
                                             const struct histogram_scale *scale)
{
    struct quern_histogram kept = {.bounds = scale->reals, .sum = (double)from->sum / scale->per_unit};
    memcpy(kept.counts, from->counts, sizeof kept.counts);
    return kept;
}

/* How a value of the message becomes one of the public struct, what room it takes in memory for texts, and
 * how many pointers to them. */
#define KEEP_NAME(value)         keep(&texts, value)
#define KEEP_NAME_OR_0(value)    keep(&texts, value)
#define KEEP_TEXT_OR_0(value)    keep(&texts, value)
#define KEEP_DIALECT_OR_0(value) keep(&texts, value)
#define KEEP_ALIASES(value)      keep_list(&pointers, &texts, value)
#define KEEP_STATE(value)        worker_state_name(value)
#define KEEP_FLAG(value)         (value)
#define KEEP_U32_OR_0(value)     (value)
#define KEEP_U64(value)          (value)
#define KEEP_U64_OR_0(value)     (value)
#define KEEP_REAL(value)         (value)
#define KEEP_SECONDS(value)      keep_histogram(&(value), &histogram_seconds)
#define KEEP_ROWS(value)         keep_histogram(&(value), &histogram_rows)
#define KEEP_SHARES(value)       keep_histogram(&(value), &histogram_shares)
#define ROOM_OF(value)                                                                                       \
    _Generic((value), struct bytes                                                                           \
             : room_of_text, struct text_list                                                                \
             : room_of_list, default                                                                         \
             : no_room)(&(value))
#define POINTERS_OF(value) _Generic((value), struct text_list : pointers_of_list, default : no_room)(&(value))

static size_t no_room(const void *value)
{
    return 0;
}

static size_t room_of_text(const void *text)
{
    return ((const struct bytes *)text)->len + 1;
}

static size_t room_of_list(const void *list)
{
    const struct text_list *texts = list;
    size_t room = 0;
    for (size_t i = 0; i < texts->n; i++)
        room += texts->items[i].len + 1;
    return room;
}

static size_t pointers_of_list(const void *list)
{
    return ((const struct text_list *)list)->n + 1;
}

static void add_room_of_worker(const struct worker_status *from, size_t *room, size_t *n_pointers)
{
#define ADD_ROOM(type, name, ...)                                                                            \
    *room += ROOM_OF(from->name);                                                                            \
    *n_pointers += POINTERS_OF(from->name);
    WORKER_STATUS_FIELDS(ADD_ROOM)
}

static void add_room_of_request(const struct request_status *from, size_t *room)
{
#define ADD_TEXT(type, name, ...) *room += ROOM_OF(from->name);
    REQUEST_STATUS_FIELDS(ADD_TEXT)
}

/* False when out of memory: it is asked again. */
static bool keep_status(struct quern *client, const struct message *message)
{
    size_t n = message->status_ok.workers.n, room = message->status_ok.version.len + 1, n_pointers = 0;
    const struct worker_status *from = message->status_ok.workers.items;
    for (size_t i = 0; i < n; i++)
        add_room_of_worker(&from[i], &room, &n_pointers);
    const size_t n_requests = message->status_ok.requests.n;
    const struct request_status *asked = message->status_ok.requests.items;
    for (size_t i = 0; i < n_requests; i++)
        add_room_of_request(&asked[i], &room);
    char *memory =
        calloc(1, n * sizeof(struct quern_worker) + n_requests * sizeof(struct quern_request_status) +
                      n_pointers * sizeof(char *) + room);
    if (!memory)
        return false;
    free(client->status_memory);
    client->status_memory = memory;
    struct quern_worker *workers = (struct quern_worker *)(void *)memory;
    struct quern_request_status *requests = (struct quern_request_status *)(void *)(workers + n);
    const char **pointers = (const char **)(void *)(requests + n_requests);
    char *texts = (char *)(void *)(pointers + n_pointers);
#define KEEP_OF_WORKER(type, name, ...) workers[i].name = KEEP_##type(from[i].name);
    for (size_t i = 0; i < n; i++) {
        WORKER_STATUS_FIELDS(KEEP_OF_WORKER)
    }
#define KEEP_OF_REQUEST(type, name, ...) requests[i].name = KEEP_##type(asked[i].name);
    for (size_t i = 0; i < n_requests; i++) {
        REQUEST_STATUS_FIELDS(KEEP_OF_REQUEST)
    }
#define KEEP_OF_POOL(type, name, ...) client->status.name = KEEP_##type(message->status_ok.name);
    POOL_STATUS_FIELDS(KEEP_OF_POOL)
    client->status.workers = workers;
    client->status.n_workers = n;
    client->status.requests = requests;
    client->status.n_requests = n_requests;
    return true;
}

#define HEX_BYTES (2 * sizeof(struct id128) + 1)

/* False when out of memory: it is asked again. */
static bool keep_trace(struct quern *client, const struct message *message)
{
    const struct trace_record *from = message->trace_ok.records.items;
    const size_t n = message->trace_ok.records.n;
    size_t room = 0;
    for (size_t i = 0; i < n; i++)
        room += from[i].request_id.len + 1 + HEX_BYTES;
    char *memory = calloc(1, n * sizeof(struct quern_trace_record) + room + 1);
    if (!memory)
        return false;
    free(client->trace_memory);
    client->trace_memory = memory;
    struct quern_trace_record *records = (struct quern_trace_record *)(void *)memory;
    char *texts = (char *)(void *)(records + n);
    for (size_t i = 0; i < n; i++) {
        const bool step = from[i].what == TRACE_STEP;
        records[i] = (struct quern_trace_record){.what = trace_what_name(from[i].what),
                                                 .at_us = from[i].at_us,
                                                 .n = from[i].n,
                                                 .decode_rows = from[i].decode_rows,
                                                 .prefill_rows = from[i].prefill_rows,
                                                 .padding_rows = from[i].padding_rows,
                                                 .ids = from[i].ids,
                                                 .total_us = from[i].total_us,
                                                 .embed_us = from[i].embed_us,
                                                 .layers_us = from[i].layers_us,
                                                 .sample_us = from[i].sample_us,
                                                 .id = "",
                                                 .request_id = keep(&texts, from[i].request_id),
                                                 .reason = ""};
        if (from[i].what == TRACE_END)
            records[i].reason = end_reason_name(from[i].reason);
        if (!step) {
            hex_write(from[i].id.bytes, sizeof from[i].id.bytes, texts);
            records[i].id = texts;
            texts += HEX_BYTES;
        }
    }
    client->trace = (struct quern_trace){.incarnation = message->trace_ok.incarnation,
                                         .next = message->trace_ok.next,
                                         .lost = message->trace_ok.lost,
                                         .records = records,
                                         .n = n};
    return true;
}

/* False when out of memory: it is asked again. */
static bool keep_profile(struct quern *client, const struct message *message)
{
    const struct kernel_profile *from = message->profile_ok.kernels.items;
    const size_t n = message->profile_ok.kernels.n;
    size_t room = 1;
    for (size_t i = 0; i < n; i++)
        room += from[i].name.len + 1;
    char *memory = calloc(1, n * sizeof(struct quern_kernel) + room);
    if (!memory)
        return false;
    free(client->profile_memory);
    client->profile_memory = memory;
    struct quern_kernel *kernels = (struct quern_kernel *)(void *)memory;
    char *texts = (char *)(void *)(kernels + n);
    for (size_t i = 0; i < n; i++)
        kernels[i] = (struct quern_kernel){.name = keep(&texts, from[i].name),
                                           .n = from[i].n,
                                           .ns = from[i].ns,
                                           .bytes = from[i].bytes,
                                           .macs = from[i].macs,
                                           .blocks = from[i].blocks,
                                           .threads = from[i].threads,
                                           .shared_bytes = from[i].shared_bytes,
                                           .loaded = from[i].loaded,
                                           .sectors = from[i].sectors,
                                           .asked = from[i].asked,
                                           .passes = from[i].passes,
                                           .conflicts = from[i].conflicts};
    client->profile = (struct quern_profile){.done = message->profile_ok.done,
                                             .steps = message->profile_ok.steps,
                                             .bandwidth = message->profile_ok.bandwidth,
                                             .kernels = kernels,
                                             .n = n};
    return true;
}

/* False when out of memory: it is asked again. */
static bool keep_trim(struct quern *client, const struct message *message)
{
    const struct given_memory *from = message->trim_ok.given.items;
    const size_t n = message->trim_ok.given.n;
    size_t room = 1;
    for (size_t i = 0; i < n; i++)
        room += from[i].kind.len + 1;
    char *memory = calloc(1, n * sizeof(struct quern_given) + room);
    if (!memory)
        return false;
    free(client->trim_memory);
    client->trim_memory = memory;
    struct quern_given *given = (struct quern_given *)(void *)memory;
    char *texts = (char *)(void *)(given + n);
    for (size_t i = 0; i < n; i++)
        given[i] = (struct quern_given){.kind = keep(&texts, from[i].kind), .bytes = from[i].bytes};
    client->trim = (struct quern_trim){.blocks = message->trim_ok.blocks,
                                       .resident_before = message->trim_ok.resident_before,
                                       .resident_after = message->trim_ok.resident_after,
                                       .device_free_before = message->trim_ok.device_free_before,
                                       .device_free_after = message->trim_ok.device_free_after,
                                       .given = given,
                                       .n = n};
    return true;
}

static bool keep_tokens(struct quern *client, const struct message *message)
{
    client->tokens.len = 0;
    return ids_append(&client->tokens, message->tokenize_ok.ids.items, message->tokenize_ok.ids.n) == 0;
}

/* What each token stands for, where the question asked for that; *ret_pieces is NULL where it did not. */
static bool keep_pieces(struct quern *client, const struct message *message,
                        const struct quern_piece **ret_pieces)
{
    const size_t n = message->tokenize_ok.pieces.n;
    const struct bytes *from = message->tokenize_ok.pieces.items;
    *ret_pieces = NULL;
    if (n == 0 || n != message->tokenize_ok.ids.n)
        return true;
    client->spelled.len = client->pieces.len = 0;
    for (size_t i = 0; i < n; i++)
        if (buffer_append(&client->spelled, from[i].data, from[i].len) < 0)
            return false;
    if (buffer_reserve(&client->pieces, n * sizeof **ret_pieces) < 0)
        return false;
    struct quern_piece *pieces = (struct quern_piece *)(void *)client->pieces.data;
    const uint8_t *at = client->spelled.data;
    for (size_t i = 0; i < n; at += from[i++].len)
        pieces[i] = (struct quern_piece){at, from[i].len};
    *ret_pieces = pieces;
    return true;
}

/* Hashes are copied to where they are aligned, and become numbers of this machine. */
static bool keep_prefixes(struct quern *client, const struct message *message)
{
    const struct bytes added = message->prefixes_ok.added, dropped = message->prefixes_ok.dropped;
    const size_t n_added = added.len / sizeof(uint64_t), n_dropped = dropped.len / sizeof(uint64_t);
    client->hashes.len = 0;
    if (buffer_reserve(&client->hashes, (n_added + n_dropped + 1) * sizeof(uint64_t)) < 0)
        return false;
    uint64_t *hashes = (uint64_t *)(void *)client->hashes.data;
    memcpy(hashes, n_added > 0 ? added.data : "", n_added * sizeof *hashes);
    memcpy(hashes + n_added, n_dropped > 0 ? dropped.data : "", n_dropped * sizeof *hashes);
    for (size_t i = 0; i < n_added + n_dropped; i++)
        hashes[i] = le64toh(hashes[i]);
    const struct bytes space = message->prefixes_ok.space;
    memcpy(client->space, space.len > 0 ? space.data : "", space.len);
    client->space[space.len] = 0;
    client->prefixes = (struct quern_prefixes){.boot = message->prefixes_ok.boot,
                                               .next = message->prefixes_ok.next,
                                               .at = message->prefixes_ok.at,
                                               .pieces = message->prefixes_ok.pieces,
                                               .begins = message->prefixes_ok.begins,
                                               .space = client->space,
                                               .added = hashes,
                                               .n_added = n_added,
                                               .dropped = hashes + n_added,
                                               .n_dropped = n_dropped};
    return true;
}

static bool keep_tenants(struct quern *client, const struct message *message)
{
    const struct tenant_uses *from = &message->tenants_ok.tenants;
    client->uses.len = 0;
    if (buffer_reserve(&client->uses, (from->n + 1) * sizeof(struct quern_tenant)) < 0)
        return false;
    struct quern_tenant *uses = (struct quern_tenant *)(void *)client->uses.data;
    for (size_t i = 0; i < from->n; i++) {
        const struct tenant_use *use = &from->items[i];
        uses[i] = (struct quern_tenant){.requests = use->requests,
                                        .tokens = use->tokens,
                                        .used = {use->rpm, use->tpm, use->rpd, use->tpd},
                                        .gateways = use->gateways};
        memcpy(uses[i].id, use->id.bytes, sizeof uses[i].id);
    }
    client->tenants = (struct quern_tenants){.items = uses, .n = from->n};
    return true;
}

/* Zero-terminated. */
static bool keep_content(struct quern *client, struct bytes text)
{
    client->content.len = 0;
    return buffer_append(&client->content, text.data, text.len) == 0 &&
           buffer_append(&client->content, "", 1) == 0;
}

static void forget(struct quern *client, struct question *question)
{
    DL_DELETE(client->questions, question);
    buffer_deinit(&question->wire);
    free(question);
}

/* Calls back, once and last. The question is out of the list before, so nothing reaches it twice. */
static void answer(struct quern *client, struct question *question, struct quern_answer *with)
{
    quern_answer_fn *fn = question->fn;
    void *arg = question->arg;
    if (!with->text)
        with->text = "";
    forget(client, question);
    client->delivered++;
    fn(arg, with);
}

static void fail(struct quern *client, struct question *question, int code, const char *text)
{
    struct quern_answer no = {.code = code, .text = text};
    answer(client, question, &no);
}

static void send_question(struct quern *client, struct question *question)
{
    if (client->state != SESSION_OPEN || client->now - question->sent_ns < question->wait_ns)
        return;
    question->sent_ns = client->now;
    question->wait_ns = question->wait_ns > 0 ? 2 * question->wait_ns : AGAIN_NS;
    outgoing_bytes(client, &question->wire, NULL); /* a full socket: next time */
}

static void set_ref(struct message *message, uint64_t ref)
{
    switch (message->kind) {
    case MESSAGE_STATUS:
        message->status.ref = ref;
        break;
    case MESSAGE_TRACE:
        message->trace.ref = ref;
        break;
    case MESSAGE_PREFIXES:
        message->prefixes.ref = ref;
        break;
    case MESSAGE_TENANTS:
        message->tenants.ref = ref;
        break;
    case MESSAGE_PROFILE:
        message->profile.ref = ref;
        break;
    case MESSAGE_TRIM:
        message->trim.ref = ref;
        break;
    case MESSAGE_TOKENIZE:
        message->tokenize.ref = ref;
        break;
    default:
        message->detokenize.ref = ref;
        break;
    }
}

int question_ask(struct quern *client, struct message *message, int timeout_ms, quern_answer_fn *fn,
                 void *arg, struct error *err)
{
    if (client->state == SESSION_BROKEN)
        return error_set(err, client->broken, "%s", client->broken_err.text);
    struct question *question = calloc(1, sizeof *question);
    if (!question)
        return -ENOMEM;
    question->ref = ++client->last_ref;
    question->kind = message->kind;
    question->fn = fn;
    question->arg = arg;
    client->now = question->asked_ns = clock_ns();
    question->until_ns = client->now + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * CLOCK_NS_PER_MS;
    set_ref(message, question->ref);
    DL_APPEND(client->questions, question);
    int r = message_encode_or_say(message, &question->wire, err);
    if (r == 0)
        r = outgoing_check_size(client, question->wire.len, err);
    if (r < 0)
        forget(client, question);
    else
        send_question(client, question);
    return r;
}

/* The question of that kind; MESSAGE_NONE: of any. A pool that answers another than was asked is not heard.
 */
static struct question *find(struct quern *client, enum message_kind kind, uint64_t ref)
{
    struct question *question;
    DL_SEARCH_SCALAR(client->questions, question, ref, ref);
    return question && (kind == MESSAGE_NONE || question->kind == kind) ? question : NULL;
}

static bool keep_tokenized(struct quern *client, const struct message *message, struct quern_answer *with)
{
    const struct bytes text = message->tokenize_ok.text;
    if (!keep_tokens(client, message) || !keep_pieces(client, message, &with->pieces) ||
        (text.len > 0 && !keep_content(client, text)))
        return false;
    with->content = text.len > 0 ? (const char *)client->content.data : NULL;
    with->content_len = text.len;
    with->ids = client->tokens.data;
    with->n_ids = client->tokens.len;
    return true;
}

static bool keep_detokenized(struct quern *client, const struct message *message, struct quern_answer *with)
{
    if (!keep_content(client, message->detokenize_ok.text))
        return false;
    with->content = (const char *)client->content.data;
    with->content_len = client->content.len - 1;
    return true;
}

static void question_refused(struct quern *client, const struct message *message)
{
    struct question *question = find(client, MESSAGE_NONE, message->error.ref);
    struct error err;
    char reason[PROTO_MAX_TEXT_BYTES + 1];
    if (!question)
        return;
    error_set(&err, 0, "%s: %s", proto_error_name(message->error.error),
              utf8_printable(message->error.text, sizeof reason, reason));
    fail(client, question, -EREMOTEIO, err.text);
}

void question_answer(struct quern *client, const struct message *message)
{
    struct quern_answer with = {0};
    struct question *question = NULL;
    bool is_kept = false;
    if (message->kind == MESSAGE_ERROR) {
        question_refused(client, message);
    } else if (message->kind == MESSAGE_STATUS_OK) {
        question = find(client, MESSAGE_STATUS, message->status_ok.ref);
        with.status = &client->status;
        is_kept = question && keep_status(client, message);
    } else if (message->kind == MESSAGE_PREFIXES_OK) {
        question = find(client, MESSAGE_PREFIXES, message->prefixes_ok.ref);
        with.prefixes = &client->prefixes;
        is_kept = question && keep_prefixes(client, message);
    } else if (message->kind == MESSAGE_TENANTS_OK) {
        question = find(client, MESSAGE_TENANTS, message->tenants_ok.ref);
        with.tenants = &client->tenants;
        is_kept = question && keep_tenants(client, message);
    } else if (message->kind == MESSAGE_TRACE_OK) {
        question = find(client, MESSAGE_TRACE, message->trace_ok.ref);
        with.trace = &client->trace;
        is_kept = question && keep_trace(client, message);
    } else if (message->kind == MESSAGE_PROFILE_OK) {
        question = find(client, MESSAGE_PROFILE, message->profile_ok.ref);
        with.profile = &client->profile;
        is_kept = question && keep_profile(client, message);
    } else if (message->kind == MESSAGE_TRIM_OK) {
        question = find(client, MESSAGE_TRIM, message->trim_ok.ref);
        with.trim = &client->trim;
        is_kept = question && keep_trim(client, message);
    } else if (message->kind == MESSAGE_TOKENIZE_OK) {
        question = find(client, MESSAGE_TOKENIZE, message->tokenize_ok.ref);
        is_kept = question && keep_tokenized(client, message, &with);
    } else if (message->kind == MESSAGE_DETOKENIZE_OK) {
        question = find(client, MESSAGE_DETOKENIZE, message->detokenize_ok.ref);
        is_kept = question && keep_detokenized(client, message, &with);
    }
    if (is_kept)
        answer(client, question, &with);
}

void questions_opened(struct quern *client)
{
    struct question *question;
    DL_FOREACH(client->questions, question)
    {
        question->wait_ns = 0;
        send_question(client, question);
    }
}

void questions_timers(struct quern *client)
{
    struct question *question, *next;
    DL_FOREACH_SAFE(client->questions, question, next)
    {
        if (client->now < question->until_ns) {
            send_question(client, question);
            continue;
        }
        struct error err;
        error_set(&err, 0, "the broker at %s did not answer within %llu ms", client->endpoint,
                  (unsigned long long)((question->until_ns - question->asked_ns) / CLOCK_NS_PER_MS));
        fail(client, question, -ETIMEDOUT, err.text);
    }
}

void questions_fail_all(struct quern *client, int code, const char *text)
{
    /* A callback may ask anew; a broken session refuses that, so this ends. */
    while (client->questions)
        fail(client, client->questions, code, text);
}

void questions_drop_all(struct quern *client)
{
    while (client->questions)
        forget(client, client->questions);
}
