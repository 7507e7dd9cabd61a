/* SPDX-License-Identifier: MIT */
/* Joining neighbours, best pair first.
 *
 * The symbols are an array that is also a doubly linked list: joining two keeps the left one, which grows,
 * and unlinks the right one, whose length becomes 0. Candidates wait in a binary heap. A join changes what
 * its neighbours could be joined with, so candidates go stale; they are not searched for but recognised when
 * they come up, by the sum of the two lengths: a symbol only ever grows or vanishes, so an equal sum means
 * that nothing has changed. At most 3 n candidates are ever made: n − 1 at the start and two after each join.
 */

#include "text/tokenizer/merge.h"

#include <errno.h>
#include <stdlib.h>

void merger_deinit(struct merger *merger)
{
    free(merger->symbols);
    free(merger->heap);
    *merger = (struct merger){0};
}

void merger_clear(struct merger *merger)
{
    merger->n = 0;
    merger->heap_n = 0;
}

int merger_add(struct merger *merger, uint32_t start, uint32_t len, int32_t id)
{
    if (merger->n == INT32_MAX)
        return -ENOMEM;
    if (merger->n == merger->cap) {
        size_t cap = merger->cap + merger->cap / 2 + 32;
        void *moved = realloc(merger->symbols, cap * sizeof *merger->symbols);
        if (!moved)
            return -ENOMEM;
        merger->symbols = moved;
        merger->cap = cap;
    }
    int32_t i = (int32_t)merger->n++;
    merger->symbols[i] =
        (struct merge_symbol){.start = start, .len = len, .id = id, .before = i - 1, .next = -1};
    if (i > 0)
        merger->symbols[i - 1].next = i;
    return 0;
}

static int heap_push(struct merger *m, struct merge_candidate candidate)
{
    if (m->heap_n == m->heap_cap) {
        size_t cap = m->heap_cap + m->heap_cap / 2 + 32;
        void *moved = realloc(m->heap, cap * sizeof *m->heap);
        if (!moved)
            return -ENOMEM;
        m->heap = moved;
        m->heap_cap = cap;
    }
    size_t i = m->heap_n++;
    while (i > 0 && candidate.order < m->heap[(i - 1) / 2].order) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = candidate;
    return 0;
}

static struct merge_candidate heap_pop(struct merger *m)
{
    struct merge_candidate top = m->heap[0], last = m->heap[--m->heap_n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= m->heap_n)
            break;
        if (child + 1 < m->heap_n && m->heap[child + 1].order < m->heap[child].order)
            child++;
        if (last.order <= m->heap[child].order)
            break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return top;
}

/* Puts `left` and its right neighbour on the heap if they may be joined. */
static int propose(struct merger *m, int32_t left, merge_find *find, const void *arg)
{
    if (left < 0 || m->symbols[left].next < 0)
        return 0;
    const struct merge_symbol *l = &m->symbols[left], *r = &m->symbols[l->next];
    int32_t id;
    uint32_t priority;
    if (!find(arg, l, r, &id, &priority))
        return 0;
    return heap_push(m, (struct merge_candidate){.order = (uint64_t)priority << 32 | (uint32_t)left,
                                                 .len = l->len + r->len,
                                                 .id = id});
}

int merger_run(struct merger *merger, merge_find *find, const void *arg)
{
    for (size_t i = 0; i + 1 < merger->n; i++) {
        int r = propose(merger, (int32_t)i, find, arg);
        if (r < 0)
            return r;
    }
    while (merger->heap_n > 0) {
        struct merge_candidate best = heap_pop(merger);
        int32_t i = (int32_t)(uint32_t)best.order;
        struct merge_symbol *left = &merger->symbols[i];
        if (left->len == 0 || left->next < 0 || left->len + merger->symbols[left->next].len != best.len)
            continue;
        struct merge_symbol *right = &merger->symbols[left->next];
        left->len = best.len;
        left->id = best.id;
        left->next = right->next;
        if (right->next >= 0)
            merger->symbols[right->next].before = i;
        right->len = 0;
        int r = propose(merger, left->before, find, arg);
        if (r == 0)
            r = propose(merger, i, find, arg);
        if (r < 0)
            return r;
    }
    return 0;
}
