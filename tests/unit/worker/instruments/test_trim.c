/* SPDX-License-Identifier: MIT */
/* A trim is made between two steps, once, and everybody who asked for it hears what went. The test is the
 * engine and the link. */

#include "tests/unit/run.h"
#include "worker/instruments/trim.h"

#include <errno.h>
#include <string.h>

bool __wrap_link_send(struct link *link, const struct message *message);
int __wrap_engine_give_back(struct engine *engine, bool prefixes, struct engine_given *ret_given);
void __wrap_engine_usage(struct engine *engine, struct backend_usage *ret_usage);

static struct trimmer trimmer;
static struct message said[16];
static int n_said, n_given, refusal;
static bool dropped;

bool __wrap_link_send(struct link *link, const struct message *message)
{
    said[n_said++] = *message;
    return true;
}

int __wrap_engine_give_back(struct engine *engine, bool prefixes, struct engine_given *ret_given)
{
    if (refusal)
        return refusal;
    n_given++;
    dropped = prefixes;
    *ret_given = (struct engine_given){.blocks = 7, .backend = {.kv = 11, .library = 13}};
    return 0;
}

void __wrap_engine_usage(struct engine *engine, struct backend_usage *ret_usage)
{
    *ret_usage = (struct backend_usage){.device_free = 100 + 13 * (uint64_t)n_given};
}

static void set_up(void)
{
    n_said = n_given = refusal = 0;
    trimmer_init(&trimmer, NULL, NULL);
}

static void ask(uint64_t ref, uint64_t run, bool prefixes)
{
    const struct message question = {.kind = MESSAGE_TRIM,
                                     .trim = {.ref = ref, .run = run, .prefixes = prefixes}};
    trimmer_take(&trimmer, &question);
}

static uint64_t bytes_of(const struct message *answer, const char *kind)
{
    for (size_t i = 0; i < answer->trim_ok.given.n; i++)
        if (bytes_equal(answer->trim_ok.given.items[i].kind, bytes_of_string(kind)))
            return answer->trim_ok.given.items[i].bytes;
    return 0;
}

START_TEST(it_is_made_between_steps_and_told_by_kind)
{
    ck_assert(!trimmer_tend(&trimmer));
    ask(5, 9, true);
    ck_assert(n_said == 0 && n_given == 0); /* perhaps in the middle of a step */
    ck_assert(trimmer_tend(&trimmer));
    ck_assert(n_said == 1 && n_given == 1 && dropped);
    ck_assert_int_eq(said[0].kind, MESSAGE_TRIM_OK);
    ck_assert_uint_eq(said[0].trim_ok.ref, 5);
    ck_assert_uint_eq(said[0].trim_ok.blocks, 7);
    ck_assert_uint_eq(bytes_of(&said[0], "kv"), 11);
    ck_assert_uint_eq(bytes_of(&said[0], "library"), 13);
    ck_assert_uint_eq(bytes_of(&said[0], "staging"), 0);
    ck_assert_uint_gt(said[0].trim_ok.resident_before, 0);
    ck_assert_uint_gt(said[0].trim_ok.resident_after, 0);
    ck_assert_uint_eq(said[0].trim_ok.device_free_before, 100);
    ck_assert_uint_eq(said[0].trim_ok.device_free_after, 113);
    ck_assert(!trimmer_tend(&trimmer));
    ask(6, 10, false);
    ck_assert(trimmer_tend(&trimmer));
    ck_assert(n_given == 2 && !dropped);
}
END_TEST

START_TEST(asked_again_it_is_not_made_again)
{
    ask(5, 9, false);
    ask(6, 9, false);
    trimmer_tend(&trimmer);
    ck_assert(n_said == 2 && n_given == 1);
    ck_assert(said[0].trim_ok.ref == 5 && said[1].trim_ok.ref == 6);
    ask(7, 9, false);
    ck_assert(n_said == 3 && !trimmer_tend(&trimmer) && n_given == 1);
    ck_assert_uint_eq(said[2].trim_ok.ref, 7);
    ck_assert_uint_eq(bytes_of(&said[2], "kv"), 11);
}
END_TEST

START_TEST(who_comes_in_between_is_rejected)
{
    ask(1, 9, false);
    ask(2, 10, false);
    ck_assert_int_eq(said[0].kind, MESSAGE_ERROR);
    ck_assert(said[0].error.ref == 2 && said[0].error.error == PROTO_OVERLOADED);
    for (uint64_t i = 0; i < TRIM_REFS; i++)
        ask(3 + i, 9, false);
    ck_assert_int_eq(n_said, 2); /* only the last of them was one too many */
    ck_assert(said[1].error.ref == 2 + TRIM_REFS && said[1].error.error == PROTO_OVERLOADED);
    trimmer_tend(&trimmer);
    ck_assert_int_eq(n_said, 2 + TRIM_REFS);
}
END_TEST

START_TEST(a_device_that_fails_is_told)
{
    refusal = -EIO;
    ask(5, 9, false);
    ck_assert(trimmer_tend(&trimmer));
    ck_assert_int_eq(said[0].kind, MESSAGE_ERROR);
    ck_assert_int_eq(said[0].error.error, PROTO_INTERNAL);
    ck_assert(
        bytes_equal(said[0].error.text, BYTES_LITERAL("memory could not be released: Input/output error")));
    refusal = 0;
    ask(6, 10, false);
    trimmer_tend(&trimmer);
    ck_assert_int_eq(said[1].kind, MESSAGE_TRIM_OK);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, it_is_made_between_steps_and_told_by_kind);
    tcase_add_test(tests, asked_again_it_is_not_made_again);
    tcase_add_test(tests, who_comes_in_between_is_rejected);
    tcase_add_test(tests, a_device_that_fails_is_told);
}

int main(void)
{
    return run_tests("trim", add);
}
