/* SPDX-License-Identifier: MIT */
/* See logprobs.h. A piece may end inside a character: in chat "token" shows U+FFFD then, and "bytes" has what
 * there is; completions have no bytes, and write such a piece as bytes:\\xf0\\x9f, so that no two are one. */

#include "gateway/answers/logprobs.h"

#include <errno.h>
#include <stdio.h>

#include "common/utf8.h"

/* The lists of LOGPROBS_COMPLETION. */
enum { TOKENS, TOKEN_LOGPROBS, TOP_LOGPROBS, TEXT_OFFSET };

#define KEEP_BYTES (16u << 10) /* a larger list that was written gives its memory back */

/* What one token brings: itself, then the most likely ones, best first; n entries. */
struct token {
    const struct quern_logprob *entries;
    const struct quern_piece *pieces; /* [n] or NULL: nothing is known of them */
    size_t n;
};

static struct bytes piece(const struct token *token, size_t i)
{
    return token->pieces ? (struct bytes){token->pieces[i].bytes, token->pieces[i].len}
                         : (struct bytes){NULL, 0};
}

/* A comma, unless it is the first. */
static struct json_out *next(struct json_out *list)
{
    if (list->buffer.len > 0)
        json_out_text(list, ",");
    return list;
}

/* ---- /v1/chat/completions ---- */

/* `"token":…,"logprob":…,"bytes":[…]`. */
static void write_entry(const struct token *token, size_t i, struct json_out *out)
{
    const struct bytes bytes = piece(token, i);
    json_out_text(out, "\"token\":");
    json_out_string(out, bytes);
    json_out_text(out, ",\"logprob\":");
    json_out_real(out, (double)token->entries[i].logprob);
    json_out_text(out, ",\"bytes\":[");
    for (size_t j = 0; j < bytes.len; j++) {
        json_out_text(out, j ? "," : "");
        json_out_number(out, ((const uint8_t *)bytes.data)[j]);
    }
    json_out_text(out, "]");
}

static void add_to_chat(struct logprobs *logprobs, const struct token *token)
{
    struct json_out *out = next(&logprobs->lists[0]);
    json_out_text(out, "{");
    write_entry(token, 0, out);
    json_out_text(out, ",\"top_logprobs\":[");
    for (size_t i = 1; i < token->n; i++) {
        json_out_text(out, i > 1 ? ",{" : "{");
        write_entry(token, i, out);
        json_out_text(out, "}");
    }
    json_out_text(out, "]}");
}

static void write_chat(struct logprobs *logprobs, struct json_out *out)
{
    const struct buffer *content = &logprobs->lists[0].buffer;
    json_out_text(out, "{\"content\":[");
    json_out_bytes(out, content->data, content->len);
    json_out_text(out, "],\"refusal\":null}");
}

/* ---- /v1/completions ---- */

static void write_token(struct bytes piece, struct json_out *out)
{
    if (utf8_valid(piece) == piece.len) {
        json_out_string(out, piece);
        return;
    }
    json_out_text(out, "\"bytes:");
    for (size_t i = 0; i < piece.len; i++) {
        char escape[8];
        snprintf(escape, sizeof escape, "\\\\x%02x", ((const uint8_t *)piece.data)[i]);
        json_out_text(out, escape);
    }
    json_out_text(out, "\"");
}

/* Whether one from `first` up to the i-th has the same text as the i-th: keys come once. */
static bool is_told(const struct token *token, size_t first, size_t i, size_t end)
{
    for (size_t j = first; j < end; j++)
        if (bytes_equal(piece(token, j), piece(token, i)))
            return true;
    return false;
}

/* The most likely ones by name, and the token's own where it is none of them. Of ids that are spelled alike
 * the likelier one is told. */
static void write_likely(const struct token *token, struct json_out *out)
{
    json_out_text(out, "{");
    for (size_t i = 1; i < token->n; i++) {
        if (is_told(token, 1, i, i))
            continue;
        json_out_text(out, i > 1 ? "," : "");
        write_token(piece(token, i), out);
        json_out_text(out, ":");
        json_out_real(out, (double)token->entries[i].logprob);
    }
    if (!is_told(token, 1, 0, token->n)) {
        json_out_text(out, ",");
        write_token(piece(token, 0), out);
        json_out_text(out, ":");
        json_out_real(out, (double)token->entries[0].logprob);
    }
    json_out_text(out, "}");
}

static uint64_t characters(struct bytes piece)
{
    uint64_t n = 0;
    for (size_t i = 0; i < piece.len; i++)
        n += (((const uint8_t *)piece.data)[i] & 0xc0) != 0x80;
    return n;
}

static void add_to_completion(struct logprobs *logprobs, const struct token *token)
{
    write_token(piece(token, 0), next(&logprobs->lists[TOKENS]));
    json_out_real(next(&logprobs->lists[TOKEN_LOGPROBS]), (double)token->entries[0].logprob);
    if (token->n > 1)
        write_likely(token, next(&logprobs->lists[TOP_LOGPROBS]));
    json_out_number(next(&logprobs->lists[TEXT_OFFSET]), (int64_t)logprobs->characters);
    logprobs->characters += characters(piece(token, 0));
}

static void write_completion(struct logprobs *logprobs, struct json_out *out)
{
    static const char *const names[LOGPROBS_LISTS] = {
        "{\"tokens\":", ",\"token_logprobs\":", ",\"top_logprobs\":", ",\"text_offset\":"};
    for (int i = 0; i < LOGPROBS_LISTS; i++) {
        const struct buffer *list = &logprobs->lists[i].buffer;
        json_out_text(out, names[i]);
        if (list->len == 0) { /* the most likely ones, which were not asked for */
            json_out_text(out, "null");
            continue;
        }
        json_out_text(out, "[");
        json_out_bytes(out, list->data, list->len);
        json_out_text(out, "]");
    }
    json_out_text(out, "}");
}

/* ---- both ---- */

int logprobs_add(struct logprobs *logprobs, const struct quern_output *output)
{
    const size_t width = output->n_logprobs;
    bool failed = false;
    for (size_t i = 0; output->logprobs && i < output->n_ids; i++) {
        const struct token token = {
            .entries = &output->logprobs[i * width],
            .pieces = output->pieces ? &output->pieces[i * width] : NULL,
            .n = width,
        };
        if (logprobs->form == LOGPROBS_CHAT)
            add_to_chat(logprobs, &token);
        else
            add_to_completion(logprobs, &token);
    }
    for (int i = 0; i < LOGPROBS_LISTS; i++)
        failed = failed || logprobs->lists[i].failed;
    return failed ? -ENOMEM : 0;
}

void logprobs_write(struct logprobs *logprobs, struct json_out *out)
{
    if (!logprobs_any(logprobs))
        json_out_text(out, "null");
    else if (logprobs->form == LOGPROBS_CHAT)
        write_chat(logprobs, out);
    else
        write_completion(logprobs, out);
    for (int i = 0; i < LOGPROBS_LISTS; i++) {
        if (logprobs->lists[i].buffer.cap > KEEP_BYTES)
            json_out_deinit(&logprobs->lists[i]);
        json_out_reset(&logprobs->lists[i]);
    }
}

void logprobs_deinit(struct logprobs *logprobs)
{
    for (int i = 0; i < LOGPROBS_LISTS; i++)
        json_out_deinit(&logprobs->lists[i]);
}
