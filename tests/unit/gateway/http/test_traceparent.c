/* SPDX-License-Identifier: MIT */
/* What is a traceparent, and what is none. */

#include "gateway/http/traceparent.h"
#include "tests/unit/run.h"

#include <string.h>

START_TEST(only_a_well_formed_one_is_taken)
{
    static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    static const char *const wrong[] = {"",
                                        "00",
                                        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                                        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                                        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                                        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
                                        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
                                        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
                                        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"};
    char taken[TRACEPARENT_BYTES] = "as it was";
    ck_assert(!traceparent_take(NULL, taken));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!traceparent_take(wrong[i], taken), "%s was taken", wrong[i]);
    ck_assert_str_eq(taken, "as it was");
    ck_assert(traceparent_take(good, taken));
    ck_assert_str_eq(taken, good);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, only_a_well_formed_one_is_taken);
}

int main(void)
{
    return run_tests("gateway/traceparent", add);
}
