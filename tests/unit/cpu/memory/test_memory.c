/* SPDX-License-Identifier: MIT */
/* What is taken, and who may promise himself how much: workers of one machine never more than there is. */

#include "cpu/memory/memory.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GB ((uint64_t)1 << 30)

START_TEST(one_alone_takes_half_of_what_is_available)
{
    const struct memory memory = {.total = 4 * GB};
    const struct available available = {.now = 16 * GB, .total = 24 * GB};
    ck_assert_uint_eq(memory_share(&memory, &available), 8 * GB);
}
END_TEST

/* Each packs its weights, if they are its own, and promises itself its KV cache in turn. */
static void check_all(uint32_t n, uint64_t weights, bool shared, bool at_once)
{
    uint64_t total = 23 * GB, now = 22 * GB, taken = shared ? weights : 0, siblings = 0, first = 0;
    now -= shared ? weights : at_once ? n * weights : 0;
    siblings += at_once && !shared ? n * weights : 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t own = shared ? 0 : weights;
        now -= at_once ? 0 : own;
        siblings -= at_once ? own : 0;
        const struct memory memory = {.total = own, .shared = shared ? weights : 0, .n_sharers = n};
        const struct available available = {.now = now, .total = total, .siblings = siblings};
        uint64_t share = memory_share(&memory, &available);
        first = i == 0 ? share : first;
        ck_assert_uint_le(share, now);
        ck_assert_msg(share <= first + n && first <= share + n, "worker %u takes %llu, the first %llu", i,
                      (unsigned long long)share, (unsigned long long)first);
        now -= share; /* promises count */
        siblings += share + (at_once ? 0 : own);
        taken += own + share;
        siblings += at_once ? own : 0;
    }
    ck_assert_msg(taken <= total, "%u workers with %u GB of weights take %llu of %llu bytes", n,
                  (unsigned)(weights / GB), (unsigned long long)taken, (unsigned long long)total);
}

START_TEST(together_they_stay_below_what_there_is_and_each_has_the_same)
{
    for (uint32_t n = 1; n <= 8; n++)
        for (uint64_t weights = GB; weights * n < 20 * GB; weights += GB)
            for (int i = 0; i < 4; i++)
                check_all(n, weights, i & 1, i & 2);
}
END_TEST

START_TEST(what_a_worker_is_short_of_it_does_not_promise_itself)
{
    const struct memory memory = {.n_sharers = 2};
    const struct available available = {.now = GB, .total = 24 * GB, .siblings = 20 * GB};
    ck_assert_uint_eq(memory_share(&memory, &available), GB);
    const struct memory alone = {0}; /* what it has no part in */
    ck_assert_uint_eq(memory_share(&alone, &available), GB / 2);
}
END_TEST

START_TEST(an_eighth_of_what_the_weights_leave_is_for_everything_else)
{
    const struct memory memory = {.total = 10 * GB, .n_sharers = 2};
    const struct available available = {.now = 22 * GB, .total = 24 * GB};
    ck_assert_uint_eq(memory_share(&memory, &available), 2 * GB - GB / 4);
}
END_TEST

START_TEST(weights_beyond_its_part_leave_nothing)
{
    const struct memory memory = {.total = 13 * GB, .n_sharers = 2};
    const struct available available = {.now = 20 * GB, .total = 24 * GB};
    ck_assert_uint_eq(memory_share(&memory, &available), 0);
}
END_TEST

/* What all have together is nobody's part, be it weights or the pool's prefix store. */
START_TEST(a_prefix_store_counts_once_whoever_asks)
{
    for (uint32_t n = 1; n <= 8; n++) {
        const struct available available = {.now = 14 * GB, .total = 24 * GB}; /* ten are taken already */
        const struct memory weights = {.shared = 10 * GB, .n_sharers = n};
        const struct memory both = {.shared = 6 * GB, .reserved = 4 * GB, .n_sharers = n};
        const struct memory store = {.reserved = 10 * GB, .n_sharers = n};
        uint64_t share = memory_share(&weights, &available);
        ck_assert_uint_eq(memory_share(&both, &available), share);
        ck_assert_uint_eq(memory_share(&store, &available), share);
        ck_assert_uint_le(n * share, 14 * GB);
        /* The machine's whole, less the store, is what workers divide when they are told a number. */
        ck_assert_uint_eq(memory_divided(&both, &available), 14 * GB);
    }
    const struct available full = {.now = 20 * GB, .total = 24 * GB};
    const struct memory large = {.reserved = 30 * GB};
    ck_assert_uint_eq(memory_share(&large, &full), 0);
    ck_assert_uint_eq(memory_divided(&large, &full), 0);
}
END_TEST

/* A limit below what is free: the store's pages are charged to it too. */
START_TEST(within_a_limit_the_store_leaves_less_for_each)
{
    const struct available limited = {.now = 8 * GB, .total = 8 * GB};
    const struct memory without = {.n_sharers = 1, .total = 4 * GB};
    const struct memory with = {.n_sharers = 1, .total = 4 * GB, .reserved = 2 * GB};
    ck_assert_uint_eq(memory_share(&without, &limited), 4 * GB - GB / 2);
    ck_assert_uint_eq(memory_share(&with, &limited), 2 * GB - GB / 4);
}
END_TEST

static bool is_mapped(const void *at)
{
    FILE *file = fopen("/proc/self/maps", "re");
    ck_assert_ptr_nonnull(file);
    char line[512];
    unsigned long start, end;
    bool mapped = false;
    while (fgets(line, sizeof line, file))
        mapped |= sscanf(line, "%lx-%lx ", &start, &end) == 2 && (unsigned long)at >= start &&
                  (unsigned long)at < end;
    fclose(file);
    return mapped;
}

START_TEST(pieces_are_zeros_that_are_counted_and_given_back_together)
{
    static const size_t sizes[] = {100, 0, 4096, (4u << 20) - 1, 4u << 20, (6u << 20) + 1};
    enum { N = sizeof sizes / sizeof *sizes };
    const uint8_t nothing[100] = {0};
    struct memory memory = {0};
    uint8_t *pieces[N];
    size_t total = 0;
    for (int i = 0; i < N; i++) {
        void *piece = NULL;
        ck_assert_int_eq(memory_take(&memory, sizes[i], &piece), 0);
        pieces[i] = piece;
        ck_assert_uint_eq((uintptr_t)piece % 4096, 0);
        if (sizes[i] >= (size_t)4 << 20) /* two huge pages: it begins on the border of one */
            ck_assert_uint_eq((uintptr_t)piece % (2 << 20), 0);
        if (sizes[i] > 0)
            ck_assert_mem_eq(pieces[i], nothing, sizeof nothing);
        memset(pieces[i], i + 1, sizes[i]);
        ck_assert_uint_eq(memory.total, total += sizes[i]);
    }
    for (int i = 0; i < N; i++)
        if (sizes[i] > 0)
            ck_assert(pieces[i][0] == i + 1 && pieces[i][sizes[i] - 1] == i + 1);
    ck_assert(is_mapped(pieces[N - 1]));
    memory_deinit(&memory);
    ck_assert_uint_eq(memory.total, 0);
    ck_assert_ptr_null(memory.pieces);
    for (int i = 3; i < N; i++)
        ck_assert(!is_mapped(pieces[i]));
}
END_TEST

START_TEST(more_than_can_be_mapped_is_refused_and_takes_nothing)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - ((size_t)2 << 20) + 1, SIZE_MAX - ((size_t)2 << 20),
                                   SIZE_MAX / 2};
    struct memory memory = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *piece = &memory;
        ck_assert_int_eq(memory_take(&memory, sizes[i], &piece), -ENOMEM);
        ck_assert(piece == &memory); /* untouched */
        ck_assert_ptr_null(memory.pieces);
        ck_assert_uint_eq(memory.total, 0);
    }
}
END_TEST

START_TEST(what_is_forgotten_is_zero_and_whole_pages_only)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct memory memory = {0};
    void *taken;
    ck_assert_int_eq(memory_take(&memory, 8 * page, &taken), 0);
    uint8_t *piece = taken;
    ck_assert_uint_eq(memory_forget(piece, 8 * page), 0); /* nothing was written yet */
    memset(piece, 7, 4 * page);
    ck_assert_uint_eq(memory_forget(piece + 1, 2 * page - 2), 0); /* no page is whole */
    ck_assert_uint_eq(memory_forget(piece + 1, 2 * page - 1), page);
    ck_assert(piece[page - 1] == 7 && piece[page] == 0 && piece[2 * page - 1] == 0 && piece[2 * page] == 7);
    ck_assert_uint_eq(memory_forget(piece, 8 * page), 4 * page); /* the look has committed one again */
    ck_assert(piece[0] == 0 && piece[3 * page] == 0);
    memory_deinit(&memory);
}
END_TEST

START_TEST(only_scratch_is_forgotten)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), huge = (size_t)5 << 20;
    struct memory memory = {0};
    void *kept, *small, *large;
    ck_assert_int_eq(memory_take(&memory, 100, &kept), 0);
    ck_assert_int_eq(memory_take_scratch(&memory, 100, &small), 0);
    ck_assert_int_eq(memory_take_scratch(&memory, huge, &large), 0);
    memset(kept, 1, 100);
    memset(small, 2, 100);
    memset(large, 3, huge);
    ck_assert_uint_ge(memory_forget_scratch(&memory), page + huge);
    ck_assert_uint_eq(*(uint8_t *)kept, 1);
    ck_assert_uint_eq(*(uint8_t *)small, 0);
    ck_assert_uint_eq(((uint8_t *)large)[huge - 1], 0);
    memory_deinit(&memory);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, pieces_are_zeros_that_are_counted_and_given_back_together);
    tcase_add_test(tests, more_than_can_be_mapped_is_refused_and_takes_nothing);
    tcase_add_test(tests, a_prefix_store_counts_once_whoever_asks);
    tcase_add_test(tests, within_a_limit_the_store_leaves_less_for_each);
    tcase_add_test(tests, one_alone_takes_half_of_what_is_available);
    tcase_add_test(tests, together_they_stay_below_what_there_is_and_each_has_the_same);
    tcase_add_test(tests, what_a_worker_is_short_of_it_does_not_promise_itself);
    tcase_add_test(tests, an_eighth_of_what_the_weights_leave_is_for_everything_else);
    tcase_add_test(tests, weights_beyond_its_part_leave_nothing);
    tcase_add_test(tests, what_is_forgotten_is_zero_and_whole_pages_only);
    tcase_add_test(tests, only_scratch_is_forgotten);
}

int main(void)
{
    return run_tests("memory", add);
}
