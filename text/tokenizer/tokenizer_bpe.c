/* SPDX-License-Identifier: MIT */
/* Byte-level BPE, the kind that GGUF files call "gpt2".
 *
 * A vocabulary spells every byte as a printable character: those of Latin-1 that are visible stand for
 * themselves, the others, in order, for U+0100 upwards. So each byte of a word is a symbol, and the pair of
 * neighbours that comes first in the list of merges is joined, until none is in the list. A byte that has no
 * token of its own is left out, as public engines do it (Falcon's vocabulary lacks some control characters).
 */

#include "text/tokenizer/tokenizer_bpe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "text/tokenizer/tokenizer.h"
#include "gguf/gguf_values.h"

#define KEY_PRE   "tokenizer.ggml.pre"
#define KEY_WHOLE "tokenizer.whole_words" /* of files that Quern writes */

struct bpe {
    struct pretokenizer *pretokenizer;
    bool whole_words;      /* as the file says, or the pre-tokenizer */
    int32_t byte_ids[256]; /* -1 where a byte has no token */
    struct merge_ranks ranks;
};

/* The character that spells a byte. */
static utf8proc_int32_t character_of(int byte)
{
    if ((byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae)
        return byte;
    if (byte <= ' ')
        return 0x100 + byte;
    return byte == 0xad ? 0x143 : 0x121 + byte - 0x7f; /* 0x7f … 0xa0 */
}

/* The byte that a character spells, or -1. */
static int byte_of(utf8proc_int32_t character)
{
    if (character > 0x143)
        return -1;
    if (character == 0x143)
        return 0xad;
    if (character >= 0x121)
        return character - 0x121 + 0x7f;
    if (character >= 0x100)
        return character - 0x100;
    return character_of(character) == character ? character : -1;
}

int bpe_unspell(struct bytes spelling, struct buffer *ret_bytes)
{
    const uint8_t *data = spelling.data;
    int r = 0;
    for (size_t at = 0; r == 0 && at < spelling.len;) {
        utf8proc_int32_t character;
        utf8proc_ssize_t len = utf8proc_iterate(data + at, (utf8proc_ssize_t)(spelling.len - at), &character);
        int byte = len > 0 ? byte_of(character) : -1;
        if (len <= 0)
            len = 1;
        uint8_t one = (uint8_t)byte;
        r = byte >= 0 ? buffer_append(ret_bytes, &one, 1) : buffer_append(ret_bytes, data + at, (size_t)len);
        at += (size_t)len;
    }
    return r;
}

int bpe_new(const struct vocabulary *vocabulary, const struct gguf *gguf, struct bpe **ret_bpe,
            struct error *err)
{
    struct bpe *bpe = calloc(1, sizeof *bpe);
    if (!bpe)
        return error_set(err, -ENOMEM, "not enough memory for the tokenizer");
    struct bytes name = {0};
    int r = gguf_string(gguf, KEY_PRE, &name, err);
    if (r == 0 || r == GGUF_E_MISSING)
        r = pretokenizer_new(name, &bpe->pretokenizer, err);
    if (r == 0) {
        bpe->whole_words = bpe_traits(bpe)->whole_words;
        r = gguf_bool(gguf, KEY_WHOLE, &bpe->whole_words, err);
    }
    if (r >= 0)
        r = merge_ranks_init(&bpe->ranks, vocabulary, gguf, "gpt2", err);
    if (r < 0) {
        bpe_free(bpe);
        return r == -ENOMEM ? error_set(err, r, "not enough memory for the tokenizer") : r;
    }
    for (int b = 0; b < 256; b++) {
        uint8_t utf8[4];
        size_t len = (size_t)utf8proc_encode_char(character_of(b), utf8);
        bpe->byte_ids[b] = vocabulary_find(vocabulary, utf8, len);
    }
    *ret_bpe = bpe;
    return 0;
}

struct bpe *bpe_free(struct bpe *bpe)
{
    if (!bpe)
        return NULL;
    pretokenizer_free(bpe->pretokenizer);
    merge_ranks_deinit(&bpe->ranks);
    free(bpe);
    return NULL;
}

const struct pretokenizer_traits *bpe_traits(const struct bpe *bpe)
{
    return pretokenizer_traits(bpe->pretokenizer);
}

/* The token that a whole word is, or -1; `spelled` is overwritten. */
static int find_word(const struct vocabulary *vocabulary, struct buffer *spelled, const uint8_t *word,
                     size_t len, int32_t *ret_id)
{
    *ret_id = -1;
    if (len > vocabulary->longest)
        return 0;
    spelled->len = 0;
    for (size_t i = 0; i < len; i++) {
        uint8_t utf8[4];
        size_t n = (size_t)utf8proc_encode_char(character_of(word[i]), utf8);
        int r = buffer_append(spelled, utf8, n);
        if (r < 0)
            return r;
    }
    int32_t id = vocabulary_find(vocabulary, spelled->data, spelled->len);
    if (id >= 0 && vocabulary->types[id] == TOKEN_NORMAL)
        *ret_id = id;
    return 0;
}

static int encode_word(const struct bpe *bpe, const struct vocabulary *vocabulary,
                       struct bpe_scratch *scratch, const uint8_t *word, size_t len, struct ids *ret_ids)
{
    int r = 0;
    if (bpe->whole_words) {
        int32_t id;
        r = find_word(vocabulary, &scratch->spelled, word, len, &id);
        if (r < 0 || id >= 0)
            return r < 0 ? r : ids_push(ret_ids, id);
    }
    struct merger *merger = &scratch->merger;
    merger_clear(merger);
    for (size_t i = 0; r == 0 && i < len; i++)
        if (bpe->byte_ids[word[i]] >= 0)
            r = merger_add(merger, (uint32_t)i, 1, bpe->byte_ids[word[i]]);
    if (r == 0)
        r = merger_run(merger, merge_ranks_find, &bpe->ranks);
    for (int32_t i = merger->n > 0 ? 0 : -1; r == 0 && i >= 0; i = merger->symbols[i].next)
        r = ids_push(ret_ids, merger->symbols[i].id);
    return r;
}

int bpe_encode(const struct bpe *bpe, const struct vocabulary *vocabulary, struct bpe_scratch *scratch,
               struct bytes text, struct ids *ret_ids)
{
    int r = pretokenizer_split(bpe->pretokenizer, text, &scratch->split);
    for (size_t i = 0; r == 0 && i < scratch->split.n; i++) {
        struct word word = scratch->split.words[i];
        r = encode_word(bpe, vocabulary, scratch, (const uint8_t *)text.data + word.start, word.len, ret_ids);
    }
    return r;
}

void bpe_scratch_deinit(struct bpe_scratch *scratch)
{
    pretokenizer_scratch_deinit(&scratch->split);
    merger_deinit(&scratch->merger);
    buffer_deinit(&scratch->spelled);
}
