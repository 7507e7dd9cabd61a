/* SPDX-License-Identifier: MIT */
/* Cutting a text at its special tokens.
 *
 * Of overlapping tokens the longest wins, wherever it stands. So the longest token at each place is a
 * candidate, and candidates are taken from a heap, longest first, leftmost of equals. All that was taken
 * before is at least as long: a candidate is blocked exactly if its first or its last byte is covered. If it
 * is the last, a shorter token may fit before what covers it, and becomes the candidate of its place.
 *
 * The places are found in one pass over the text, whatever the number of tokens (special_index.h). A text
 * without any takes that pass and no memory. */

#include "text/tokenizer/special.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
    uint32_t at;
    uint32_t state;    /* of the index: the token, and the shorter ones */
    uint32_t unmarked; /* bytes from `at` on that are not the user's: a control token must lie within them */
};

struct cut {
    const struct specials *specials;
    const struct vocabulary *vocabulary;
    const uint8_t *text;
    bool control_too;
    struct candidate *heap; /* the longest, leftmost one first */
    size_t n, cap;
    uint32_t *covered_from; /* for each byte: where the token that covers it begins, plus 1; 0: none does */
    size_t steps;
};

int specials_init(struct specials *specials, const struct vocabulary *vocabulary)
{
    *specials = (struct specials){0};
    return special_index_init(&specials->index, vocabulary);
}

void specials_deinit(struct specials *specials)
{
    special_index_deinit(&specials->index);
    *specials = (struct specials){0};
}

void fragments_deinit(struct fragments *fragments)
{
    free(fragments->items);
    *fragments = (struct fragments){0};
}

static int add_fragment(struct fragments *list, size_t start, size_t len, int32_t id)
{
    if (len == 0)
        return 0;
    if (list->n == list->cap) {
        size_t cap = list->cap + list->cap / 2 + 16;
        void *moved = realloc(list->items, cap * sizeof *list->items);
        if (!moved)
            return -ENOMEM;
        list->items = moved;
        list->cap = cap;
    }
    list->items[list->n++] = (struct fragment){.start = start, .len = len, .id = id};
    return 0;
}

static uint32_t len_of(const struct cut *cut, struct candidate candidate)
{
    return special_index_len(&cut->specials->index, candidate.state);
}

static bool comes_before(const struct cut *cut, struct candidate a, struct candidate b)
{
    const uint32_t x = len_of(cut, a), y = len_of(cut, b);
    return x != y ? x > y : a.at < b.at;
}

static int push(struct cut *cut, struct candidate candidate)
{
    if (cut->n == cut->cap) {
        size_t cap = cut->cap + cut->cap / 2 + 16;
        void *moved = realloc(cut->heap, cap * sizeof *cut->heap);
        if (!moved)
            return -ENOMEM;
        cut->heap = moved;
        cut->cap = cap;
    }
    size_t i = cut->n++;
    for (; i > 0 && comes_before(cut, candidate, cut->heap[(i - 1) / 2]); i = (i - 1) / 2)
        cut->heap[i] = cut->heap[(i - 1) / 2];
    cut->heap[i] = candidate;
    cut->steps++;
    return 0;
}

static struct candidate pop(struct cut *cut)
{
    const struct candidate top = cut->heap[0], last = cut->heap[--cut->n];
    size_t i = 0;
    for (size_t child = 1; child < cut->n; child = 2 * i + 1) {
        child += child + 1 < cut->n && comes_before(cut, cut->heap[child + 1], cut->heap[child]);
        if (!comes_before(cut, cut->heap[child], last))
            break;
        cut->heap[i] = cut->heap[child];
        i = child;
    }
    cut->heap[i] = last;
    cut->steps++;
    return top;
}

/* Makes the longest token of at most `limit` bytes the candidate of its place, if there is one. */
static int propose(struct cut *cut, struct candidate candidate, uint32_t limit)
{
    const struct special_index *index = &cut->specials->index;
    const uint32_t state = candidate.state, within = limit < candidate.unmarked ? limit : candidate.unmarked;
    candidate.state = special_index_longest(index, state, SPECIAL_USER_DEFINED, limit);
    if (cut->control_too) {
        const uint32_t any = special_index_longest(index, state, SPECIAL_ALL, within);
        if (special_index_len(index, any) > len_of(cut, candidate))
            candidate.state = any;
    }
    return candidate.state != 0 ? push(cut, candidate) : 0;
}

/* Reads the text from its end. */
static int find_candidates(struct cut *cut, size_t len, const uint8_t *from_user)
{
    uint32_t state = 0, unmarked = 0;
    int r = 0;
    for (size_t at = len; r == 0 && at > 0;) {
        at--;
        unmarked = from_user && from_user[at] ? 0 : unmarked + 1;
        state = special_index_step(&cut->specials->index, state, cut->text[at], &cut->steps);
        if (state != 0)
            r = propose(cut, (struct candidate){(uint32_t)at, state, unmarked}, UINT32_MAX);
    }
    return r;
}

/* Does white space that follows this token belong to it? In Phi-3's vocabulary it does, but for three. */
static bool strips_right(const struct specials *specials, struct bytes token)
{
    return specials->strip_right && !bytes_equal(token, BYTES_LITERAL("<unk>")) &&
           !bytes_equal(token, BYTES_LITERAL("<s>")) && !bytes_equal(token, BYTES_LITERAL("<|endoftext|>"));
}

static bool is_white(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Covers the token's bytes, and those of the white space that it swallows. */
static void cover(struct cut *cut, struct candidate candidate, int32_t id, size_t text_len)
{
    size_t end = candidate.at + len_of(cut, candidate);
    if (strips_right(cut->specials, vocabulary_text(cut->vocabulary, (uint32_t)id)))
        while (end < text_len && is_white(cut->text[end]) && cut->covered_from[end] == 0)
            end++;
    for (size_t i = candidate.at; i < end; i++)
        cut->covered_from[i] = candidate.at + 1;
    cut->steps += end - candidate.at;
}

static int compare_starts(const void *a, const void *b)
{
    const struct fragment *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Takes tokens, longest first: their fragments, in any order. */
static int take_tokens(struct cut *cut, size_t text_len, struct fragments *taken)
{
    int r = 0;
    while (r == 0 && cut->n > 0) {
        const struct candidate best = pop(cut);
        const uint32_t len = len_of(cut, best), blocked_from = cut->covered_from[best.at + len - 1];
        if (cut->covered_from[best.at] != 0)
            continue;
        if (blocked_from != 0) {
            r = propose(cut, best, blocked_from - 1 - best.at);
            continue;
        }
        const int32_t id = special_index_id(&cut->specials->index, best.state);
        cover(cut, best, id, text_len);
        r = add_fragment(taken, best.at, len, id);
    }
    return r;
}

/* The tokens in order, and the text between them that no token has swallowed. */
static int fill_gaps(const struct cut *cut, size_t text_len, struct fragments *taken, struct fragments *out)
{
    size_t at = 0;
    int r = 0;
    if (taken->n > 0)
        qsort(taken->items, taken->n, sizeof *taken->items, compare_starts);
    for (size_t i = 0; r == 0 && i < taken->n; i++) {
        const struct fragment token = taken->items[i];
        r = add_fragment(out, at, token.start - at, -1);
        if (r == 0)
            r = add_fragment(out, token.start, token.len, token.id);
        at = token.start + token.len;
        while (at < text_len && cut->covered_from[at] == token.start + 1)
            at++;
    }
    return r < 0 ? r : add_fragment(out, at, text_len - at, -1);
}

int specials_split(const struct specials *specials, const struct vocabulary *vocabulary, struct bytes text,
                   bool control_too, const uint8_t *from_user, struct fragments *ret_fragments)
{
    struct cut cut = {
        .specials = specials, .vocabulary = vocabulary, .text = text.data, .control_too = control_too};
    struct fragments taken = {0}, out = {0};
    int r = find_candidates(&cut, text.len, from_user);
    if (r == 0 && cut.n > 0) {
        cut.covered_from = calloc(text.len, sizeof *cut.covered_from);
        r = cut.covered_from ? take_tokens(&cut, text.len, &taken) : -ENOMEM;
    }
    if (r == 0)
        r = fill_gaps(&cut, text.len, &taken, &out);
    free(cut.covered_from);
    free(cut.heap);
    fragments_deinit(&taken);
    if (r < 0) {
        fragments_deinit(&out);
        return r;
    }
    out.steps = cut.steps;
    *ret_fragments = out;
    return 0;
}
