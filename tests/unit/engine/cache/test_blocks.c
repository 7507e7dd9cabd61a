/* SPDX-License-Identifier: MIT */
#include "tests/unit/run.h"
#include "engine/cache/blocks.h"

#include <signal.h>
#include <stdlib.h>

START_TEST(a_block_is_free_again_when_its_last_holder_lets_go)
{
    struct blocks *blocks;
    uint32_t id;
    ck_assert_int_eq(blocks_new(1, &blocks), 0);
    ck_assert(blocks_alloc(blocks, 1, &id));
    blocks_ref(blocks, &id, 1);
    blocks_unref(blocks, &id, 1);
    ck_assert_uint_eq(blocks_available(blocks), 0);
    uint32_t other = 77;
    ck_assert(!blocks_alloc(blocks, 1, &other));
    blocks_unref(blocks, &id, 1);
    ck_assert_uint_eq(blocks_available(blocks), 1);
    ck_assert(blocks_alloc(blocks, 1, &other));
    ck_assert_uint_eq(other, id);
    blocks_free(blocks);
}
END_TEST

START_TEST(a_request_for_too_many_takes_none_and_writes_nothing)
{
    struct blocks *blocks;
    uint32_t ids[6] = {99, 99, 99, 99, 99, 99};
    ck_assert_int_eq(blocks_new(5, &blocks), 0);
    ck_assert(!blocks_alloc(blocks, 6, ids));
    ck_assert_uint_eq(ids[0], 99);
    ck_assert_uint_eq(blocks_available(blocks), 5);
    ck_assert(blocks_alloc(blocks, 0, NULL));
    ck_assert(blocks_alloc(blocks, 5, ids));
    ck_assert_uint_eq(blocks_available(blocks), 0);
    blocks_free(blocks);
}
END_TEST

START_TEST(no_block_is_ever_handed_out_twice)
{
    enum { N = 64 };
    struct blocks *blocks;
    uint32_t model[N] = {0}; /* holders, kept apart */
    ck_assert_int_eq(blocks_new(N, &blocks), 0);
    srand(3);
    for (int round = 0; round < 20000; round++) {
        uint32_t id = (uint32_t)rand() % N, fresh[4], n = (uint32_t)rand() % 5;
        switch (rand() % 3) {
        case 0:
            if (!blocks_alloc(blocks, n, fresh))
                break;
            for (uint32_t i = 0; i < n; i++) {
                ck_assert_uint_lt(fresh[i], N);
                ck_assert_uint_eq(model[fresh[i]]++, 0);
            }
            break;
        case 1:
            if (model[id] > 0 && model[id]++)
                blocks_ref(blocks, &id, 1);
            break;
        default:
            if (model[id] > 0 && model[id]--)
                blocks_unref(blocks, &id, 1);
        }
        uint32_t available = 0;
        for (uint32_t i = 0; i < N; i++) {
            ck_assert_uint_eq(blocks_holders(blocks, i), model[i]);
            available += model[i] == 0;
        }
        ck_assert_uint_eq(blocks_available(blocks), available);
    }
    ck_assert_uint_eq(blocks_total(blocks), N);
    blocks_free(blocks);
}
END_TEST

START_TEST(freeing_a_free_block_aborts)
{
    struct blocks *blocks;
    uint32_t id = 0;
    ck_assert_int_eq(blocks_new(2, &blocks), 0);
    blocks_unref(blocks, &id, 1);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_block_is_free_again_when_its_last_holder_lets_go);
    tcase_add_test(tests, a_request_for_too_many_takes_none_and_writes_nothing);
    tcase_add_test(tests, no_block_is_ever_handed_out_twice);
    if (tests_fork())
        tcase_add_test_raise_signal(tests, freeing_a_free_block_aborts, SIGABRT);
}

int main(void)
{
    return run_tests("blocks", add);
}
