/* SPDX-License-Identifier: MIT */
/* What requests want of a worker, as numbers: the same number for the same want, whoever wants whatever. */

#include "broker/wants.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>

static struct request named(const char *model, uint32_t kind)
{
    return (struct request){.model = bytes_of_string(model), .queued_kind = kind};
}

static struct request begun(const char *model, uint8_t digest)
{
    struct request request = named(model, 0);
    request.has_digest = true;
    memset(request.digest, digest, sizeof request.digest);
    return request;
}

START_TEST(a_number_is_kind_name_and_digest)
{
    struct wants wants = {0};
    const struct request different[] = {
        named("", 0),
        named("", REQUEST_BULKY),
        named("", REQUEST_EMBEDS),
        named("", REQUEST_KINDS - 1),
        named("alpha", 0),
        named("alph", 0),
        named("beta", 0),
        named("alpha", REQUEST_EMBEDS),
        begun("alpha", 0),
        begun("alpha", 1),
        begun("", 1),
        begun("", 0),
    };
    enum { N = sizeof different / sizeof *different };
    unsigned numbers[N];
    for (unsigned i = 0; i < N; i++) {
        numbers[i] = wants_enter(&wants, &different[i]);
        ck_assert_uint_lt(numbers[i], WANTS_MAX);
        for (unsigned j = 0; j < i; j++)
            ck_assert_uint_ne(numbers[j], numbers[i]);
    }
    for (unsigned i = N; i-- > 0;) {
        ck_assert_uint_eq(wants_enter(&wants, &different[i]), numbers[i]);
        ck_assert_uint_eq(wants.n[numbers[i]], 2);
    }
}
END_TEST

START_TEST(a_number_that_nobody_wants_is_given_again)
{
    struct wants wants = {0};
    struct request first = named("first", 0), second = named("second", 0), third = named("third", 0);
    unsigned one = wants_enter(&wants, &first), two = wants_enter(&wants, &second);
    ck_assert_uint_eq(wants_enter(&wants, &first), one);
    wants_leave(&wants, one);
    ck_assert_uint_ne(wants_enter(&wants, &third), one); /* one is left that wants it */
    wants_leave(&wants, one);
    ck_assert_uint_eq(wants_enter(&wants, &second), two); /* which stands behind a number that is free */
    third = named("fourth", 0);
    ck_assert_uint_eq(wants_enter(&wants, &third), one);
}
END_TEST

START_TEST(names_beyond_the_numbers_share_one_and_leave_the_nameless_theirs)
{
    enum { NAMES = 1000 };
    struct wants wants = {0};
    char texts[NAMES][8];
    unsigned numbers[NAMES], n_shared[WANTS_MAX] = {0}, most = 0;
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(texts[i], sizeof texts[i], "m%u", i);
        struct request request = named(texts[i], 0);
        numbers[i] = wants_enter(&wants, &request);
        n_shared[numbers[i]]++;
    }
    for (unsigned i = 0; i < WANTS_MAX; i++) {
        if (n_shared[i] > 1) {
            ck_assert_uint_eq(most, 0);
            most = n_shared[i];
        }
    }
    ck_assert_uint_ge(most, NAMES - WANTS_MAX);
    for (uint32_t kind = 0; kind < REQUEST_KINDS; kind++) {
        struct request nameless = named("", kind), other = named("yet another", kind);
        unsigned number = wants_enter(&wants, &nameless);
        ck_assert_uint_eq(wants.n[number], 1);
        number = wants_enter(&wants, &other); /* kinds are told apart there too */
        ck_assert_uint_eq(wants.n[number], kind == 0 ? most + 1 : 1);
    }
    for (unsigned i = 0; i < NAMES; i++)
        wants_leave(&wants, numbers[i]);
    struct request request = named("known at last", 0);
    ck_assert_uint_eq(wants.n[wants_enter(&wants, &request)], 1);
}
END_TEST

START_TEST(a_name_as_long_as_can_be_is_told_from_its_beginning)
{
    struct wants wants = {0};
    char text[PROTO_MAX_NAME_BYTES + 2];
    memset(text, 'x', sizeof text);
    struct request request = {.model = {text, PROTO_MAX_NAME_BYTES}};
    unsigned whole = wants_enter(&wants, &request);
    request.model.len--;
    unsigned shorter = wants_enter(&wants, &request);
    ck_assert_uint_ne(whole, shorter);
    request.model.len += 2; /* which no message has */
    unsigned longer = wants_enter(&wants, &request);
    ck_assert_uint_ne(longer, whole);
    ck_assert_uint_ne(longer, shorter);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_number_is_kind_name_and_digest);
    tcase_add_test(tests, a_number_that_nobody_wants_is_given_again);
    tcase_add_test(tests, names_beyond_the_numbers_share_one_and_leave_the_nameless_theirs);
    tcase_add_test(tests, a_name_as_long_as_can_be_is_told_from_its_beginning);
}

int main(void)
{
    return run_tests("broker/wants", add);
}
