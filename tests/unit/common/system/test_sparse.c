/* SPDX-License-Identifier: MIT */
/* Arrays of which little may be used. */

#include "common/system/sparse.h"
#include "tests/unit/run.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

START_TEST(small_and_large_ones_are_zeros_to_their_ends)
{
    static const size_t counts[] = {1, 1000, (1 << 17) - 1, 1 << 17, 1 << 20};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint32_t *array = sparse_new(counts[i], sizeof *array);
        ck_assert_ptr_nonnull(array);
        ck_assert_uint_eq(array[0], 0);
        ck_assert_uint_eq(array[counts[i] - 1], 0);
        array[0] = array[counts[i] - 1] = 7;
        ck_assert_ptr_null(sparse_free(array, counts[i], sizeof *array));
    }
    ck_assert_ptr_null(sparse_free(NULL, 1 << 20, 4));
}
END_TEST

START_TEST(a_large_one_takes_no_memory_before_it_is_touched)
{
    const size_t n = 64 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char there[2];
    char *array = sparse_new(n, 1);
    ck_assert_ptr_nonnull(array);
    array[0] = 1;
    ck_assert_int_eq(mincore(array, page, there), 0);
    ck_assert_int_eq(there[0] & 1, 1);
    ck_assert_int_eq(mincore(array + n / 2 / page * page, page, there), 0);
    ck_assert_int_eq(there[0] & 1, 0);
    sparse_free(array, n, 1);
}
END_TEST

START_TEST(what_no_size_can_hold_is_not_made)
{
    ck_assert_ptr_null(sparse_new(SIZE_MAX / 2, 4));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, small_and_large_ones_are_zeros_to_their_ends);
    tcase_add_test(tests, a_large_one_takes_no_memory_before_it_is_touched);
    tcase_add_test(tests, what_no_size_can_hold_is_not_made);
}

int main(void)
{
    return run_tests("sparse", add);
}
