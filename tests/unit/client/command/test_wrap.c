/* SPDX-License-Identifier: MIT */
/* What a terminal shows of text that is broken between words, whatever pieces it comes in. */

#include "client/command/terminal/wrap.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 60, COLUMNS = 20 };

/* A terminal that knows what wrap.c writes; of characters beyond ASCII only how wide they are told to be. */
struct screen {
    char rows[ROWS][COLUMNS + 1];
    int row, column;
};

static void show(struct screen *screen, const struct buffer *out)
{
    for (size_t i = 0; i < out->len; i++) {
        const char c = (char)out->data[i];
        if (c == '\n') {
            screen->row++;
            screen->column = 0;
        } else if (c == '\033' && out->data[i + 2] == 'K') {
            memset(screen->rows[screen->row] + screen->column, 0, (size_t)(COLUMNS - screen->column));
            i += 2;
        } else if (c == '\033') {
            char *end;
            screen->column -= (int)strtol((const char *)out->data + i + 2, &end, 10);
            ck_assert_int_eq(*end, 'D');
            ck_assert_int_ge(screen->column, 0);
            i = (size_t)((const uint8_t *)end - out->data);
        } else {
            ck_assert_int_lt(screen->column, COLUMNS - 1); /* the last one stays empty */
            screen->rows[screen->row][screen->column++] = c;
        }
        ck_assert_int_lt(screen->row, ROWS);
    }
}

/* The text in pieces of so many bytes. */
static struct screen shown(const char *text, size_t piece)
{
    struct wrap wrap = {0};
    struct screen screen = {0};
    wrap_begin(&wrap, COLUMNS);
    for (size_t at = 0, len = strlen(text); at < len; at += piece) {
        struct buffer out = {0};
        const size_t n = len - at < piece ? len - at : piece;
        ck_assert_int_eq(wrap_append(&wrap, (struct bytes){text + at, n}, &out), 0);
        ck_assert_int_eq(buffer_append(&out, "", 1), 0);
        out.len--;
        show(&screen, &out);
        buffer_deinit(&out);
    }
    wrap_deinit(&wrap);
    return screen;
}

START_TEST(words_are_not_broken)
{
    for (size_t piece = 1; piece < 40; piece++) {
        struct screen screen = shown("The quick brown fox jumps over the lazy dog.\n\nAgain: "
                                     "incomprehensibilities, and more.",
                                     piece);
        static const char *const rows[] = {"The quick brown fox", "jumps over the lazy", "dog.", "", "Again:",
                                           "incomprehensibiliti", "es, and more."};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            size_t len = strlen(screen.rows[i]);
            while (len > 0 && screen.rows[i][len - 1] == ' ')
                screen.rows[i][--len] = 0;
            ck_assert_str_eq(screen.rows[i], rows[i]);
        }
    }
}
END_TEST

START_TEST(characters_count_for_as_many_columns_as_they_take)
{
    struct wrap wrap = {0};
    struct buffer out = {0};
    wrap_begin(&wrap, COLUMNS);
    const struct bytes wide = BYTES_LITERAL("あいうえおかきくけこ"); /* two columns each */
    ck_assert_int_eq(wrap_append(&wrap, wide, &out), 0);
    ck_assert_uint_eq(out.len, wide.len + 1);
    ck_assert_int_eq(out.data[9 * 3], '\n');
    ck_assert_uint_eq(wrap.at, 2);
    out.len = 0;
    wrap_begin(&wrap, COLUMNS);
    const struct bytes narrow = BYTES_LITERAL("größtenteils größer"); /* of 22 bytes, 19 columns */
    ck_assert_int_eq(wrap_append(&wrap, narrow, &out), 0);
    ck_assert_uint_eq(wrap.at, 19);
    ck_assert_uint_eq(out.len, narrow.len);
    out.len = 0;
    wrap_begin(&wrap, COLUMNS);
    ck_assert_int_eq(wrap_append(&wrap, BYTES_LITERAL("e\xcc\x81"), &out), 0); /* an accent of its own */
    ck_assert_uint_eq(wrap.at, 1);
    buffer_deinit(&out);
    wrap_deinit(&wrap);
}
END_TEST

/* What one writes where the other ends: neither takes the other along, and nothing is shown twice. */
START_TEST(wide_characters_break_between_any_two)
{
    static const struct {
        const char *text, *shown;
    } lines[] = {
        {"See also the cats \xe7\x8c\xab.", "See also the cats \n\xe7\x8c\xab."},
        {"See also the cats:\xe7\x8c\xab.", "See also the cats:\n\xe7\x8c\xab."},
        {"It is a cat\xe7\x8c\xab"
         "abcdefg",
         "It is a cat\xe7\x8c\xab"
         "abcdef\033[6D\033[K\nabcdefg"},
        {"The cats like a \xe7\x8c\xab\xcc\x81x.", "The cats like a \xe7\x8c\xab\xcc\x81x\033[1D\033[K\nx."},
        {"Sixteen columns \xe7\x8c\xab\xef\xb8\x8f\xe7\x8c\xab",
         "Sixteen columns \xe7\x8c\xab\xef\xb8\x8f\n\xe7\x8c\xab"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct wrap wrap = {0};
        struct buffer out = {0};
        wrap_begin(&wrap, COLUMNS);
        ck_assert_int_eq(wrap_append(&wrap, bytes_of_string(lines[i].text), &out), 0);
        ck_assert_int_eq(buffer_append(&out, "", 1), 0);
        ck_assert_str_eq((const char *)out.data, lines[i].shown);
        buffer_deinit(&out);
        wrap_deinit(&wrap);
    }
}
END_TEST

START_TEST(without_columns_nothing_is_changed)
{
    struct wrap wrap = {0};
    struct buffer out = {0};
    const struct bytes text = BYTES_LITERAL("a long text that is broken nowhere at all\tnot even here\n");
    for (size_t columns = 0; columns < 3; columns++) {
        out.len = 0;
        wrap_begin(&wrap, columns);
        ck_assert_int_eq(wrap_append(&wrap, text, &out), 0);
        ck_assert_uint_eq(out.len, text.len);
        ck_assert_mem_eq(out.data, text.data, text.len);
    }
    buffer_deinit(&out);
    wrap_deinit(&wrap);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, words_are_not_broken);
    tcase_add_test(tests, characters_count_for_as_many_columns_as_they_take);
    tcase_add_test(tests, wide_characters_break_between_any_two);
    tcase_add_test(tests, without_columns_nothing_is_changed);
}

int main(void)
{
    return run_tests("command/wrap", add);
}
