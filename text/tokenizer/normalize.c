/* SPDX-License-Identifier: MIT */
/* Taken apart, marks put in order, put together again: the first and the last are utf8proc's. Its ordering is
 * not, for that takes the square of the marks that follow a letter, and a text may be nothing but marks: here
 * they are sorted by counting. */

#include "text/tokenizer/normalize.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#define OPTIONS   (UTF8PROC_COMPOSE | UTF8PROC_STABLE)
#define MOST_PART 8    /* characters that one is taken apart into, at most */
#define FIRST     0xcc /* the first byte of U+0300: all before that is in form C, whatever stands beside it */
#define CLASSES   256  /* of marks; 0: no mark */
#define FEW       16   /* marks that are sorted in place */

static bool is_normal(struct bytes text)
{
    const uint8_t *bytes = text.data;
    for (size_t i = 0; i < text.len; i++)
        if (bytes[i] >= FIRST)
            return false;
    return true;
}

static int reserve(int32_t **characters, size_t *capacity, size_t need)
{
    if (need <= *capacity)
        return 0;
    const size_t wanted = need > *capacity * 2 ? need : *capacity * 2;
    int32_t *moved = realloc(*characters, wanted * sizeof *moved);
    if (!moved)
        return -ENOMEM;
    *characters = moved;
    *capacity = wanted;
    return 0;
}

/* Takes the text apart; how many characters that makes, or -ENOMEM. */
static int64_t take_apart(struct normalizer *normalizer, struct bytes text)
{
    const uint8_t *bytes = text.data;
    size_t n = 0;
    for (size_t at = 0; at < text.len;) {
        utf8proc_int32_t character;
        int unused = 0;
        at += (size_t)utf8proc_iterate(bytes + at, (utf8proc_ssize_t)(text.len - at), &character);
        if (reserve(&normalizer->characters, &normalizer->capacity, n + MOST_PART) < 0)
            return -ENOMEM;
        n += (size_t)utf8proc_decompose_char(character, normalizer->characters + n, MOST_PART, OPTIONS,
                                             &unused);
    }
    return (int64_t)n;
}

static unsigned class_of(int32_t character)
{
    return (unsigned)utf8proc_get_property(character)->combining_class % CLASSES;
}

static void sort_few(int32_t *marks, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const int32_t mark = marks[i];
        size_t at = i;
        for (; at > 0 && class_of(marks[at - 1]) > class_of(mark); at--)
            marks[at] = marks[at - 1];
        marks[at] = mark;
    }
}

/* Marks of one class stay in their order. */
static int sort_many(struct normalizer *normalizer, int32_t *marks, size_t n)
{
    size_t start[CLASSES + 1] = {0};
    if (reserve(&normalizer->sorted, &normalizer->sorted_capacity, n) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        start[class_of(marks[i]) + 1]++;
    for (unsigned c = 0; c < CLASSES; c++)
        start[c + 1] += start[c];
    for (size_t i = 0; i < n; i++)
        normalizer->sorted[start[class_of(marks[i])]++] = marks[i];
    memcpy(marks, normalizer->sorted, n * sizeof *marks);
    return 0;
}

static int put_in_order(struct normalizer *normalizer, size_t n)
{
    int32_t *characters = normalizer->characters;
    int r = 0;
    for (size_t i = 0, end; i < n && r == 0; i = end + 1) {
        for (end = i; end < n && class_of(characters[end]) > 0;)
            end++;
        if (end - i <= FEW)
            sort_few(characters + i, end - i);
        else
            r = sort_many(normalizer, characters + i, end - i);
    }
    return r;
}

static int write_text(struct normalizer *normalizer, size_t n)
{
    int r = 0;
    normalizer->text.len = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        uint8_t utf8[4];
        size_t len = (size_t)utf8proc_encode_char(normalizer->characters[i], utf8);
        r = buffer_append(&normalizer->text, utf8, len);
    }
    return r;
}

int normalize_nfc(struct normalizer *normalizer, struct bytes text, struct bytes *ret_text)
{
    if (is_normal(text)) {
        *ret_text = text;
        return 0;
    }
    int64_t n = take_apart(normalizer, text);
    if (n < 0 || put_in_order(normalizer, (size_t)n) < 0)
        return -ENOMEM;
    n = utf8proc_normalize_utf32(normalizer->characters, (utf8proc_ssize_t)n, OPTIONS);
    if (n < 0 || write_text(normalizer, (size_t)n) < 0)
        return -ENOMEM;
    *ret_text = (struct bytes){normalizer->text.data, normalizer->text.len};
    return 0;
}

void normalizer_deinit(struct normalizer *normalizer)
{
    free(normalizer->characters);
    free(normalizer->sorted);
    buffer_deinit(&normalizer->text);
    *normalizer = (struct normalizer){0};
}
