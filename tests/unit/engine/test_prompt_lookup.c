/* SPDX-License-Identifier: MIT */
/* What is proposed as the next ids of a sequence. */

#include "engine/prompt_lookup.h"
#include "tests/unit/run.h"

#include <string.h>

#define MOST 6

/* Each letter is an id. What is proposed behind a text, as a text. */
static const char *proposed(const char *text)
{
    static char found[MOST + 1];
    int32_t ids[512], draft[MOST];
    const uint32_t n = (uint32_t)strlen(text);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = text[i];
    const uint32_t made = prompt_lookup(NULL, ids, n, MOST, draft);
    for (uint32_t i = 0; i < made; i++)
        found[i] = (char)draft[i];
    found[made] = '\0';
    return found;
}

START_TEST(what_followed_the_last_ids_is_proposed)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {"a", ""},
        {"abcdefgh", ""},
        {"xabcdefgh-b", ""},                /* one id that agrees is too few */
        {"xabcdefgh-ab", "cdefgh"},         /* two are enough */
        {"abcabdabeab", "eabeab"},          /* the latest of equally long matches, and round it goes */
        {"-xyz1....-yz2....xyz", "1....-"}, /* the longest match, not the latest */
        {"abababab", "ababab"},
        {"aaaa", "aaaaaa"},
        {"0123456789 9876543210 012345", "6789 9"},
        {"ab................................................................ab", "......"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(proposed(cases[i].text), cases[i].expected);
}
END_TEST

/* At every distance from the end there is one match, whatever the places that are passed together. */
START_TEST(a_match_is_found_wherever_it_is)
{
    for (uint32_t n = 8; n < 90; n++)
        for (uint32_t at = 0; at + 6 < n; at++) {
            int32_t ids[90], draft[2];
            for (uint32_t i = 0; i < n; i++)
                ids[i] = 1000 + (int32_t)i;
            ids[at] = ids[n - 2];
            ids[at + 1] = ids[n - 1];
            ck_assert_uint_eq(prompt_lookup(NULL, ids, n, 2, draft), 2);
            ck_assert_int_eq(draft[0], ids[at + 2]);
            ck_assert_int_eq(draft[1], ids[at + 3]);
        }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_followed_the_last_ids_is_proposed);
    tcase_add_test(tests, a_match_is_found_wherever_it_is);
}

int main(void)
{
    return run_tests("prompt lookup", add);
}
