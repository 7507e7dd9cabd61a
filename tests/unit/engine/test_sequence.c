/* SPDX-License-Identifier: MIT */
/* A sequence by itself: which state may follow which, and who of two goes first. */

#include "engine/sequence.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define S CLOCK_NS_PER_S

enum { N_STATES = SEQUENCE_ENDED + 1 };

/* Row: from; column: to; both in the order of the states. */
static const char *const may_follow[N_STATES] = {
    ".+...++", /* waiting */
    "..+++++", /* prefilling */
    "...++++", /* decoding */
    "+...+++", /* leaving */
    "+....++", /* spoiled */
    "......+", /* due */
    ".......", /* ended */
};

/* What it says as it aborts; "" when it goes on. */
static const char *change_elsewhere(enum sequence_state from, enum sequence_state to)
{
    static char said[128];
    struct child child;
    if (child_begin(&child)) {
        struct sequence sequence = {.state = from};
        signal(SIGABRT, SIG_DFL);
        sequence_become(&sequence, to);
        _exit(sequence.state == to ? 0 : 1);
    }
    const int status = child_end(&child, said, sizeof said);
    ck_assert((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
              (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
    ck_assert_int_eq(WIFEXITED(status), said[0] == '\0');
    return said;
}

START_TEST(a_state_is_followed_by_those_of_the_picture_alone)
{
    static const char *const names[] = {"waiting", "prefilling", "decoding", "leaving",
                                        "spoiled", "due",        "ended"};
    for (int from = 0; from < N_STATES; from++) {
        ck_assert_str_eq(sequence_state_name((enum sequence_state)from), names[from]);
        for (int to = 0; to < N_STATES; to++) {
            char says[128] = "";
            if (may_follow[from][to] != '+')
                snprintf(says, sizeof says, "invalid sequence state change from %s to %s\n", names[from],
                         names[to]);
            ck_assert_str_eq(change_elsewhere((enum sequence_state)from, (enum sequence_state)to), says);
        }
    }
}
END_TEST

/* ---- order ---- */

/* Who goes first by this order: a, whatever arrived first; then b; or whoever arrived first, for nothing else
 * tells the two apart. */
static const char *first_of(bool (*order)(const struct sequence *a, const struct sequence *b),
                            struct sequence a, struct sequence b)
{
    bool is_a[2];
    for (int later = 0; later < 2; later++) {
        a.arrival = later ? 8 : 7;
        b.arrival = later ? 7 : 8;
        is_a[later] = order(&a, &b);
        ck_assert_int_eq(order(&b, &a), !is_a[later]);
    }
    return is_a[0] && is_a[1] ? "a" : is_a[0] ? "arrival" : "b";
}

#define first(...)  first_of(sequence_goes_before, __VA_ARGS__)
#define senior(...) first_of(sequence_is_senior, __VA_ARGS__)

START_TEST(a_class_is_worth_half_a_minute_of_waiting)
{
    const struct sequence low = {.submitted_ns = 1000 * S, .priority = -1};
    struct sequence high = {.submitted_ns = 1060 * S, .priority = 1};
    ck_assert_str_eq(first(low, high), "arrival");
    ck_assert_str_eq(senior(low, high), "arrival");
    high.submitted_ns--;
    ck_assert_str_eq(first(low, high), "b");
    ck_assert_str_eq(senior(low, high), "b");
    high.submitted_ns += 2;
    ck_assert_str_eq(first(low, high), "a");
    ck_assert_str_eq(senior(low, high), "a");
}
END_TEST

START_TEST(what_ran_before_is_due_at_once_and_the_rest_in_half_a_minute)
{
    const struct sequence waiting = {.submitted_ns = 1000 * S};
    struct sequence began = {.submitted_ns = 1030 * S, .started = true};
    ck_assert_str_eq(first(waiting, began), "arrival");
    began.submitted_ns--;
    ck_assert_str_eq(first(waiting, began), "b");
    began.submitted_ns += 2;
    ck_assert_str_eq(first(waiting, began), "a");
    ck_assert_str_eq(senior(waiting, began), "a"); /* by when they came */
    began.submitted_ns = 1000 * S;
    ck_assert_str_eq(senior(waiting, began), "arrival");
}
END_TEST

START_TEST(a_deadline_counts_where_it_is_nearer)
{
    const struct sequence without = {.submitted_ns = 1000 * S};
    struct sequence with = {.submitted_ns = 1020 * S, .deadline_ns = 1030 * S};
    ck_assert_str_eq(first(without, with), "arrival");
    with.deadline_ns--;
    ck_assert_str_eq(first(without, with), "b");
    with.deadline_ns += 2;
    ck_assert_str_eq(first(without, with), "a");
    ck_assert_str_eq(senior(without, with), "a");
    with = (struct sequence){.submitted_ns = 1000 * S, .deadline_ns = 1030 * S + 1}; /* no nearer */
    ck_assert_str_eq(first(without, with), "arrival");
    with = (struct sequence){.submitted_ns = 1030 * S, .deadline_ns = 1010 * S, .started = true};
    ck_assert_str_eq(first(without, with), "arrival"); /* it ran: it is due since it came */
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_state_is_followed_by_those_of_the_picture_alone);
    tcase_add_test(tests, a_class_is_worth_half_a_minute_of_waiting);
    tcase_add_test(tests, what_ran_before_is_due_at_once_and_the_rest_in_half_a_minute);
    tcase_add_test(tests, a_deadline_counts_where_it_is_nearer);
}

int main(void)
{
    return run_tests("sequence", add);
}
