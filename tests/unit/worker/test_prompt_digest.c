/* SPDX-License-Identifier: MIT */
/* Which prompt an output continues. */

#include "tests/unit/run.h"
#include "worker/prompt_digest.h"

static const int32_t ids[] = {1, 2, 3, 70000}, others[] = {1, 2, 3, 70001};

START_TEST(equal_ids_have_one_digest_and_others_another)
{
    uint8_t a[PROMPT_DIGEST_BYTES], again[PROMPT_DIGEST_BYTES], b[PROMPT_DIGEST_BYTES],
        shorter[PROMPT_DIGEST_BYTES];
    prompt_digest((struct id_list){ids, 4}, a);
    prompt_digest((struct id_list){ids, 4}, again);
    prompt_digest((struct id_list){others, 4}, b);
    prompt_digest((struct id_list){ids, 3}, shorter);
    ck_assert_mem_eq(a, again, sizeof a);
    ck_assert_mem_ne(a, b, sizeof a);
    ck_assert_mem_ne(a, shorter, sizeof a);
}
END_TEST

/* Pools of other builds and machines have to agree. */
START_TEST(the_digest_is_always_the_same)
{
    static const uint8_t known[PROMPT_DIGEST_BYTES] = {0x52, 0x3d, 0x88, 0x1f, 0xbf, 0xd6, 0x36, 0xcf,
                                                       0x07, 0x5b, 0xf8, 0x20, 0xab, 0x8a, 0x84, 0x02};
    uint8_t digest[PROMPT_DIGEST_BYTES];
    prompt_digest((struct id_list){ids, 4}, digest);
    ck_assert_mem_eq(digest, known, sizeof digest);
}
END_TEST

START_TEST(another_prompt_is_told_with_both_digests)
{
    uint8_t digest[PROMPT_DIGEST_BYTES] = {0xab, 1}, other[PROMPT_DIGEST_BYTES] = {0xcd, 2};
    struct error err = {{0}};
    ck_assert(prompt_digest_is(digest, (struct bytes){0}, 4, &err));
    ck_assert(prompt_digest_is(digest, (struct bytes){digest, sizeof digest}, 4, &err));
    ck_assert(!prompt_digest_is(digest, (struct bytes){other, sizeof other}, 4, &err));
    ck_assert_str_eq(err.text, "prompt_digest: the prompt of 4 tokens has the digest "
                               "ab010000000000000000000000000000, not cd020000000000000000000000000000: the "
                               "output continues another prompt");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, equal_ids_have_one_digest_and_others_another);
    tcase_add_test(tests, the_digest_is_always_the_same);
    tcase_add_test(tests, another_prompt_is_told_with_both_digests);
}

int main(void)
{
    return run_tests("worker/prompt_digest", add);
}
