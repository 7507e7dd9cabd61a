/* SPDX-License-Identifier: MIT */
/* Byte-level BPE, the kind that GGUF files call "gpt2".
 *
 * A vocabulary spells every byte as a printable character: those of Latin-1 that are visible stand for
 * themselves, the others, in order, for U+0100 upwards. So each byte of a word is a symbol, and the pair of
 * neighbours that comes first in the list of merges is joined, until none is in the list.
 *
 * Symbols are token ids: every side of a merge and what it makes must be tokens, or the file is refused. So a
 * merge is a pair of ids in an open hash table. A byte that has no token of its own is left out, as public
 * engines do it (Falcon's vocabulary lacks some control characters).
 */

#include "text/tokenizer/tokenizer_bpe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "text/tokenizer/tokenizer.h"
#include "gguf/gguf_values.h"

#define KEY_PRE    "tokenizer.ggml.pre"
#define KEY_MERGES "tokenizer.ggml.merges"
#define KEY_WHOLE  "tokenizer.whole_words" /* of files that Quern writes */

enum { MAX_MERGES = 1 << 26 }; /* far above any vocabulary, low enough for 32-bit arithmetic */

struct bpe_merge {
    uint64_t pair; /* left id ‖ right id */
    uint32_t rank; /* the place in the list */
    int32_t whole; /* id; -1: a free slot */
};

struct bpe {
    struct pretokenizer *pretokenizer;
    bool whole_words;         /* as the file says, or the pre-tokenizer */
    int32_t byte_ids[256];    /* -1 where a byte has no token */
    struct bpe_merge *merges; /* open addressing */
    uint32_t merge_mask;
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

static uint32_t find_merge_slot(const struct bpe *bpe, uint64_t pair)
{
    uint32_t slot = (uint32_t)((pair * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & bpe->merge_mask;
    while (bpe->merges[slot].whole >= 0 && bpe->merges[slot].pair != pair)
        slot = (slot + 1) & bpe->merge_mask;
    return slot;
}

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* Adds "left right". Of two equal merges the first one counts. */
static int add_merge(struct bpe *bpe, const struct vocabulary *vocabulary, struct bytes line, uint32_t rank,
                     struct buffer *joined, struct error *err)
{
    const char *text = line.data;
    int shown = (int)(line.len < 64 ? line.len : 64);
    const char *space = line.len > 2 ? memchr(text + 1, ' ', line.len - 2) : NULL;
    if (!space || memchr(space + 1, ' ', line.len - (size_t)(space + 1 - text)))
        return error_set(err, -EINVAL, "%s: entry %u \"%.*s\" is not two parts separated by a space",
                         KEY_MERGES, rank, shown, text);
    size_t left_len = (size_t)(space - text), right_len = line.len - left_len - 1;
    int32_t left = vocabulary_find(vocabulary, text, left_len);
    int32_t right = vocabulary_find(vocabulary, space + 1, right_len);
    joined->len = 0;
    int r = buffer_append(joined, text, left_len);
    if (r == 0)
        r = buffer_append(joined, space + 1, right_len);
    if (r < 0)
        return r;
    int32_t whole = vocabulary_find(vocabulary, joined->data, joined->len);
    if (left < 0 || right < 0 || whole < 0)
        return error_set(err, -EINVAL, "%s: entry %u \"%.*s\": %s is not in the vocabulary", KEY_MERGES, rank,
                         shown, text,
                         left < 0    ? "its left part"
                         : right < 0 ? "its right part"
                                     : "the whole");
    uint64_t pair = pair_of(left, right);
    struct bpe_merge *slot = &bpe->merges[find_merge_slot(bpe, pair)];
    if (slot->whole < 0)
        *slot = (struct bpe_merge){.pair = pair, .rank = rank, .whole = whole};
    return 0;
}

static int read_merges(struct bpe *bpe, const struct vocabulary *vocabulary, const struct gguf *gguf,
                       struct error *err)
{
    const struct gguf_value *merges = gguf_find(gguf, KEY_MERGES);
    if (!merges)
        return error_set(err, -EINVAL, "%s is missing; a \"gpt2\" vocabulary needs it", KEY_MERGES);
    if (merges->type != GGUF_ARRAY || (merges->array.type != GGUF_STRING && merges->array.n > 0))
        return error_set(err, -EINVAL, "%s is not an array of strings", KEY_MERGES);
    if (merges->array.n > MAX_MERGES)
        return error_set(err, -EINVAL, "%s has %llu entries; at most %d are allowed", KEY_MERGES,
                         (unsigned long long)merges->array.n, MAX_MERGES);
    uint32_t n_slots = 64;
    while (n_slots < 2 * merges->array.n)
        n_slots *= 2;
    bpe->merges = malloc(n_slots * sizeof *bpe->merges);
    if (!bpe->merges)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_slots; i++)
        bpe->merges[i].whole = -1;
    bpe->merge_mask = n_slots - 1;
    struct buffer joined = {0};
    size_t cursor = 0;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < merges->array.n; i++)
        r = add_merge(bpe, vocabulary, gguf_array_next_string(merges, &cursor), i, &joined, err);
    buffer_deinit(&joined);
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
        r = read_merges(bpe, vocabulary, gguf, err);
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
    free(bpe->merges);
    free(bpe);
    return NULL;
}

const struct pretokenizer_traits *bpe_traits(const struct bpe *bpe)
{
    return pretokenizer_traits(bpe->pretokenizer);
}

static bool find_join(const void *arg, const struct merge_symbol *left, const struct merge_symbol *right,
                      int32_t *ret_id, uint32_t *ret_priority)
{
    const struct bpe *bpe = arg;
    const struct bpe_merge *merge = &bpe->merges[find_merge_slot(bpe, pair_of(left->id, right->id))];
    if (merge->whole < 0)
        return false;
    *ret_id = merge->whole;
    *ret_priority = merge->rank;
    return true;
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
        r = merger_run(merger, find_join, bpe);
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
