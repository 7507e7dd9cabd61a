/* SPDX-License-Identifier: MIT */
/* Symbols are token ids: every side of a merge and what it makes must be tokens, or the file is refused. So a
 * merge is a pair of ids in an open hash table. */

#include "text/tokenizer/merge_ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/gguf_values.h"

#define KEY_MERGES "tokenizer.ggml.merges"

enum { MAX_MERGES = 1 << 26 }; /* far above any vocabulary, low enough for 32-bit arithmetic */

static uint32_t find_slot(const struct merge_ranks *ranks, uint64_t pair)
{
    uint32_t slot = (uint32_t)((pair * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & ranks->mask;
    while (ranks->slots[slot].whole >= 0 && ranks->slots[slot].pair != pair)
        slot = (slot + 1) & ranks->mask;
    return slot;
}

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* Adds "left right". Of two equal merges the first one counts. */
static int add_merge(struct merge_ranks *ranks, const struct vocabulary *vocabulary, struct bytes line,
                     uint32_t rank, struct buffer *joined, struct error *err)
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
    struct ranked_merge *slot = &ranks->slots[find_slot(ranks, pair)];
    if (slot->whole < 0)
        *slot = (struct ranked_merge){.pair = pair, .rank = rank, .whole = whole};
    return 0;
}

int merge_ranks_init(struct merge_ranks *ranks, const struct vocabulary *vocabulary, const struct gguf *gguf,
                     const char *kind, struct error *err)
{
    const struct gguf_value *merges = gguf_find(gguf, KEY_MERGES);
    if (!merges)
        return error_set(err, -EINVAL, "%s is missing; a \"%s\" vocabulary needs it", KEY_MERGES, kind);
    if (merges->type != GGUF_ARRAY || (merges->array.type != GGUF_STRING && merges->array.n > 0))
        return error_set(err, -EINVAL, "%s is not an array of strings", KEY_MERGES);
    if (merges->array.n > MAX_MERGES)
        return error_set(err, -EINVAL, "%s has %llu entries; at most %d are allowed", KEY_MERGES,
                         (unsigned long long)merges->array.n, MAX_MERGES);
    uint32_t n_slots = 64;
    while (n_slots < 2 * merges->array.n)
        n_slots *= 2;
    ranks->slots = malloc(n_slots * sizeof *ranks->slots);
    if (!ranks->slots)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_slots; i++)
        ranks->slots[i].whole = -1;
    ranks->mask = n_slots - 1;
    struct buffer joined = {0};
    size_t cursor = 0;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < merges->array.n; i++)
        r = add_merge(ranks, vocabulary, gguf_array_next_string(merges, &cursor), i, &joined, err);
    buffer_deinit(&joined);
    return r;
}

void merge_ranks_deinit(struct merge_ranks *ranks)
{
    free(ranks->slots);
    *ranks = (struct merge_ranks){0};
}

bool merge_ranks_find(const void *arg, const struct merge_symbol *left, const struct merge_symbol *right,
                      int32_t *ret_id, uint32_t *ret_priority)
{
    const struct merge_ranks *ranks = arg;
    const struct ranked_merge *merge = &ranks->slots[find_slot(ranks, pair_of(left->id, right->id))];
    if (merge->whole < 0)
        return false;
    *ret_id = merge->whole;
    *ret_priority = merge->rank;
    return true;
}
