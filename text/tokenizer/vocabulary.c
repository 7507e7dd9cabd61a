/* SPDX-License-Identifier: MIT */
/* The token list of a GGUF file.
 *
 * All spellings are copied into one string and found again through an open hash table of ids, so that a
 * vocabulary of 150,000 tokens costs a handful of allocations and can outlive its file. Whatever the file
 * says is checked here: the arrays must have the same length, types must be 1 to 6, scores must be numbers.
 * Two tokens may share a spelling; the later one is found, as public engines do it. */

#include "text/tokenizer/vocabulary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "text/tokenizer/tokenizer.h"
#include "gguf/gguf_values.h"

#define KEY_TOKENS "tokenizer.ggml.tokens"
#define KEY_SCORES "tokenizer.ggml.scores"
#define KEY_TYPES  "tokenizer.ggml.token_type"

enum { MAX_TOKENS = 1 << 24 }; /* far above any vocabulary, low enough for 32-bit arithmetic */

static int copy_texts(struct vocabulary *v, const struct gguf *gguf, struct error *err)
{
    const struct gguf_value *tokens = gguf_find(gguf, KEY_TOKENS);
    if (!tokens)
        return error_set(err, -EINVAL, "%s is missing: the file has no vocabulary", KEY_TOKENS);
    if (tokens->type != GGUF_ARRAY || tokens->array.type != GGUF_STRING)
        return error_set(err, -EINVAL, "%s is not an array of strings", KEY_TOKENS);
    if (tokens->array.n == 0 || tokens->array.n > MAX_TOKENS)
        return error_out_of_range(err, -EINVAL, "length of " KEY_TOKENS, (int64_t)tokens->array.n, 1,
                                  MAX_TOKENS);
    v->size = (uint32_t)tokens->array.n;
    /* Each string stands behind a length of eight bytes, so `raw` is always enough. */
    if (tokens->array.raw.len > UINT32_MAX)
        return error_set(err, -EINVAL, "%s is longer than 4 GiB", KEY_TOKENS);
    v->text = malloc(tokens->array.raw.len + 1);
    v->start = calloc((size_t)v->size + 1, sizeof *v->start);
    if (!v->text || !v->start)
        return -ENOMEM;
    size_t cursor = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < v->size; i++) {
        struct bytes text = gguf_array_next_string(tokens, &cursor);
        if (text.len > 0)
            memcpy(v->text + at, text.data, text.len);
        at += (uint32_t)text.len;
        v->start[i + 1] = at;
        if (text.len > v->longest)
            v->longest = (uint32_t)text.len;
    }
    return 0;
}

static int copy_types(struct vocabulary *v, const struct gguf *gguf, struct error *err)
{
    v->types = malloc(v->size);
    if (!v->types)
        return -ENOMEM;
    memset(v->types, TOKEN_NORMAL, v->size);
    const struct gguf_value *types = gguf_find(gguf, KEY_TYPES);
    if (!types)
        return 0;
    if (types->type != GGUF_ARRAY || types->array.type == GGUF_STRING || types->array.type == GGUF_F32 ||
        types->array.type == GGUF_F64)
        return error_set(err, -EINVAL, "%s is not an array of integers", KEY_TYPES);
    if (types->array.n != v->size)
        return error_set(err, -EINVAL, "%s has %llu entries for %u tokens", KEY_TYPES,
                         (unsigned long long)types->array.n, v->size);
    for (uint32_t i = 0; i < v->size; i++) {
        int64_t type = gguf_array_int(types, i);
        if (type < TOKEN_NORMAL || type > TOKEN_BYTE)
            return error_set(err, -EINVAL, "%s: token %u has the unknown type %lld", KEY_TYPES, i,
                             (long long)type);
        v->types[i] = (uint8_t)type;
    }
    return 0;
}

static int copy_scores(struct vocabulary *v, const struct gguf *gguf, struct error *err)
{
    const struct gguf_value *scores = gguf_find(gguf, KEY_SCORES);
    if (!scores)
        return 0;
    if (scores->type != GGUF_ARRAY || (scores->array.type != GGUF_F32 && scores->array.type != GGUF_F64))
        return error_set(err, -EINVAL, "%s is not an array of reals", KEY_SCORES);
    if (scores->array.n != v->size)
        return error_set(err, -EINVAL, "%s has %llu entries for %u tokens", KEY_SCORES,
                         (unsigned long long)scores->array.n, v->size);
    v->scores = malloc((size_t)v->size * sizeof *v->scores);
    if (!v->scores)
        return -ENOMEM;
    for (uint32_t i = 0; i < v->size; i++) {
        v->scores[i] = (float)gguf_array_real(scores, i);
        if (isnan(v->scores[i]))
            return error_set(err, -EINVAL, "%s: the score of token %u is not a number", KEY_SCORES, i);
    }
    return 0;
}

/* The slot that holds this spelling, or the free one where it belongs. */
static uint32_t find_slot(const struct vocabulary *v, const void *text, size_t len)
{
    uint32_t slot = (uint32_t)hash64(text, len, 0) & v->slot_mask;
    while (v->slots[slot] != 0) {
        struct bytes there = vocabulary_text(v, v->slots[slot] - 1);
        if (there.len == len && memcmp(there.data, text, len) == 0)
            break;
        slot = (slot + 1) & v->slot_mask;
    }
    return slot;
}

static int index_texts(struct vocabulary *v)
{
    uint32_t n = 64;
    while (n < 2 * v->size)
        n *= 2;
    v->slots = calloc(n, sizeof *v->slots);
    if (!v->slots)
        return -ENOMEM;
    v->slot_mask = n - 1;
    for (uint32_t i = 0; i < v->size; i++) {
        struct bytes text = vocabulary_text(v, i);
        v->slots[find_slot(v, text.data, text.len)] = i + 1;
    }
    return 0;
}

int vocabulary_init(struct vocabulary *vocabulary, const struct gguf *gguf, struct error *err)
{
    *vocabulary = (struct vocabulary){0};
    int r = copy_texts(vocabulary, gguf, err);
    if (r == 0)
        r = copy_types(vocabulary, gguf, err);
    if (r == 0)
        r = copy_scores(vocabulary, gguf, err);
    if (r == 0)
        r = index_texts(vocabulary);
    if (r == -ENOMEM)
        error_set(err, r, "not enough memory for a vocabulary of %u tokens", vocabulary->size);
    if (r < 0)
        vocabulary_deinit(vocabulary);
    return r;
}

void vocabulary_deinit(struct vocabulary *vocabulary)
{
    free(vocabulary->text);
    free(vocabulary->start);
    free(vocabulary->types);
    free(vocabulary->scores);
    free(vocabulary->slots);
    *vocabulary = (struct vocabulary){0};
}

int32_t vocabulary_find(const struct vocabulary *vocabulary, const void *text, size_t len)
{
    if (len > vocabulary->longest)
        return -1;
    return (int32_t)vocabulary->slots[find_slot(vocabulary, text, len)] - 1;
}

/* ---- spelling ---- */

int spelling_byte_of(struct bytes text)
{
    const char *s = text.data;
    if (text.len != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>')
        return -1;
    int value = 0;
    for (int i = 3; i < 5; i++) {
        int digit = s[i] >= '0' && s[i] <= '9'   ? s[i] - '0'
                    : s[i] >= 'A' && s[i] <= 'F' ? s[i] - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

int byte_tokens_init(struct byte_tokens *tokens, const struct vocabulary *vocabulary, int32_t unknown,
                     struct error *err)
{
    tokens->unknown = unknown;
    for (int b = 0; b < 256; b++)
        tokens->ids[b] = -1;
    for (uint32_t id = 0; id < vocabulary->size; id++) {
        if (vocabulary->types[id] != TOKEN_BYTE)
            continue;
        struct bytes text = vocabulary_text(vocabulary, id);
        int byte = spelling_byte_of(text);
        if (byte < 0)
            return error_set(err, -EINVAL, "token %u has type byte but is written \"%.*s\", not <0x00>", id,
                             (int)(text.len < 64 ? text.len : 64), (const char *)text.data);
        tokens->ids[byte] = (int32_t)id;
    }
    for (int b = 0; b < 256 && unknown < 0; b++)
        if (tokens->ids[b] < 0)
            return error_set(err, -EINVAL,
                             "the vocabulary has neither a token for byte <0x%02X> nor an unknown "
                             "token",
                             b);
    return 0;
}

int byte_tokens_push(const struct byte_tokens *tokens, const uint8_t *data, size_t len, struct ids *ret_ids)
{
    int r = 0;
    for (size_t i = 0; i < len; i++)
        if (tokens->ids[data[i]] < 0)
            return ids_push(ret_ids, tokens->unknown);
    for (size_t i = 0; r == 0 && i < len; i++)
        r = ids_push(ret_ids, tokens->ids[data[i]]);
    return r;
}

int spelling_escape(struct buffer *out, struct bytes text, bool prefix)
{
    out->len = 0;
    int r = prefix ? buffer_append(out, SPELLING_SPACE, 3) : 0;
    const char *at = text.data, *end = at + text.len;
    while (r == 0 && at < end) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        size_t len = (size_t)((space ? space : end) - at);
        r = buffer_append(out, at, len);
        if (r == 0 && space)
            r = buffer_append(out, SPELLING_SPACE, 3);
        at += len + (space != NULL);
    }
    return r;
}

int spelling_unescape(struct buffer *out, struct bytes spelling)
{
    const char *at = spelling.data, *end = at + spelling.len;
    int r = 0;
    while (r == 0 && at < end) {
        const char *space = memmem(at, (size_t)(end - at), SPELLING_SPACE, 3);
        size_t len = (size_t)((space ? space : end) - at);
        r = buffer_append(out, at, len);
        if (r == 0 && space)
            r = buffer_append(out, " ", 1);
        at += len + (space ? 3 : 0);
    }
    return r;
}
