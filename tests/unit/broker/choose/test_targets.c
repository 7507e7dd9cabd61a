/* SPDX-License-Identifier: MIT */
/* What requests need of a worker, as numbers: the same number for the same target, whichever client asks. */

#include "broker/choose/targets.h"
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
    struct targets targets = {0};
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
        numbers[i] = targets_enter(&targets, &different[i]);
        ck_assert_uint_lt(numbers[i], TARGETS_MAX);
        for (unsigned j = 0; j < i; j++)
            ck_assert_uint_ne(numbers[j], numbers[i]);
    }
    for (unsigned i = N; i-- > 0;) {
        ck_assert_uint_eq(targets_enter(&targets, &different[i]), numbers[i]);
        ck_assert_uint_eq(targets.n[numbers[i]], 2);
    }
}
END_TEST

START_TEST(a_number_that_nobody_wants_is_given_again)
{
    struct targets targets = {0};
    struct request first = named("first", 0), second = named("second", 0), third = named("third", 0);
    unsigned one = targets_enter(&targets, &first), two = targets_enter(&targets, &second);
    ck_assert_uint_eq(targets_enter(&targets, &first), one);
    targets_leave(&targets, one);
    ck_assert_uint_ne(targets_enter(&targets, &third), one); /* one request of it is left */
    targets_leave(&targets, one);
    ck_assert_uint_eq(targets_enter(&targets, &second), two); /* which stands behind a number that is free */
    third = named("fourth", 0);
    ck_assert_uint_eq(targets_enter(&targets, &third), one);
}
END_TEST

static struct request of_client(const char *model, uint8_t client)
{
    struct request request = named(model, 0);
    memset(&request.home.session, client, sizeof request.home.session);
    return request;
}

/* As many different names as there are, of one client or of one each; how many numbers they have. */
static unsigned make_up(struct targets *targets, unsigned n, bool one_client)
{
    uint64_t numbers = 0;
    for (unsigned i = 0; i < n; i++) {
        char text[24];
        snprintf(text, sizeof text, "made-up-%u", i);
        struct request request = of_client(text, one_client ? 1 : (uint8_t)(i + 1));
        numbers |= UINT64_C(1) << targets_enter(targets, &request);
    }
    return (unsigned)__builtin_popcountll(numbers);
}

START_TEST(who_makes_up_names_shares_a_number_with_himself_alone)
{
    struct targets targets = {0};
    ck_assert_uint_eq(make_up(&targets, 200, true), TARGETS_UNKNOWN_EACH + 1);
    struct request other = of_client("a real one", 2);
    ck_assert_uint_eq(targets.n[targets_enter(&targets, &other)], 1);
}
END_TEST

START_TEST(names_that_nobody_knows_leave_numbers_to_those_that_are_known)
{
    struct targets targets = {0};
    ck_assert_uint_eq(make_up(&targets, 200, false), TARGETS_UNKNOWN_MAX + 1);
    struct request late = of_client("not known yet", 7), known = of_client("known", 7);
    unsigned shared = targets_enter(&targets, &late);
    ck_assert_uint_gt(targets.n[shared], 1);
    late.model_known = known.model_known = true;
    unsigned first = targets_enter(&targets, &known), second = targets_enter(&targets, &late);
    ck_assert_uint_eq(targets.n[first], 1); /* its worker has come */
    ck_assert_uint_eq(targets.n[second], 1);
    struct request running = begun("moved", 3);
    ck_assert_uint_eq(targets.n[targets_enter(&targets, &running)], 1);
}
END_TEST

START_TEST(known_models_beyond_the_numbers_share_none_with_made_up_ones)
{
    struct targets targets = {0};
    uint64_t known = 0;
    for (unsigned i = 0; i < TARGETS_MAX; i++) {
        char text[16];
        snprintf(text, sizeof text, "known-%u", i);
        struct request request = named(text, 0);
        request.model_known = true;
        known |= UINT64_C(1) << targets_enter(&targets, &request);
    }
    struct request made_up = of_client("made up", 1);
    ck_assert_uint_eq(known & UINT64_C(1) << targets_enter(&targets, &made_up), 0);
}
END_TEST

START_TEST(a_number_of_a_model_that_became_known_counts_no_longer_for_who_asked_first)
{
    struct targets targets = {0};
    struct request first = of_client("real", 1), again = first;
    unsigned number = targets_enter(&targets, &first);
    again.model_known = true;
    ck_assert_uint_eq(targets_enter(&targets, &again), number);
    ck_assert_uint_eq(make_up(&targets, 200, true), TARGETS_UNKNOWN_EACH + 1);
    ck_assert_uint_eq(targets_enter(&targets, &first), number); /* who did not know it does not change that */
    struct request another = of_client("another", 2);
    ck_assert_uint_eq(targets.n[targets_enter(&targets, &another)], 1);
}
END_TEST

START_TEST(a_model_that_a_worker_tells_leaves_its_number_to_what_is_not_known)
{
    struct targets targets = {0};
    make_up(&targets, 200, true);
    struct request another = of_client("another", 1), real = of_client("made-up-2", 1);
    unsigned number = targets_enter(&targets, &real);
    ck_assert_uint_lt(number, TARGETS_SHARED_UNKNOWN);
    ck_assert_uint_ge(targets_enter(&targets, &another), TARGETS_SHARED_UNKNOWN);
    targets_know(&targets, bytes_of_string("made-up-200")); /* which only begins as others do */
    another = of_client("yet another", 1);
    ck_assert_uint_ge(targets_enter(&targets, &another), TARGETS_SHARED_UNKNOWN);
    targets_know(&targets, bytes_of_string("made-up-2"));
    ck_assert_uint_eq(targets_enter(&targets, &real), number);
    another = of_client("the last", 1);
    ck_assert_uint_eq(targets.n[targets_enter(&targets, &another)], 1);
}
END_TEST

START_TEST(names_beyond_the_numbers_share_one_and_leave_the_nameless_theirs)
{
    enum { NAMES = 1000 };
    struct targets targets = {0};
    char texts[NAMES][8];
    unsigned numbers[NAMES], n_shared[TARGETS_MAX] = {0}, most = 0;
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(texts[i], sizeof texts[i], "m%u", i);
        struct request request = named(texts[i], 0);
        request.model_known = true;
        numbers[i] = targets_enter(&targets, &request);
        n_shared[numbers[i]]++;
    }
    for (unsigned i = 0; i < TARGETS_MAX; i++) {
        if (n_shared[i] > 1) {
            ck_assert_uint_eq(most, 0);
            most = n_shared[i];
        }
    }
    ck_assert_uint_ge(most, NAMES - TARGETS_MAX);
    for (uint32_t kind = 0; kind < REQUEST_KINDS; kind++) {
        struct request nameless = named("", kind), other = named("yet another", kind);
        other.model_known = true;
        unsigned number = targets_enter(&targets, &nameless);
        ck_assert_uint_eq(targets.n[number], 1);
        number = targets_enter(&targets, &other); /* kinds are told apart there too */
        ck_assert_uint_eq(targets.n[number], kind == 0 ? most + 1 : 1);
    }
    for (unsigned i = 0; i < NAMES; i++)
        targets_leave(&targets, numbers[i]);
    struct request request = named("known at last", 0);
    ck_assert_uint_eq(targets.n[targets_enter(&targets, &request)], 1);
}
END_TEST

START_TEST(a_name_as_long_as_can_be_is_told_from_its_beginning)
{
    struct targets targets = {0};
    char text[PROTO_MAX_NAME_BYTES + 2];
    memset(text, 'x', sizeof text);
    struct request request = {.model = {text, PROTO_MAX_NAME_BYTES}};
    unsigned whole = targets_enter(&targets, &request);
    request.model.len--;
    unsigned shorter = targets_enter(&targets, &request);
    ck_assert_uint_ne(whole, shorter);
    request.model.len += 2; /* which no message has */
    unsigned longer = targets_enter(&targets, &request);
    ck_assert_uint_ne(longer, whole);
    ck_assert_uint_ne(longer, shorter);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_number_is_kind_name_and_digest);
    tcase_add_test(tests, a_number_that_nobody_wants_is_given_again);
    tcase_add_test(tests, who_makes_up_names_shares_a_number_with_himself_alone);
    tcase_add_test(tests, names_that_nobody_knows_leave_numbers_to_those_that_are_known);
    tcase_add_test(tests, known_models_beyond_the_numbers_share_none_with_made_up_ones);
    tcase_add_test(tests, a_number_of_a_model_that_became_known_counts_no_longer_for_who_asked_first);
    tcase_add_test(tests, a_model_that_a_worker_tells_leaves_its_number_to_what_is_not_known);
    tcase_add_test(tests, names_beyond_the_numbers_share_one_and_leave_the_nameless_theirs);
    tcase_add_test(tests, a_name_as_long_as_can_be_is_told_from_its_beginning);
}

int main(void)
{
    return run_tests("broker/targets", add);
}
