/* SPDX-License-Identifier: MIT */
/* Form C: pairs from Python's unicodedata, and random texts beside the library's own function. */

#include "tests/unit/run.h"
#include "text/tokenizer/normalize.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <utf8proc.h>

START_TEST(texts_become_what_unicodedata_makes_of_them)
{
    static const char *const pairs[][2] = {
        {"e\u0301", "\u00e9"},
        {"a\u0302\u0323", "\u1ead"},
        {"a\u0323\u0302", "\u1ead"},
        {"u\u0308\u0304", "\u01d6"},
        {"o\u0308\u0304\u0328", "\u01eb\u0308\u0304"},
        {"q\u0307\u0323", "q\u0323\u0307"}, /* nothing to put together, and yet an order */
        {"a\u0315\u0300\u05aeb", "\u00e0\u05ae\u0315b"},
        {"\u0301a", "\u0301a"},
        {"\u1112\u1161\u11ab", "\ud55c"}, /* Hangul */
        {"\u1100\u1161\u1100", "\uac00\u1100"},
        {"\u212b\u2126", "\u00c5\u03a9"}, /* single characters that are another one */
        {"\uf900", "\u8c48"},
        {"\u0344", "\u0308\u0301"},
        {"\u0958", "\u0915\u093c"}, /* never put together */
        {"\u2adc", "\u2add\u0338"},
        {"\U0001d15e", "\U0001d157\U0001d165"},
        {"\u0f73\u0f71", "\u0f71\u0f71\u0f72"},
        {"\u0d47\u0d3e", "\u0d4b"}, /* of two that are no marks */
        {"\u1e9b\u0323", "\u1e9b\u0323"},
        {"\u01d5", "\u01d5"},
        {"plain \u00e9 \u4e2d \U0001f600", "plain \u00e9 \u4e2d \U0001f600"},
        {"\u00df\u02ff", "\u00df\u02ff"},
        {"", ""}};
    struct normalizer normalizer = {0};
    struct bytes text;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        ck_assert_int_eq(normalize_nfc(&normalizer, bytes_of_string(pairs[i][0]), &text), 0);
        ck_assert_msg(bytes_equal(text, bytes_of_string(pairs[i][1])), "pair %zu: %.*s", i, (int)text.len,
                      (const char *)text.data);
    }
    normalizer_deinit(&normalizer);
}
END_TEST

/* Letters, their marks of several classes, Hangul and others, in any order. */
START_TEST(random_texts_are_as_the_library_has_them)
{
    static const char *const some[] = {"a",      "e",      "o",      "\u0301", "\u0308", "\u0323", "\u0328",
                                       "\u0315", "\u05b0", "\u0334", "\u1100", "\u1161", "\u11a8", "\uac00",
                                       "\u0f71", "\u0f72", "\u0344", "\u00e9", "\u4e2d", " ",      "\u212b"};
    struct normalizer normalizer = {0};
    unsigned seed = 3;
    for (int round = 0; round < 20000; round++) {
        char text[256] = "";
        struct bytes normal, again;
        const int n = rand_r(&seed) % 60;
        for (int i = 0; i < n; i++)
            strcat(text, some[(size_t)rand_r(&seed) % (round % 2 ? 11 : sizeof some / sizeof some[0])]);
        utf8proc_uint8_t *expected = utf8proc_NFC((const utf8proc_uint8_t *)text);
        ck_assert_int_eq(normalize_nfc(&normalizer, bytes_of_string(text), &normal), 0);
        ck_assert_msg(bytes_equal(normal, bytes_of_string((char *)expected)),
                      "\"%s\" became \"%.*s\", not \"%s\"", text, (int)normal.len, (const char *)normal.data,
                      (char *)expected);
        struct normalizer other = {0};
        ck_assert_int_eq(normalize_nfc(&other, normal, &again), 0);
        ck_assert(bytes_equal(normal, again));
        normalizer_deinit(&other);
        free(expected);
    }
    normalizer_deinit(&normalizer);
}
END_TEST

/* A megabyte of marks whose order is wrong everywhere. */
START_TEST(marks_without_end_take_no_quadratic_time)
{
    struct normalizer normalizer = {0};
    struct bytes normal;
    struct buffer text = {0};
    struct timespec before, after;
    ck_assert_int_eq(buffer_append(&text, "x", 1), 0);
    while (text.len < 1 << 20)
        ck_assert_int_eq(buffer_append(&text, "\u0301\u0323\u0334", 6), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    ck_assert_int_eq(normalize_nfc(&normalizer, (struct bytes){text.data, text.len}, &normal), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    ck_assert_int_lt(after.tv_sec - before.tv_sec, 5);
    ck_assert_uint_eq(normal.len, text.len);
    ck_assert_int_eq(memcmp(normal.data, "x\u0334\u0334", 5), 0);
    ck_assert_int_eq(memcmp((const uint8_t *)normal.data + normal.len - 4, "\u0301\u0301", 4), 0);
    buffer_deinit(&text);
    normalizer_deinit(&normalizer);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, texts_become_what_unicodedata_makes_of_them);
    tcase_add_test(tests, random_texts_are_as_the_library_has_them);
    tcase_add_test(tests, marks_without_end_take_no_quadratic_time);
}

int main(void)
{
    return run_tests("normalize", add);
}
