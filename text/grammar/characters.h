/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_CHARACTERS_H
#define TEXT_GRAMMAR_CHARACTERS_H

/* Common parts of the readers of GBNF and regular expressions: a cursor over the text, characters and
 * escapes, repeats, and growing sets. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/grammar/expression.h"

#define CURSOR_MOST_DEPTH 100 /* of groups: no text exhausts the stack */

struct text_cursor {
    const uint8_t *data;
    size_t len, pos;
};

/* The next byte, or the one after it; −1 at the end. */
static inline int cursor_peek(const struct text_cursor *cursor)
{
    return cursor->pos < cursor->len ? cursor->data[cursor->pos] : -1;
}

static inline int cursor_peek_second(const struct text_cursor *cursor)
{
    return cursor->len - cursor->pos > 1 ? cursor->data[cursor->pos + 1] : -1;
}

/* Skips `what` if it is next. */
bool cursor_take(struct text_cursor *cursor, const char *what);

uint32_t cursor_line(const struct text_cursor *cursor); /* from 1 */

enum cursor_dialect { CURSOR_GBNF, CURSOR_REGEX };

/* Reads one character, literal or escaped. False if it is not UTF-8 or the escape is unknown; the position
 * is then undefined. */
bool cursor_character(struct text_cursor *cursor, enum cursor_dialect dialect, uint32_t *ret_point);

/* Reads a member of a set: a character, or two with - between them. False with the reason. */
bool cursor_range(struct text_cursor *cursor, enum cursor_dialect dialect, struct code_range *ret_range,
                  const char **ret_reason);

struct repeat {
    uint32_t least, most;
};

/* Reads * + ? {m} {m,} {m,n}, after blanks if these are allowed. 1; 0 if there is none; −1 if it is
 * malformed or beyond GRAMMAR_MOST_REPEATS. */
int cursor_repeat(struct text_cursor *cursor, bool after_blanks, struct repeat *ret_repeat);

/* The first code point of valid UTF-8; returns its length in bytes. */
size_t characters_point(const uint8_t *text, uint32_t *ret_point);

/* Reads one alternative. 0, or a code with a reason. */
typedef int alternative_reader(void *reader, const struct expression **ret_expression);

/* Reads alternatives with | between them. 0, or what `read` returned. */
int cursor_choice(struct text_cursor *cursor, struct rules *rules, alternative_reader *read, void *reader,
                  const struct expression **ret_expression);

/* Reads the rest of a group after its "(": alternatives, and ")". `depth` counts the groups around it. 0, or
 * the result of `read`; *ret_reason: what is wrong with the group itself; NULL: nothing. */
int cursor_group(struct text_cursor *cursor, uint32_t *depth, struct rules *rules, alternative_reader *read,
                 void *reader, const struct expression **ret_expression, const char **ret_reason);

/* Reads one item with its repeats. *ret_end: the sequence has ended, and there is none. 0, or a code with a
 * reason. */
typedef int item_reader(void *reader, bool *ret_end, const struct expression **ret_item);

/* Appends items to the list up to the end of the sequence. 0, or what `read` returned. */
int cursor_items(struct rules *rules, item_reader *read, void *reader, struct expression_list *list);

/* Appends a code point as UTF-8. 0 or -ENOMEM. */
int characters_append(struct buffer *out, uint32_t point);

/* A growing set, in the memory of the rules. A zeroed one is empty. */
struct code_set {
    struct code_range *ranges;
    uint32_t n, cap;
};
int code_set_add(struct rules *rules, struct code_set *set, struct code_range range); /* 0 or -ENOMEM */

#endif
