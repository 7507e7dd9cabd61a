/* SPDX-License-Identifier: MIT */
#ifndef COMMON_HEAP_H
#define COMMON_HEAP_H

/* A binary heap of items that know their place, so any of them can leave it in logarithmic time.
 *
 * An item embeds a `struct heap_node`, and HEAP_ITEM finds the item from it. The heap owns only its array,
 * no items. */

#include <stdbool.h>
#include <stddef.h>

struct heap_node {
    size_t index; /* the heap's own */
};

struct heap { /* zeroed but for `before`: empty */
    bool (*before)(const struct heap_node *a, const struct heap_node *b);
    struct heap_node **nodes;
    size_t n, cap;
};

/* The item of type `type` whose member `member` the node is. */
#define HEAP_ITEM(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* Adds. 0, or -ENOMEM with the heap unchanged. */
int heap_push(struct heap *heap, struct heap_node *node);

/* The first item; NULL when empty. */
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
