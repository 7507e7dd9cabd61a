/* SPDX-License-Identifier: MIT */
/* Memory that is given back all at once. */

#include "common/arena.h"
#include "tests/unit/run.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static bool all_zero(const uint8_t *memory, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (memory[i])
            return false;
    return true;
}

START_TEST(memory_is_zeroed_aligned_and_stays_where_it_is)
{
    struct arena arena = {0};
    uint8_t *taken[200];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 200; i++) {
            taken[i] = arena_take(&arena, i + 1, 37);
            ck_assert_ptr_nonnull(taken[i]);
            ck_assert_uint_eq((uintptr_t)taken[i] % 16, 0);
            ck_assert(all_zero(taken[i], (i + 1) * 37));
            memset(taken[i], (int)i | 1, (i + 1) * 37);
        }
        for (size_t i = 0; i < 200; i++)
            for (size_t j = 0; j < (i + 1) * 37; j++)
                ck_assert_uint_eq(taken[i][j], (uint8_t)(i | 1));
        arena_reset(&arena);
    }
    arena_deinit(&arena);
    arena_deinit(&arena);
}
END_TEST

START_TEST(the_limit_holds_for_the_sum_and_is_free_again_after_a_reset)
{
    struct arena arena = {.limit = 1000};
    ck_assert_ptr_null(arena_take(&arena, 1, 1001));
    ck_assert_ptr_nonnull(arena_take(&arena, 1, 1000));
    ck_assert_ptr_null(arena_take(&arena, 1, 1));
    arena_reset(&arena);
    for (int i = 0; i < 62; i++) /* each takes a multiple of 16 bytes */
        ck_assert_ptr_nonnull(arena_take(&arena, 1, 1));
    ck_assert_ptr_null(arena_take(&arena, 1, 9));
    arena_deinit(&arena);
    ck_assert_uint_eq(arena.used, 0);
}
END_TEST

START_TEST(a_size_that_no_machine_has_is_refused)
{
    struct arena arena = {0};
    ck_assert_ptr_null(arena_take(&arena, SIZE_MAX, 2));
    ck_assert_ptr_null(arena_take(&arena, 1, SIZE_MAX));
    ck_assert_ptr_nonnull(arena_take(&arena, 1, 1 << 20)); /* larger than a chunk */
    arena_deinit(&arena);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, memory_is_zeroed_aligned_and_stays_where_it_is);
    tcase_add_test(tests, the_limit_holds_for_the_sum_and_is_free_again_after_a_reset);
    tcase_add_test(tests, a_size_that_no_machine_has_is_refused);
}

int main(void)
{
    return run_tests("arena", add);
}
