/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_MERGE_H
#define TEXT_TOKENIZER_MERGE_H

/* Joins neighbours of a sequence of symbols, the best pair first, until no pair may be joined.
 *
 * Both tokenizers do this; they differ only in which pairs may be joined and how good a pair is. The work is
 * O(n log n) in the number of symbols, however long a word is. A merger keeps its memory from one word to the
 * next. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct merge_symbol {
    uint32_t start, len;  /* bytes of the text that it stands for */
    int32_t id;           /* whatever the caller names symbols by */
    int32_t before, next; /* neighbours that are left; -1 at the ends */
};

/* May `left` and `right` be joined? Then the name of the whole, and a priority: smaller is joined first,
 * equal ones from the left. */
typedef bool merge_find(const void *arg, const struct merge_symbol *left, const struct merge_symbol *right,
                        int32_t *ret_id, uint32_t *ret_priority);

struct merge_candidate {
    uint64_t order; /* priority, then the left symbol's index: the heap's key */
    uint32_t len;   /* bytes of both; if they differ by now, the candidate is stale */
    int32_t id;     /* name of the whole */
};

struct merger { /* a zeroed one is empty and ready */
    struct merge_symbol *symbols;
    size_t n, cap;
    struct merge_candidate *heap;
    size_t heap_n, heap_cap;
};

void merger_deinit(struct merger *merger);

/* Forgets the symbols, keeps the memory. */
void merger_clear(struct merger *merger);

/* Appends a symbol that begins where the one before ended. 0 or -ENOMEM. */
int merger_add(struct merger *merger, uint32_t start, uint32_t len, int32_t id);

/* Joins. Afterwards the symbols that are left are found from symbols[0] (if n > 0) along `next`. 0 or
 * -ENOMEM. */
int merger_run(struct merger *merger, merge_find *find, const void *arg);

#endif
