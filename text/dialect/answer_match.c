/* SPDX-License-Identifier: MIT */
/* See answer_match.h. */

#include "text/dialect/answer_match.h"

#include <string.h>

#include "text/dialect/blank.h"
#include "text/dialect/dialect.h"

bool match_is_name(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '-' || byte == '.';
}

size_t match_blanks(struct bytes held, size_t at, const char *also)
{
    const uint8_t *data = held.data;
    size_t n = 0;
    while (at + n < held.len && n <= ANSWER_MOST_BLANKS &&
           (is_blank(data[at + n]) || (data[at + n] && strchr(also, data[at + n]))))
        n++;
    return n;
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
