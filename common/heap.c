/* SPDX-License-Identifier: MIT */
/* The heap: nodes[i] stands after neither of its children, nodes[2i + 1] and nodes[2i + 2]. */

#include "common/heap.h"

#include <errno.h>
#include <stdlib.h>

static void put(struct heap *heap, size_t at, struct heap_node *node)
{
    heap->nodes[at] = node;
    node->index = at;
}

void heap_settle(struct heap *heap, struct heap_node *node)
{
    struct heap_node **nodes = heap->nodes;
    size_t at = node->index;
    while (at > 0 && heap->before(node, nodes[(at - 1) / 2])) {
        put(heap, at, nodes[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < heap->n && heap->before(nodes[child + 1], nodes[child]))
            child++;
        if (child >= heap->n || !heap->before(nodes[child], node))
            break;
        put(heap, at, nodes[child]);
        at = child;
    }
    put(heap, at, node);
}

int heap_push(struct heap *heap, struct heap_node *node)
{
    if (heap->n == heap->cap) {
        size_t cap = heap->cap ? heap->cap * 2 : 16;
        struct heap_node **nodes = realloc(heap->nodes, cap * sizeof *nodes);
        if (!nodes)
            return -ENOMEM;
        heap->nodes = nodes;
        heap->cap = cap;
    }
    put(heap, heap->n++, node);
    heap_settle(heap, node);
    return 0;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    struct heap_node *last = heap->nodes[--heap->n];
    if (last == node)
        return;
    put(heap, node->index, last);
    heap_settle(heap, last);
}

void heap_deinit(struct heap *heap)
{
    free(heap->nodes);
    heap->nodes = NULL;
    heap->n = heap->cap = 0;
}
