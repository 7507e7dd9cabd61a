/* SPDX-License-Identifier: MIT */
#ifndef COMMON_HEAP_H
#define COMMON_HEAP_H

/* A binary heap whose items know their index, so any of them can be removed in logarithmic time.
 *
 * An item embeds a `struct heap_node`, and HEAP_ITEM finds the item from it. The heap owns only its array,
 * not the items. */

#include <stdbool.h>
#include <stddef.h>

struct heap_node {
    size_t index; /* for the heap only */
};

struct heap { /* zeroed except for `before`: empty */
    bool (*before)(const struct heap_node *a, const struct heap_node *b);
    struct heap_node **nodes;
    size_t n, cap;
};

/* The item of type `type` whose member `member` is the node. */
#define HEAP_ITEM(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* Adds. 0, or -ENOMEM with the heap unchanged. */
int heap_push(struct heap *heap, struct heap_node *node);

/* The first item; NULL: the heap is empty. */
static inline struct heap_node *heap_first(const struct heap *heap)
{
    return heap->n > 0 ? heap->nodes[0] : NULL;
}

/* Removes a node from the heap. */
void heap_remove(struct heap *heap, struct heap_node *node);

/* Restores the order after the key of a node in the heap has changed. */
void heap_settle(struct heap *heap, struct heap_node *node);

/* Frees the array. */
void heap_deinit(struct heap *heap);

#endif
