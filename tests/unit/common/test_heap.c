/* SPDX-License-Identifier: MIT */
/* The heap: the first is the least, whatever was taken out of the middle or changed there. */

#include "common/heap.h"
#include "tests/unit/run.h"

#include <stdlib.h>

struct item {
    int key;
    struct heap_node node;
};

static bool less(const struct heap_node *a, const struct heap_node *b)
{
    return HEAP_ITEM(a, struct item, node)->key < HEAP_ITEM(b, struct item, node)->key;
}

static int pop(struct heap *heap)
{
    struct heap_node *first = heap_first(heap);
    heap_remove(heap, first);
    return HEAP_ITEM(first, struct item, node)->key;
}

START_TEST(items_removed_from_anywhere_or_changed_leave_the_order_intact)
{
    enum { N = 500 };
    static struct item items[N];
    struct heap heap = {.before = less};
    ck_assert_ptr_null(heap_first(&heap));
    srand(7);
    for (int i = 0; i < N; i++) {
        items[i].key = rand() % 100;
        ck_assert_int_eq(heap_push(&heap, &items[i].node), 0);
    }
    for (int i = 0; i < N; i += 3)
        heap_remove(&heap, &items[i].node);
    for (int i = 1; i < N; i += 3) {
        items[i].key = rand() % 100;
        heap_settle(&heap, &items[i].node);
    }
    ck_assert_uint_eq(heap.n, N - (N + 2) / 3);
    for (int before = pop(&heap); heap.n > 0;) {
        int next = pop(&heap);
        ck_assert_int_le(before, next);
        before = next;
    }
    heap_deinit(&heap);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, items_removed_from_anywhere_or_changed_leave_the_order_intact);
}

int main(void)
{
    return run_tests("common/heap", add);
}
