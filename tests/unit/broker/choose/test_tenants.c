/* SPDX-License-Identifier: MIT */
/* Tenants of one client: in turn, each with its most pressing first; nothing stays of who has nothing. */

#include "broker/choose/tenants.h"
#include "tests/unit/run.h"

#include <stdlib.h>

static struct tenant_lines lines;
static struct tenants tenants;
static uint64_t order;

static void set_up(void)
{
    lines = (struct tenant_lines){.seed = 3};
    tenants_init(&tenants);
    order = 0;
}

static void tear_down(void)
{
    ck_assert_uint_eq(tenants.n, 0);
    ck_assert_ptr_null(tenants_first(&tenants));
    ck_assert_ptr_null(lines.by_key);
    tenants_deinit(&tenants);
    tenant_lines_deinit(&lines);
}

static struct request make(uint8_t tenant, uint64_t arrived_ns)
{
    return (struct request){
        .tenancy = {{{tenant}}, tenant != 0, false}, .arrived_ns = arrived_ns, .deadline_ns = UINT64_MAX};
}

static void push(struct request *request)
{
    request->queue_order = order++;
    ck_assert_int_eq(tenants_push(&tenants, &lines, request), 0);
}

static void drop(struct request *request)
{
    tenants_leave(&tenants, request);
    tenant_line_tidy(&lines, request->queued_line);
}

static struct request *take(void)
{
    struct request *request = tenants_first(&tenants);
    tenants_give(&tenants, request);
    drop(request);
    return request;
}

START_TEST(each_gives_one_in_turn_its_most_pressing_first)
{
    struct request a = make(1, 5), b = make(1, 3), c = make(2, 9), d = make(0, 8), e = make(2, 10);
    struct request *all[] = {&a, &b, &c, &d, &e};
    for (size_t i = 0; i < 5; i++)
        push(all[i]);
    ck_assert_ptr_eq(take(), &b);
    ck_assert_ptr_eq(take(), &d); /* of nobody: one more */
    ck_assert_ptr_eq(take(), &c);
    ck_assert_ptr_eq(take(), &a);
    ck_assert_ptr_eq(take(), &e);
}
END_TEST

START_TEST(who_comes_anew_each_time_finds_those_who_wait)
{
    struct request waiting[2] = {make(1, 50), make(1, 51)}, made_up[6];
    push(&waiting[0]);
    push(&waiting[1]);
    unsigned before = 0;
    for (uint8_t i = 0; i < 6; i++) {
        made_up[i] = make((uint8_t)(10 + i), 0); /* always the most pressing */
        push(&made_up[i]);
        if (take() == &waiting[1])
            break;
        before++;
    }
    ck_assert_uint_le(before, 4);
    while (tenants_first(&tenants))
        take();
}
END_TEST

START_TEST(a_request_that_leaves_costs_its_tenant_no_turn)
{
    struct request a = make(1, 0), b = make(1, 1), other = make(2, 2);
    push(&a);
    push(&b);
    push(&other);
    drop(&a);
    ck_assert_ptr_eq(take(), &b);
    ck_assert_ptr_eq(take(), &other);
}
END_TEST

START_TEST(one_that_left_is_put_back_where_it_was)
{
    struct request a = make(1, 0), b = make(2, 1);
    push(&a);
    push(&b);
    tenants_leave(&tenants, &a);
    ck_assert_ptr_eq(tenants_first(&tenants), &b);
    tenants_push_again(&tenants, &a);
    ck_assert_uint_eq(tenants.n, 2);
    ck_assert_ptr_eq(take(), &a);
    ck_assert_ptr_eq(take(), &b);
}
END_TEST

/* Against the rule said the slow way. */
START_TEST(nobody_who_waits_is_two_turns_behind)
{
    enum { N = 1000, TENANTS = 9 };
    static struct request requests[N];
    unsigned waiting[TENANTS] = {0}, taken[TENANTS] = {0};
    srand(5);
    for (int i = 0; i < N; i++) {
        requests[i] = make((uint8_t)(rand() % TENANTS), (uint64_t)(rand() % 50));
        push(&requests[i]);
        waiting[requests[i].tenancy.id.bytes[0]]++;
    }
    for (int i = 0; i < N; i += 3) {
        drop(&requests[i]);
        waiting[requests[i].tenancy.id.bytes[0]]--;
    }
    while (tenants_first(&tenants)) {
        unsigned tenant = take()->tenancy.id.bytes[0];
        waiting[tenant]--;
        taken[tenant]++;
        for (unsigned other = 0; other < TENANTS; other++)
            if (waiting[other] > 0)
                ck_assert_uint_le(taken[tenant], taken[other] + 1);
    }
}
END_TEST

START_TEST(what_still_waits_is_forgotten_with_the_whole)
{
    struct request a = make(1, 0), b = make(2, 1);
    push(&a);
    push(&b);
    tenants_deinit(&tenants);
    tenant_lines_deinit(&lines);
    set_up();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, each_gives_one_in_turn_its_most_pressing_first);
    tcase_add_test(tests, who_comes_anew_each_time_finds_those_who_wait);
    tcase_add_test(tests, a_request_that_leaves_costs_its_tenant_no_turn);
    tcase_add_test(tests, one_that_left_is_put_back_where_it_was);
    tcase_add_test(tests, nobody_who_waits_is_two_turns_behind);
    tcase_add_test(tests, what_still_waits_is_forgotten_with_the_whole);
}

int main(void)
{
    return run_tests("broker/tenants", add);
}
