/* SPDX-License-Identifier: MIT */
/* What is held against what may come. */

#include <string.h>

#include "text/dialect/answer_parser.h"

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

void answer_parser_take(struct answer_parser *parser, size_t n)
{
    if (!parser->begun && buffer_append(&parser->raw, parser->held.data, n) < 0)
        parser->failed = true;
    buffer_consume(&parser->held, n);
}

/* Whether there may be blanks before this character of a pattern: between marks, not inside of one. */
static bool may_part(struct bytes pattern, size_t i)
{
    const char *text = pattern.data;
    return i == 0 || is_blank((uint8_t)text[i - 1]) || strchr(">])}\",:", text[i - 1]) ||
           strchr("<[({", text[i]);
}

int match_loose(struct bytes held, size_t at, struct bytes pattern, size_t *ret_end)
{
    const uint8_t *data = held.data;
    const char *wanted = pattern.data;
    size_t i = 0, end = at, blanks = 0;
    while (i < pattern.len) {
        if (is_blank((uint8_t)wanted[i])) {
            i++;
        } else if (at == held.len) {
            return MATCH_MORE;
        } else if (is_blank(data[at])) {
            if (++blanks > ANSWER_MOST_BLANKS || !may_part(pattern, i))
                return MATCH_NONE;
            at++;
        } else if (wanted[i] == DIALECT_TYPE) {
            while (at < held.len && data[at] >= 'a' && data[at] <= 'z')
                at++;
            i++;
        } else if (data[at] == (uint8_t)wanted[i]) {
            at++;
            i++;
            end = at;
        } else {
            return MATCH_NONE;
        }
    }
    *ret_end = end;
    return MATCH_WHOLE;
}
