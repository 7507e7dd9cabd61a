/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_MERGE_H
#define TEXT_TOKENIZER_MERGE_H

/* Merges adjacent symbols of a sequence, the best pair first, until no pair can be merged.
 *
 * Both kinds of tokenizer use it. They differ only in which pairs can be merged and in the priority of a
 * pair. n symbols take O(n log n) time, however long a word is. A merger reuses its memory from one word to
 * the next. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct merge_symbol {
    uint32_t start, len;  /* the bytes of the text that it covers */
    int32_t id;           /* the caller's name for it */
    int32_t before, next; /* remaining neighbours; -1 at the ends */
};

/* Returns whether `left` and `right` can be merged; if so, sets the id of the result and a priority. Lower
 * priorities are merged first, equal ones from left to right. */
typedef bool merge_find(const void *arg, const struct merge_symbol *left, const struct merge_symbol *right,
                        int32_t *ret_id, uint32_t *ret_priority);

struct merge_candidate {
    uint64_t order; /* priority, then the left symbol's index: the heap's key */
    uint32_t len;   /* bytes of both; the candidate is stale if the symbols now have another length */
    int32_t id;     /* of the merged symbol */
};

struct merger { /* zeroed: empty, ready to use */
    struct merge_symbol *symbols;
    size_t n, cap;
    struct merge_candidate *heap;
    size_t heap_n, heap_cap;
};

void merger_deinit(struct merger *merger);

/* Removes all symbols but keeps the memory. */
void merger_clear(struct merger *merger);

/* Appends a symbol, which starts where the previous one ends. 0 or -ENOMEM. */
int merger_add(struct merger *merger, uint32_t start, uint32_t len, int32_t id);

/* Merges. The remaining symbols are then linked by `next`, starting at symbols[0] (if n > 0). 0 or -ENOMEM.
 */
int merger_run(struct merger *merger, merge_find *find, const void *arg);

#endif
