/* SPDX-License-Identifier: MIT */
/* Who may promise himself how much: workers of one machine never more than there is. */

#include "worker/cpu/memory.h"
#include "tests/unit/run.h"

#define GB ((uint64_t)1 << 30)

START_TEST(one_alone_takes_half_of_what_is_available)
{
    const struct memory memory = {.total = 4 * GB};
    const struct available available = {.now = 16 * GB, .total = 24 * GB};
    ck_assert_uint_eq(memory_share(&memory, &available), 8 * GB);
}
END_TEST

/* Each packs its weights and promises itself its KV cache in turn; promised pages are not written, so those
 * that come later do not see them go. */
START_TEST(together_they_stay_below_what_there_is)
{
    for (uint32_t n = 1; n <= 8; n++)
        for (uint64_t weights = GB; weights * n < 20 * GB; weights += GB)
            for (int at_once = 0; at_once < 2; at_once++) {
                uint64_t total = 23 * GB, now = 22 * GB, taken = 0;
                now -= at_once ? n * weights : 0;
                for (uint32_t i = 0; i < n; i++) {
                    now -= at_once ? 0 : weights;
                    const struct memory memory = {.total = weights, .n_sharers = n};
                    const struct available available = {.now = now, .total = total};
                    taken += weights + memory_share(&memory, &available);
                }
                ck_assert_msg(taken <= total, "%u workers with %u GB of weights take %llu of %llu bytes", n,
                              (unsigned)(weights / GB), (unsigned long long)taken, (unsigned long long)total);
            }
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

static void add(TCase *tests)
{
    tcase_add_test(tests, one_alone_takes_half_of_what_is_available);
    tcase_add_test(tests, together_they_stay_below_what_there_is);
    tcase_add_test(tests, an_eighth_of_what_the_weights_leave_is_for_everything_else);
    tcase_add_test(tests, weights_beyond_its_part_leave_nothing);
}

int main(void)
{
    return run_tests("memory", add);
}
