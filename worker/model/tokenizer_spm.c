/* SPDX-License-Identifier: MIT */
/* SentencePiece-style tokenizing, the kind that GGUF files call "llama".
 *
 * Spaces become U+2581, each character is a symbol, and the pair of neighbours whose joint spelling has the
 * best score is joined, until no joint spelling is in the vocabulary. Whatever then is no token falls back to
 * the tokens of its bytes, or to the unknown token. Only tokens that a text may consist of are joined to:
 * control tokens do not come about by spelling them, nor does "<0x0A>" become a line feed. */

#include "worker/model/tokenizer_spm.h"

#include <errno.h>
#include <string.h>
#include <utf8proc.h>

#include "worker/model/tokenizer.h"

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

int spm_init(struct spm *spm, const struct vocabulary *vocabulary, int32_t unknown, struct error *err)
{
    if (!vocabulary->scores)
        return error_set(err, -EINVAL, "tokenizer.ggml.scores is missing, a \"llama\" vocabulary needs it");
    spm->unknown = unknown;
    for (int b = 0; b < 256; b++)
        spm->byte_ids[b] = -1;
    for (uint32_t id = 0; id < vocabulary->size; id++) {
        if (vocabulary->types[id] != TOKEN_BYTE)
            continue;
        struct bytes text = vocabulary_text(vocabulary, id);
        int byte = spm_byte_of(text);
        if (byte < 0)
            return error_set(err, -EINVAL, "token %u is of type byte but is written \"%.*s\", not <0x00>", id,
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
    if (id < 0 || (vocabulary->types[id] != TOKEN_NORMAL && vocabulary->types[id] != TOKEN_USER_DEFINED))
        return -1;
    return id;
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

static int add_symbols(struct merger *merger, const struct vocabulary *vocabulary, const struct buffer *text)
{
    merger_clear(merger);
    int r = 0;
    for (size_t at = 0; r == 0 && at < text->len;) {
        utf8proc_int32_t point;
        utf8proc_ssize_t len = utf8proc_iterate(text->data + at, (utf8proc_ssize_t)(text->len - at), &point);
        if (len <= 0)
            return -EILSEQ;
        int32_t id = find_text_token(vocabulary, (const char *)text->data + at, (size_t)len);
        r = merger_add(merger, (uint32_t)at, (uint32_t)len, id);
        at += (size_t)len;
    }
    return r;
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
    int r = escape(&scratch->text, text, prefix);
    if (r == 0)
        r = add_symbols(&scratch->merger, vocabulary, &scratch->text);
    struct join join = {vocabulary, (const char *)scratch->text.data};
    if (r == 0)
        r = merger_run(&scratch->merger, find_join, &join);
    const struct merge_symbol *symbols = scratch->merger.symbols;
    for (int32_t i = scratch->merger.n > 0 ? 0 : -1; r == 0 && i >= 0; i = symbols[i].next)
        r = symbols[i].id >= 0
                ? ids_push(ret_ids, symbols[i].id)
                : push_bytes(spm, scratch->text.data + symbols[i].start, symbols[i].len, ret_ids);
    return r;
}

void spm_scratch_deinit(struct spm_scratch *scratch)
{
    merger_deinit(&scratch->merger);
    buffer_deinit(&scratch->text);
}
