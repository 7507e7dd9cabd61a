/* SPDX-License-Identifier: MIT */
/* The last column stays empty: a cursor behind it stands on different columns in different terminals, so
 * that going back from there would go wrong.
 *
 * A word is what stands between blanks; of characters that are two columns wide each is one, for their
 * languages have no blanks. A word that is longer than a line is broken where the line ends. */

#include "client/command/terminal/wrap.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <utf8proc.h>

#define TAB_COLUMNS 8

void wrap_deinit(struct wrap *wrap)
{
    buffer_deinit(&wrap->word);
    *wrap = (struct wrap){0};
}

static void end_word(struct wrap *wrap)
{
    wrap->word.len = 0;
    wrap->word_columns = 0;
}

void wrap_begin(struct wrap *wrap, size_t columns)
{
    wrap->columns = columns;
    wrap->at = 0;
    end_word(wrap);
}

/* A character, whose first byte is at *text: how many bytes and columns it takes. */
static size_t measure(struct bytes text, size_t *ret_columns)
{
    utf8proc_int32_t code;
    const utf8proc_ssize_t n = utf8proc_iterate(text.data, (utf8proc_ssize_t)text.len, &code);
    if (n <= 0) {
        *ret_columns = 1;
        return 1;
    }
    const int columns = utf8proc_charwidth(code);
    *ret_columns = columns > 0 ? (size_t)columns : 0;
    return (size_t)n;
}

static int begin_line(struct wrap *wrap, struct buffer *out)
{
    wrap->at = 0;
    return buffer_append(out, "\n", 1);
}

/* Takes the word to the next line, or breaks it if it began this one. */
static int break_line(struct wrap *wrap, struct buffer *out)
{
    char back[32];
    if (wrap->word_columns == wrap->at) {
        end_word(wrap);
        return begin_line(wrap, out);
    }
    int n = snprintf(back, sizeof back, wrap->word_columns > 0 ? "\033[%zuD\033[K" : "", wrap->word_columns);
    int r = buffer_append(out, back, (size_t)n);
    if (r == 0)
        r = begin_line(wrap, out);
    if (r == 0)
        r = buffer_append(out, wrap->word.data, wrap->word.len);
    wrap->at = wrap->word_columns;
    return r;
}

static int add_blank(struct wrap *wrap, char blank, struct buffer *out)
{
    end_word(wrap);
    if (blank == '\n')
        return begin_line(wrap, out);
    const size_t columns = blank == '\t' ? TAB_COLUMNS - wrap->at % TAB_COLUMNS : 1;
    if (wrap->at + columns >= wrap->columns)
        return begin_line(wrap, out);
    wrap->at += columns;
    return buffer_append(out, &blank, 1);
}

static int add_character(struct wrap *wrap, struct bytes character, size_t columns, struct buffer *out)
{
    if (columns > 1)
        end_word(wrap); /* it may stand on another line than what comes before it */
    int r = wrap->at + columns >= wrap->columns ? break_line(wrap, out) : 0;
    if (r == 0)
        r = buffer_append(out, character.data, character.len);
    if (r == 0 &&
        wrap->word_columns + columns > 0) /* an accent stays with the character that it is shown on */
        r = buffer_append(&wrap->word, character.data, character.len);
    wrap->at += columns;
    wrap->word_columns += columns;
    if (columns > 1)
        end_word(wrap);
    return r;
}

int wrap_append(struct wrap *wrap, struct bytes text, struct buffer *out)
{
    const char *at = text.data;
    size_t left = text.len, columns;
    int r = 0;
    if (wrap->columns < 3) /* nothing would fit */
        return buffer_append(out, text.data, text.len);
    while (left > 0 && r == 0) {
        const size_t n = measure((struct bytes){at, left}, &columns);
        const bool blank = *at == ' ' || *at == '\t' || *at == '\n';
        r = blank ? add_blank(wrap, *at, out) : add_character(wrap, (struct bytes){at, n}, columns, out);
        at += n;
        left -= n;
    }
    return r;
}
