/* SPDX-License-Identifier: MIT */
/* The text stream on hand cases, then random pieces against a naive implementation that looks at all of the
 * text after every piece. */

#include "tests/unit/run.h"
#include "engine/text.h"

#include <stdlib.h>

/* Pushes the pieces (NULL-terminated) and writes what came out after each, parts parted by '|', "#" at a
 * stop, "$" before what the end delivered. */
static const char *stream(const char *const *stops, const char *const *pieces)
{
    static char log[512];
    struct bytes list[16] = {{0}};
    uint32_t n = 0;
    for (; stops && stops[n]; n++)
        list[n] = bytes_of_string(stops[n]);
    struct text text;
    struct buffer out = {0};
    ck_assert_int_eq(text_init(&text, list, n), 0);
    int r = 0;
    for (; *pieces && r == 0; pieces++) {
        r = text_push(&text, bytes_of_string(*pieces), &out);
        ck_assert_int_ge(r, 0);
        buffer_append(&out, r == TEXT_STOPPED ? "#" : "|", 1);
    }
    if (r == 0) {
        buffer_append(&out, "$", 1);
        ck_assert_int_eq(text_finish(&text, &out), 0);
    }
    memcpy(log, out.data, out.len);
    log[out.len] = 0;
    buffer_deinit(&out);
    text_deinit(&text);
    return log;
}

#define LIST(...)                                                                                            \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

START_TEST(text_without_stops_flows_at_once)
{
    ck_assert_str_eq(stream(NULL, LIST("Hello", " ", "", "world")), "Hello| ||world|$");
}
END_TEST

START_TEST(characters_leave_whole)
{
    ck_assert_str_eq(stream(NULL, LIST("a\xc3", "\xa9z", "\xf0\x9f", "\x98", "\x80")), "a|é"
                                                                                       "z|||😀|$");
}
END_TEST

START_TEST(what_is_not_utf8_is_replaced)
{
    ck_assert_str_eq(stream(NULL, LIST("a\xff", "b\xc3", "c", "\xe2\x82", "x\xed\xa0\x80")),
                     "a\xef\xbf\xbd|b|\xef\xbf\xbd"
                     "c||\xef\xbf\xbdx\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|$");
}
END_TEST

START_TEST(a_character_cut_by_the_end_is_left_out)
{
    ck_assert_str_eq(stream(NULL, LIST("ok\xf0\x9f\x98")), "ok|$");
    ck_assert_str_eq(stream(NULL, LIST("ok\xff\xf0\x9f")), "ok\xef\xbf\xbd|$");
    ck_assert_str_eq(stream(LIST("END"), LIST("ok\xf0\x9f", "END")), "ok|#");
}
END_TEST

START_TEST(a_stop_string_that_ends_too_early_is_text)
{
    struct text text;
    struct buffer out = {0};
    const struct bytes stops[] = {BYTES_LITERAL("aa"), BYTES_LITERAL("END")};
    ck_assert_int_eq(text_init(&text, stops, 2), 0);
    text.passes = true;
    ck_assert_int_eq(text_push(&text, BYTES_LITERAL("xENDyaabaa"), &out), 0);
    text.passes = false;
    /* What began before may end now: the last a is the first of this one. */
    ck_assert_int_eq(text_push(&text, BYTES_LITERAL("az"), &out), TEXT_STOPPED);
    ck_assert_mem_eq(out.data, "xENDyaaba", 9);
    ck_assert_uint_eq(out.len, 9);
    ck_assert_mem_eq(text.stop.data, "aa", 2);
    text_deinit(&text);
    buffer_deinit(&out);
}
END_TEST

START_TEST(a_stop_string_is_found_inside_a_piece_and_across_pieces)
{
    ck_assert_str_eq(stream(LIST("END"), LIST("abENDcd", "never")), "ab#");
    ck_assert_str_eq(stream(LIST("END"), LIST("abE", "N", "Dcd")), "ab||#");
    ck_assert_str_eq(stream(LIST("END"), LIST("END")), "#");
}
END_TEST

START_TEST(what_only_began_a_stop_string_is_delivered)
{
    ck_assert_str_eq(stream(LIST("END"), LIST("E", "N", "x")), "||ENx|$");
    ck_assert_str_eq(stream(LIST("END"), LIST("a EN")), "a |$EN");
}
END_TEST

START_TEST(overlapping_prefixes_are_followed)
{
    ck_assert_str_eq(stream(LIST("aab"), LIST("a", "a", "a", "b")), "||a|#");
    ck_assert_str_eq(stream(LIST("abac"), LIST("aba", "bac")), "|ab#");
    ck_assert_str_eq(stream(LIST("\n\n"), LIST("x\n", "y\n\nz")), "x|\ny#");
}
END_TEST

START_TEST(the_stop_that_ends_first_wins_and_the_longest_of_those)
{
    ck_assert_str_eq(stream(LIST("abcdef", "cd"), LIST("xab", "cdef")), "x|ab#");
    ck_assert_str_eq(stream(LIST("cd", "abcd"), LIST("xab", "cdef")), "x|#");
    ck_assert_str_eq(stream(LIST("aaaa", "b"), LIST("aa", "ab")), "|aaa#");
}
END_TEST

START_TEST(a_stop_string_of_multibyte_characters_is_withheld_by_bytes)
{
    ck_assert_str_eq(stream(LIST("é!"), LIST("x\xc3", "\xa9", "\xc3", "\xa9!")), "x||é|#");
}
END_TEST

/* ---- random pieces against a naive implementation ---- */

static bool valid_character(const uint8_t *s, size_t n)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (n == 1)
        return s[0] < 0x80;
    uint32_t code = n == 2 ? s[0] & 0x1f : n == 3 ? s[0] & 0xf : s[0] & 7;
    if ((n == 2 && s[0] >> 5 != 6) || (n == 3 && s[0] >> 4 != 14) || (n == 4 && s[0] >> 3 != 30))
        return false;
    for (size_t i = 1; i < n; i++) {
        if (s[i] >> 6 != 2)
            return false;
        code = code << 6 | (s[i] & 0x3f);
    }
    return code >= least[n] && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000);
}

/* Whether some bytes could make these a character. The second byte decides, so trying its bounds is enough.
 */
static bool begins_character(const uint8_t *s, size_t n)
{
    static const uint8_t tries[] = {0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf};
    for (size_t whole = n + 1; whole <= 4; whole++)
        for (size_t t = 0; t < sizeof tries; t++) {
            uint8_t c[4] = {0x80, 0x80, 0x80, 0x80};
            memcpy(c, s, n);
            c[n] = tries[t];
            if (valid_character(c, whole))
                return true;
        }
    return false;
}

static void naive_clean(const uint8_t *s, size_t len, struct buffer *out)
{
    for (size_t i = 0; i < len;) {
        size_t left = len - i, n = 1;
        while (n <= 4 && n <= left && !valid_character(s + i, n))
            n++;
        if (n <= 4 && n <= left) {
            buffer_append(out, s + i, n);
            i += n;
            continue;
        }
        n = left < 3 ? left : 3;
        while (n > 0 && !begins_character(s + i, n))
            n--;
        if (n == left)
            return;
        buffer_append(out, "\xef\xbf\xbd", 3);
        i += n ? n : 1;
    }
}

static bool ends_with(const struct buffer *all, size_t at, const struct bytes *stop)
{
    return at >= stop->len && memcmp(all->data + at - stop->len, stop->data, stop->len) == 0;
}

/* What must be out when `all` was pushed. True at a stop. */
static bool naive_stream(const struct buffer *all, const struct bytes *stops, uint32_t n, bool last,
                         struct buffer *out)
{
    for (size_t at = 1; at <= all->len; at++) {
        size_t longest = 0;
        for (uint32_t i = 0; i < n; i++)
            if (ends_with(all, at, &stops[i]) && stops[i].len > longest)
                longest = stops[i].len;
        if (longest) {
            naive_clean(all->data, at - longest, out);
            return true;
        }
    }
    size_t withheld = 0;
    for (uint32_t i = 0; i < n && !last; i++)
        for (size_t k = 1; k < stops[i].len; k++) {
            struct bytes part = {stops[i].data, k};
            if (ends_with(all, all->len, &part) && k > withheld)
                withheld = k;
        }
    naive_clean(all->data, all->len - withheld, out);
    return false;
}

START_TEST(random_pieces_agree_with_the_naive_stream_after_every_piece)
{
    static const char *const alphabet[] = {"a", "b",        "a",        "b",    "\xc3", "\xa9",
                                           "é", "\xf0\x9f", "\x98\x80", "\xff", "\xe0", "\xed\xa0"};
    srand(11);
    int stops_seen = 0, ends_seen = 0;
    for (int round = 0; round < 30000; round++) {
        char strings[4][8];
        struct bytes stops[4] = {{0}};
        uint32_t n = (uint32_t)rand() % 4;
        for (uint32_t i = 0; i < n; i++) {
            size_t len = 1 + (size_t)rand() % 6;
            for (size_t k = 0; k < len; k++)
                strings[i][k] = rand() % 8 ? (char)('a' + rand() % 2) : rand() % 2 ? '\xc3' : '\xa9';
            stops[i] = (struct bytes){strings[i], len};
        }
        struct text text;
        struct buffer all = {0}, out = {0}, expected = {0};
        ck_assert_int_eq(text_init(&text, stops, n), 0);
        bool stopped = false;
        for (int p = 0; p < 12 && !stopped; p++) {
            size_t before = all.len;
            for (int k = rand() % 4; k > 0; k--) {
                const char *s = alphabet[(size_t)rand() % (sizeof alphabet / sizeof *alphabet)];
                buffer_append(&all, s, strlen(s));
            }
            int r = text_push(&text, (struct bytes){all.data + before, all.len - before}, &out);
            expected.len = 0;
            stopped = naive_stream(&all, stops, n, false, &expected);
            ck_assert_int_eq(r, stopped ? TEXT_STOPPED : 0);
            ck_assert(
                bytes_equal((struct bytes){out.data, out.len}, (struct bytes){expected.data, expected.len}));
        }
        if (!stopped) {
            ck_assert_int_eq(text_finish(&text, &out), 0);
            expected.len = 0;
            naive_stream(&all, stops, n, true, &expected);
            ck_assert(
                bytes_equal((struct bytes){out.data, out.len}, (struct bytes){expected.data, expected.len}));
        }
        stops_seen += stopped;
        ends_seen += !stopped;
        text_deinit(&text);
        buffer_deinit(&all);
        buffer_deinit(&out);
        buffer_deinit(&expected);
    }
    ck_assert_int_gt(stops_seen, 5000);
    ck_assert_int_gt(ends_seen, 5000);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, text_without_stops_flows_at_once);
    tcase_add_test(tests, characters_leave_whole);
    tcase_add_test(tests, what_is_not_utf8_is_replaced);
    tcase_add_test(tests, a_character_cut_by_the_end_is_left_out);
    tcase_add_test(tests, a_stop_string_that_ends_too_early_is_text);
    tcase_add_test(tests, a_stop_string_is_found_inside_a_piece_and_across_pieces);
    tcase_add_test(tests, what_only_began_a_stop_string_is_delivered);
    tcase_add_test(tests, overlapping_prefixes_are_followed);
    tcase_add_test(tests, the_stop_that_ends_first_wins_and_the_longest_of_those);
    tcase_add_test(tests, a_stop_string_of_multibyte_characters_is_withheld_by_bytes);
    tcase_add_test(tests, random_pieces_agree_with_the_naive_stream_after_every_piece);
}

int main(void)
{
    return run_tests("text", add);
}
