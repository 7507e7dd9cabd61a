/* SPDX-License-Identifier: MIT */
/* JSON that is written by hand reads back as what was meant. */

#include "gateway/json/json_out.h"
#include "tests/unit/run.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

static struct json_out out;

static const char *written(void)
{
    ck_assert(!out.failed);
    json_out_bytes(&out, "", 1);
    const char *text = (const char *)out.buffer.data;
    json_out_reset(&out);
    return text;
}

START_TEST(every_character_comes_back)
{
    for (unsigned c = 1; c < 0x3000; c++) {
        char utf8[4];
        size_t len = 0;
        if (c < 0x80) {
            utf8[len++] = (char)c;
        } else if (c < 0x800) {
            utf8[len++] = (char)(0xc0 | c >> 6);
            utf8[len++] = (char)(0x80 | (c & 0x3f));
        } else {
            utf8[len++] = (char)(0xe0 | c >> 12);
            utf8[len++] = (char)(0x80 | (c >> 6 & 0x3f));
            utf8[len++] = (char)(0x80 | (c & 0x3f));
        }
        json_out_string(&out, (struct bytes){utf8, len});
        json_t *json = json_loads(written(), JSON_DECODE_ANY, NULL);
        ck_assert_msg(json != NULL, "U+%04x", c);
        ck_assert_uint_eq(json_string_length(json), len);
        ck_assert_mem_eq(json_string_value(json), utf8, len);
        json_decref(json);
    }
}
END_TEST

START_TEST(a_zero_and_long_texts_too)
{
    static char text[100000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i % 0x80);
    json_out_string(&out, (struct bytes){text, sizeof text});
    json_t *json = json_loads(written(), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    ck_assert_ptr_nonnull(json);
    ck_assert_uint_eq(json_string_length(json), sizeof text);
    ck_assert_mem_eq(json_string_value(json), text, sizeof text);
    json_decref(json);
}
END_TEST

START_TEST(what_is_no_utf8_is_marked)
{
    static const char *const broken[][2] = {
        {"a\xff", "a\xef\xbf\xbd"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xc3(\xe2\x82", "\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        json_out_name(&out, broken[i][0]);
        json_t *json = json_loads(written(), JSON_DECODE_ANY, NULL);
        ck_assert_ptr_nonnull(json);
        ck_assert_str_eq(json_string_value(json), broken[i][1]);
        json_decref(json);
    }
}
END_TEST

START_TEST(base64_is_that_of_the_standard)
{
    /* RFC 4648, section 10. */
    static const char *const vectors[][2] = {{"", ""},
                                             {"f", "Zg=="},
                                             {"fo", "Zm8="},
                                             {"foo", "Zm9v"},
                                             {"foob", "Zm9vYg=="},
                                             {"fooba", "Zm9vYmE="},
                                             {"foobar", "Zm9vYmFy"},
                                             {"\xff\xfe\xfb", "//77"}};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        json_out_base64(&out, bytes_of_string(vectors[i][0]));
        ck_assert_str_eq(written(), vectors[i][1]);
    }
}
END_TEST

START_TEST(numbers_are_those_of_json)
{
    json_out_number(&out, INT64_MIN);
    ck_assert_str_eq(written(), "-9223372036854775808");
    json_out_real(&out, (double)-0.123456789f);
    ck_assert_float_eq(strtof(written(), NULL), -0.123456789f);
    json_out_real(&out, -INFINITY);
    ck_assert_str_eq(written(), "-9999");
    json_out_real(&out, NAN);
    ck_assert_str_eq(written(), "-9999");
    json_out_bool(&out, true);
    ck_assert_str_eq(written(), "true");
    json_out_deinit(&out);
}
END_TEST

START_TEST(whole_numbers_are_those_of_printf)
{
    static const int64_t numbers[] = {0,  1,   -1,         9,         10,        -10,
                                      99, 100, 4294967296, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char expected[24];
        snprintf(expected, sizeof expected, "%lld", (long long)numbers[i]);
        json_out_number(&out, numbers[i]);
        ck_assert_str_eq(written(), expected);
    }
}
END_TEST

START_TEST(times_are_told_to_the_nanosecond)
{
    static const struct {
        double ms;
        const char *text;
    } cases[] = {{0, "0"},
                 {1, "1"},
                 {10, "10"},
                 {0.5, "0.5"},
                 {0.000001, "0.000001"},
                 {0.0000004, "0"},
                 {12.0345, "12.0345"},
                 {0.9999999, "1"},
                 {999999999.25, "999999999.25"},
                 {1e9, "1e+09"},
                 {-0.5, "-0.5"},
                 {NAN, "-9999"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_out_ms(&out, cases[i].ms);
        ck_assert_str_eq(written(), cases[i].text);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, every_character_comes_back);
    tcase_add_test(tests, a_zero_and_long_texts_too);
    tcase_add_test(tests, what_is_no_utf8_is_marked);
    tcase_add_test(tests, base64_is_that_of_the_standard);
    tcase_add_test(tests, numbers_are_those_of_json);
    tcase_add_test(tests, whole_numbers_are_those_of_printf);
    tcase_add_test(tests, times_are_told_to_the_nanosecond);
}

int main(void)
{
    return run_tests("gateway json_out", add);
}
