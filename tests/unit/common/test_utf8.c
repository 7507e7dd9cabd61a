/* SPDX-License-Identifier: MIT */
#include "common/utf8.h"
#include "tests/unit/run.h"

#include <stdlib.h>

#include <utf8proc.h>

START_TEST(what_is_utf8_ends_at_the_first_byte_that_is_not)
{
    static const struct {
        const char *text;
        size_t valid;
    } cases[] = {{"", 0},
                 {"plain", 5},
                 {"M\xc3\xbchle \xf0\x9f\x8c\xbe", 11},
                 {"a\xff", 1},
                 {"ab\xc3", 2},             /* cut */
                 {"\xc0\xaf", 0},           /* overlong */
                 {"a\xed\xa0\x80", 1},      /* a surrogate */
                 {"ab\xf4\x90\x80\x80", 2}, /* beyond U+10FFFF */
                 {"\x80", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_uint_eq(utf8_valid(bytes_of_string(cases[i].text)), cases[i].valid);
}
END_TEST

START_TEST(what_is_not_utf8_is_replaced_byte_by_byte)
{
    static const char *const cases[][2] = {{"", ""},
                                           {"M\xc3\xbchle", "M\xc3\xbchle"},
                                           {"a\xff\xff", "a\xef\xbf\xbd\xef\xbf\xbd"},
                                           {"\xc3", "\xef\xbf\xbd"},
                                           {"\x80z", "\xef\xbf\xbdz"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out = {0};
        ck_assert_int_eq(buffer_append(&out, ">", 1), 0);
        ck_assert_int_eq(utf8_append_replaced(&out, bytes_of_string(cases[i][0])), 0);
        ck_assert_uint_eq(out.len, 1 + strlen(cases[i][1]));
        ck_assert_mem_eq(out.data + 1, cases[i][1], strlen(cases[i][1]));
        buffer_deinit(&out);
    }
}
END_TEST

/* ASCII is looked at eight bytes at a time. */
START_TEST(the_first_byte_beyond_ascii_is_found_wherever_it_stands)
{
    uint8_t text[33];
    for (size_t len = 0; len < sizeof text; len++) {
        memset(text, 'a', sizeof text);
        text[len] = 0x80;
        ck_assert_uint_eq(utf8_ascii((struct bytes){text, sizeof text}), len);
        ck_assert_uint_eq(utf8_ascii((struct bytes){text, len}), len);
        ck_assert_uint_eq(utf8_valid((struct bytes){text, sizeof text}), len);
        if (len + 3 > sizeof text)
            continue;
        memcpy(text + len, "\xc3\xa4\xff", 3); /* and after a character it goes on */
        ck_assert_uint_eq(utf8_valid((struct bytes){text, sizeof text}), len + 2);
    }
}
END_TEST

/* Where utf8proc finds the first byte that is none. */
static size_t valid_by_utf8proc(const uint8_t *data, size_t len)
{
    size_t i = 0;
    while (i < len) {
        utf8proc_int32_t point;
        utf8proc_ssize_t n = utf8proc_iterate(data + i, (utf8proc_ssize_t)(len - i), &point);
        if (n <= 0)
            break;
        i += (size_t)n;
    }
    return i;
}

START_TEST(the_same_is_utf8_as_for_utf8proc)
{
    uint8_t text[100];
    for (unsigned a = 0x80; a < 0x100; a++) /* every beginning of a character of several bytes */
        for (unsigned b = 0; b < 0x100; b++)
            for (unsigned c = 0x7f; c < 0xc2; c++) {
                const uint8_t four[] = {(uint8_t)a, (uint8_t)b, (uint8_t)c, 0xbf};
                for (size_t len = 1; len <= 4; len++)
                    if (utf8_valid((struct bytes){four, len}) != valid_by_utf8proc(four, len))
                        ck_abort_msg("%02x %02x %02x bf, %zu bytes", a, b, c, len);
            }
    uint32_t random = 3;
    for (int round = 0; round < 20000; round++) {
        size_t len = 0;
        while (len < sizeof text - 4) {
            random = random * 1664525 + 1013904223;
            uint32_t point = random >> 30 == 0 ? 'a' : random >> (random >> 8) % 24 & 0x1fffff;
            utf8proc_ssize_t n = utf8proc_encode_char((utf8proc_int32_t)(point % 0x110000), text + len);
            len += n > 0 ? (size_t)n : 0;
        }
        random = random * 1664525 + 1013904223;
        if (random >> 31)
            text[(random >> 8) % len] = (uint8_t)(random >> 16);
        ck_assert_uint_eq(utf8_valid((struct bytes){text, len}), valid_by_utf8proc(text, len));
    }
}
END_TEST

START_TEST(what_cannot_be_shown_becomes_question_marks)
{
    static const struct {
        const char *in, *out;
    } cases[] = {{"", ""},
                 {"a\tb\x7f\n", "a?b??"},
                 {"\033[2J", "?[2J"},
                 {"\xff\xc3.\xc3", "??.?"},
                 {"x\xc2\x9b"
                  "31my\xc2\xa0",
                  "x?31my\xc2\xa0"}, /* U+009B is an escape sequence's beginning in one character */
                 {"\xc3\xa4\xe2\x82", "\xc3\xa4??"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        strcpy(text, cases[i].in);
        ck_assert_ptr_eq(utf8_clean(text), text);
        ck_assert_str_eq(text, cases[i].out);
    }
}
END_TEST

START_TEST(printable_text_is_cut_between_characters_and_valid)
{
    static const struct {
        const char *in;
        size_t size;
        const char *out;
    } cases[] = {{"name", 5, "name"},
                 {"names", 5, "n..."},
                 {"", 4, ""},
                 {"a\tb\x7f", 16, "a?b?"},
                 {"\xff\xc3(\xc3", 16,
                  "?"
                  "?(?"},
                 {"M\xc3\xbchle", 7, "M\xc3\xbchle"},
                 {"M\xc3\xbchlen", 7, "M\xc3\xbc..."},
                 {"\xc3\xbc\xc3\xbc\xc3\xbc", 6, "\xc3\xbc..."},
                 {"\xf0\x9f\x8c\xbe", 4, "..."}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out = malloc(cases[i].size); /* of its own, so that a sanitizer sees one byte too many */
        ck_assert_str_eq(utf8_printable(bytes_of_string(cases[i].in), cases[i].size, out), cases[i].out);
        free(out);
    }
}
END_TEST

START_TEST(a_terminal_gets_lines_and_tabs_and_nothing_that_it_obeys)
{
    struct buffer out = {0};
    static const char in[] = "a\tb\r\n\033]0;title\a \xc2\x9b"
                             "2J M\xc3\xbchle \xff\0.";
    static const char shown[] = "a\tb\n?]0;title? ?2J M\xc3\xbchle ??.";
    ck_assert_int_eq(utf8_append_shown(&out, (struct bytes){"> ", 2}), 0);
    ck_assert_int_eq(utf8_append_shown(&out, (struct bytes){in, sizeof in - 1}), 0);
    ck_assert_uint_eq(out.len, 2 + sizeof shown - 1);
    ck_assert_mem_eq(out.data + 2, shown, sizeof shown - 1);
    buffer_deinit(&out);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_same_is_utf8_as_for_utf8proc);
    tcase_add_test(tests, what_is_not_utf8_is_replaced_byte_by_byte);
    tcase_add_test(tests, what_is_utf8_ends_at_the_first_byte_that_is_not);
    tcase_add_test(tests, the_first_byte_beyond_ascii_is_found_wherever_it_stands);
    tcase_add_test(tests, what_cannot_be_shown_becomes_question_marks);
    tcase_add_test(tests, printable_text_is_cut_between_characters_and_valid);
    tcase_add_test(tests, a_terminal_gets_lines_and_tabs_and_nothing_that_it_obeys);
}

int main(void)
{
    return run_tests("utf8", add);
}
