/* SPDX-License-Identifier: MIT */
/* SentencePiece-style tokenizing, the kind that GGUF files call "llama".
 *
 * Spaces become U+2581, each character is a symbol, and the pair of neighbours whose joint spelling has the
 * best score is joined, until no joint spelling is in the vocabulary. Whatever then is no token falls back to
 * the tokens of its bytes, or to the unknown token. Only tokens that a text may consist of are joined to:
 * control tokens do not come about by spelling them, nor does "<0x0A>" become a line feed.
 *
 * Where no token has a U+2581 behind another character, which is the usual case, nothing is ever joined
 * across the beginning of a word. Then each word is a sequence of its own, with the same result and a small
 * heap that stays in the cache: five times faster. */

#include "text/tokenizer/tokenizer_spm.h"

#include <errno.h>
#include <string.h>
#include <utf8proc.h>

#include "text/tokenizer/tokenizer.h"

#define SPACE "\xe2\x96\x81" /* U+2581, the space of a vocabulary */

int spm_byte_of(struct bytes text)
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

/* Does a word begin at `at`: a space behind something else? */
static bool begins_word(const char *text, size_t len, size_t at)
{
    return at >= 1 && len - at >= 3 && memcmp(text + at, SPACE, 3) == 0 &&
           (at < 3 || memcmp(text + at - 3, SPACE, 3) != 0);
}

static bool may_stand_in_text(uint8_t type)
{
    return type == TOKEN_NORMAL || type == TOKEN_USER_DEFINED;
}

/* True if no token that can be joined to holds the beginning of a word in its middle. */
static bool are_words_apart(const struct vocabulary *vocabulary)
{
    for (uint32_t id = 0; id < vocabulary->size; id++) {
        struct bytes text = vocabulary_text(vocabulary, id);
        for (size_t at = 1; may_stand_in_text(vocabulary->types[id]) && at < text.len; at++)
            if (begins_word(text.data, text.len, at))
                return false;
    }
    return true;
}

int spm_init(struct spm *spm, const struct vocabulary *vocabulary, int32_t unknown, struct error *err)
{
    if (!vocabulary->scores)
        return error_set(err, -EINVAL, "tokenizer.ggml.scores is missing; a \"llama\" vocabulary needs it");
    spm->unknown = unknown;
    spm->words_apart = are_words_apart(vocabulary);
    for (int b = 0; b < 256; b++)
        spm->byte_ids[b] = -1;
    for (uint32_t id = 0; id < vocabulary->size; id++) {
        if (vocabulary->types[id] != TOKEN_BYTE)
            continue;
        struct bytes text = vocabulary_text(vocabulary, id);
        int byte = spm_byte_of(text);
        if (byte < 0)
            return error_set(err, -EINVAL, "token %u has type byte but is written \"%.*s\", not <0x00>", id,
                             (int)(text.len < 64 ? text.len : 64), (const char *)text.data);
        spm->byte_ids[byte] = (int32_t)id;
    }
    for (int b = 0; b < 256 && unknown < 0; b++)
        if (spm->byte_ids[b] < 0)
            return error_set(err, -EINVAL,
                             "the vocabulary has neither a token for byte <0x%02X> nor an unknown "
                             "token",
                             b);
    return 0;
}

/* Copies the text into the scratch buffer, spaces as U+2581. */
static int escape(struct buffer *out, struct bytes text, bool prefix)
{
    out->len = 0;
    int r = prefix ? buffer_append(out, SPACE, 3) : 0;
    const char *at = text.data, *end = at + text.len;
    while (r == 0 && at < end) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        size_t len = (size_t)((space ? space : end) - at);
        r = buffer_append(out, at, len);
        if (r == 0 && space)
            r = buffer_append(out, SPACE, 3);
        at += len + (space != NULL);
    }
    return r;
}

/* Scores order like integers once their bits are turned: the higher the score, the smaller the result. */
static uint32_t priority_of(float score)
{
    uint32_t bits;
    score += 0.0f; /* −0 and 0 are the same score */
    memcpy(&bits, &score, sizeof bits);
    return bits & UINT32_C(0x80000000) ? bits : ~(bits | UINT32_C(0x80000000));
}

struct join {
    const struct vocabulary *vocabulary;
    const char *text;
};

static int32_t find_text_token(const struct vocabulary *vocabulary, const char *text, size_t len)
{
    int32_t id = vocabulary_find(vocabulary, text, len);
    return id >= 0 && may_stand_in_text(vocabulary->types[id]) ? id : -1;
}

static bool find_join(const void *arg, const struct merge_symbol *left, const struct merge_symbol *right,
                      int32_t *ret_id, uint32_t *ret_priority)
{
    const struct join *join = arg;
    int32_t id = find_text_token(join->vocabulary, join->text + left->start, (size_t)left->len + right->len);
    if (id < 0)
        return false;
    *ret_id = id;
    *ret_priority = priority_of(join->vocabulary->scores[id]);
    return true;
}

/* The characters from `begin` on, up to the next word if words are apart; where they end. */
static int add_symbols(const struct spm *spm, struct merger *merger, const struct vocabulary *vocabulary,
                       const struct buffer *text, size_t begin, size_t *ret_end)
{
    const char *data = (const char *)text->data;
    size_t at = begin;
    merger_clear(merger);
    while (at < text->len && (at == begin || !spm->words_apart || !begins_word(data, text->len, at))) {
        utf8proc_int32_t point;
        utf8proc_ssize_t len = utf8proc_iterate(text->data + at, (utf8proc_ssize_t)(text->len - at), &point);
        if (len <= 0)
            return -EILSEQ;
        int32_t id = find_text_token(vocabulary, data + at, (size_t)len);
        int r = merger_add(merger, (uint32_t)at, (uint32_t)len, id);
        if (r < 0)
            return r;
        at += (size_t)len;
    }
    *ret_end = at;
    return 0;
}

/* A symbol that is no token: its bytes, or the unknown token once if one of them has no token either. */
static int push_bytes(const struct spm *spm, const uint8_t *data, size_t len, struct ids *ret_ids)
{
    int r = 0;
    for (size_t i = 0; i < len; i++)
        if (spm->byte_ids[data[i]] < 0)
            return ids_push(ret_ids, spm->unknown);
    for (size_t i = 0; r == 0 && i < len; i++)
        r = ids_push(ret_ids, spm->byte_ids[data[i]]);
    return r;
}

int spm_encode(const struct spm *spm, const struct vocabulary *vocabulary, struct spm_scratch *scratch,
               struct bytes text, bool prefix, struct ids *ret_ids)
{
    struct merger *merger = &scratch->merger;
    int r = escape(&scratch->text, text, prefix);
    const struct join join = {vocabulary, (const char *)scratch->text.data};
    for (size_t at = 0; r == 0 && at < scratch->text.len;) {
        r = add_symbols(spm, merger, vocabulary, &scratch->text, at, &at);
        if (r == 0)
            r = merger_run(merger, find_join, &join);
        for (int32_t i = 0; r == 0 && i >= 0; i = merger->symbols[i].next) {
            const struct merge_symbol *symbol = &merger->symbols[i];
            r = symbol->id >= 0 ? ids_push(ret_ids, symbol->id)
                                : push_bytes(spm, scratch->text.data + symbol->start, symbol->len, ret_ids);
        }
    }
    return r;
}

void spm_scratch_deinit(struct spm_scratch *scratch)
{
    merger_deinit(&scratch->merger);
    buffer_deinit(&scratch->text);
}
