/* SPDX-License-Identifier: MIT */
/* What gateways tell of their tenants: who hears the sums, and for how long. */

#include "broker/books/tellings.h"
#include "common/clock.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

static struct tellings tellings;
static const struct id128 local, key = {{'k'}};
static uint64_t now = 100 * CLOCK_NS_PER_S;

static struct id128 id(char name)
{
    return (struct id128){{(uint8_t)name}};
}

static struct tenant_use use(char name, uint64_t requests, double rpm)
{
    return (struct tenant_use){.id = id(name), .requests = requests, .tokens = 10 * requests, .rpm = rpm};
}

static enum proto_error tell(char session, const struct id128 *client, const struct tenant_use *items,
                             size_t n)
{
    const struct id128 from = id(session);
    struct error reason;
    return tellings_take(&tellings, &from, client, &(struct tenant_uses){items, n}, now, &reason);
}

/* What the session hears, to be freed. */
static struct tenant_use *hear(char session, const struct id128 *client, size_t n)
{
    const struct id128 who = id(session);
    struct tenant_use *items;
    size_t heard;
    ck_assert_int_eq(tellings_sum(&tellings, &who, client, now, &items, &heard), 0);
    ck_assert_uint_eq(heard, n);
    return items;
}

START_TEST(a_session_hears_the_sums_of_the_others)
{
    const struct tenant_use a[] = {use('A', 1, 0.5), use('B', 2, 0), use('D', 4, 0)};
    const struct tenant_use b[] = {use('B', 8, 1.5), use('C', 16, 0)};
    const struct tenant_use c[] = {use('A', 32, 2), use('D', 64, 0)};
    ck_assert_int_eq(tell('a', &local, a, 3), PROTO_OK);
    ck_assert_int_eq(tell('b', &local, b, 2), PROTO_OK);
    ck_assert_int_eq(tell('c', &local, c, 2), PROTO_OK);
    struct tenant_use *heard = hear('x', &local, 4);
    static const uint64_t all[] = {33, 10, 16, 68};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(heard[i].id.bytes[0], "ABCD"[i]);
        ck_assert_uint_eq(heard[i].requests, all[i]);
        ck_assert_uint_eq(heard[i].tokens, 10 * all[i]);
    }
    ck_assert_double_eq(heard[0].rpm, 2.5);
    ck_assert_uint_eq(heard[0].gateways, 2);
    ck_assert_uint_eq(heard[2].gateways, 1);
    ck_assert_double_eq(heard[1].rpm, 1.5);
    free(heard);
    heard = hear('a', &local, 4); /* without its own */
    ck_assert_uint_eq(heard[0].requests, 32);
    ck_assert_uint_eq(heard[1].requests, 8);
    free(heard);
    free(hear('x', &key, 0)); /* of another client */
    tellings_deinit(&tellings);
}
END_TEST

START_TEST(what_is_told_replaces_what_was_told_before)
{
    const struct tenant_use first[] = {use('A', 3, 0), use('B', 1, 0)},
                            then[] = {use('A', 1, 0), use('C', 0, 0)};
    ck_assert_int_eq(tell('a', &key, first, 2), PROTO_OK);
    ck_assert_int_eq(tell('a', &key, then, 2), PROTO_OK);
    struct tenant_use *heard = hear('b', &key, 2); /* one that has nothing now is told too */
    ck_assert_uint_eq(heard[0].requests, 1);
    ck_assert_uint_eq(heard[1].requests, 0);
    ck_assert_uint_eq(heard[1].gateways, 1);
    free(heard);
    ck_assert_int_eq(tell('a', &key, NULL, 0), PROTO_OK);
    free(hear('b', &key, 0));
    ck_assert_ptr_null(tellings.list);
}
END_TEST

START_TEST(a_session_that_ends_or_is_silent_counts_no_more)
{
    const struct tenant_use a = use('A', 3, 0);
    const struct id128 gone = id('a');
    ck_assert_int_eq(tell('a', &key, &a, 1), PROTO_OK);
    ck_assert_int_eq(tell('b', &key, &a, 1), PROTO_OK);
    tellings_forget(&tellings, &gone);
    struct tenant_use *heard = hear('x', &key, 1);
    ck_assert_uint_eq(heard[0].requests, 3);
    free(heard);
    now += TELLINGS_SILENT_MS * CLOCK_NS_PER_MS;
    free(hear('x', &key, 1));
    now += CLOCK_NS_PER_MS;
    free(hear('x', &key, 0));
    ck_assert_int_eq(tell('c', &key, &a, 1), PROTO_OK);
    struct tenant_use *own = hear('c', &key, 0);
    free(own);
    tellings_deinit(&tellings);
}
END_TEST

START_TEST(sums_stay_within_what_a_message_may_tell)
{
    struct tenant_use much = use('A', 1ull << 53, PROTO_MAX_USED);
    much.tokens = 1ull << 53;
    ck_assert_int_eq(tell('a', &key, &much, 1), PROTO_OK);
    ck_assert_int_eq(tell('b', &key, &much, 1), PROTO_OK);
    struct message ok = {.kind = MESSAGE_TENANTS_OK};
    struct tenant_use *heard = hear('x', &key, 1);
    struct buffer out = {0};
    ok.tenants_ok.tenants = (struct tenant_uses){heard, 1};
    ck_assert_int_eq(message_encode(&ok, &out), 0);
    buffer_deinit(&out);
    free(heard);
    tellings_deinit(&tellings);
}
END_TEST

START_TEST(one_client_does_not_take_the_room_of_another)
{
    static struct tenant_use many[PROTO_MAX_TENANTS];
    struct tenant_use one = use('A', 1, 0);
    for (size_t i = 0; i < PROTO_MAX_TENANTS; i++)
        many[i] = (struct tenant_use){.id = {{(uint8_t)(i >> 8), (uint8_t)i}}, .requests = 1};
    int n = 0;
    while (tell((char)(n + 1), &key, many, PROTO_MAX_TENANTS) == PROTO_OK)
        n++;
    ck_assert_int_eq(n, TELLINGS_OF_CLIENT / PROTO_MAX_TENANTS);
    ck_assert_int_eq(tell('x', &local, &one, 1), PROTO_OK);
    free(hear('y', &key, PROTO_MAX_TENANTS));
    tellings_deinit(&tellings);
    for (n = 0; tell((char)(n + 1), &key, &one, 1) == PROTO_OK; n++)
        ;
    ck_assert_int_eq(n, TELLINGS_SESSIONS);
    ck_assert_int_eq(tell(1, &key, &one, 1), PROTO_OK); /* in place of what it told before */
    ck_assert_int_eq(tell('x', &local, &one, 1), PROTO_OK);
    tellings_deinit(&tellings);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_session_hears_the_sums_of_the_others);
    tcase_add_test(tests, what_is_told_replaces_what_was_told_before);
    tcase_add_test(tests, a_session_that_ends_or_is_silent_counts_no_more);
    tcase_add_test(tests, sums_stay_within_what_a_message_may_tell);
    tcase_add_test(tests, one_client_does_not_take_the_room_of_another);
}

int main(void)
{
    return run_tests("broker/tellings", add);
}
