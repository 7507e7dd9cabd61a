/* SPDX-License-Identifier: MIT */
/* Methods that cut a string into parts: split, rsplit, splitlines, partition, rpartition. */

#include "text/template/jinja/library/string_methods.h"

#include <errno.h>
#include <string.h>

#include "text/template/jinja/string_ops.h"
#include "text/template/jinja/characters.h"

static int add_part(struct jinja_run *run, const struct jinja_string *string, size_t start, size_t len,
                    struct jinja_list *list)
{
    struct jinja_value part;
    int r = jinja_of_part(run, string, start, len, &part);
    return r != 0 ? r : jinja_list_add(run, list, part);
}

/* Words between white space; what is behind the last of them stays as it is. */
static int split_words(struct jinja_run *run, const struct jinja_string *string, int64_t times,
                       struct jinja_list *list)
{
    size_t at = 0, len;
    int r = 0;
    while (r == 0) {
        while (at < string->len && (len = jinja_white_len(string, at)) > 0)
            at += len;
        if (at == string->len)
            break;
        if (times == 0)
            return add_part(run, string, at, string->len - at, list);
        size_t end = at;
        while (end < string->len && jinja_white_len(string, end) == 0)
            end += jinja_character_len(string, end);
        r = add_part(run, string, at, end - at, list);
        at = end;
        times--;
    }
    return r;
}

/* Reads `sep` and `maxsplit`; *ret_by is NULL for white space. */
static int split_arguments(struct jinja_run *run, const struct jinja_arguments *a,
                           const struct jinja_string **ret_by, int64_t *ret_times,
                           struct jinja_value *ret_list)
{
    int r = jinja_string_argument(run, a, 1, "sep", ret_by);
    if (r == 0)
        r = jinja_int_argument(run, a, 2, "maxsplit", -1, ret_times);
    if (r == 0 && *ret_by && (*ret_by)->len == 0)
        return jinja_fail(run, -EINVAL, "split takes a non-empty separator");
    if (r == 0)
        r = jinja_new_list(run, 0, ret_list);
    return r != 0 ? r : jinja_spend(run, 1 + a->items[0].string->len / 16);
}

int jinja_split(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *string = a->items[0].string, *by;
    int64_t times;
    int r = split_arguments(run, a, &by, &times, ret_value);
    if (r != 0)
        return r;
    if (!by)
        return split_words(run, string, times, ret_value->list);
    size_t at = 0;
    while (r == 0 && times != 0) {
        const char *found = memmem(string->data + at, string->len - at, by->data, by->len);
        if (!found)
            break;
        size_t len = (size_t)(found - (string->data + at));
        r = add_part(run, string, at, len, ret_value->list);
        at += len + by->len;
        times--;
    }
    return r != 0 ? r : add_part(run, string, at, string->len - at, ret_value->list);
}

int jinja_find_last(struct jinja_run *run, const struct jinja_string *string, size_t len,
                    const struct jinja_string *part, size_t *ret_at)
{
    enum { STRETCH = 1024 };
    const size_t cost = 1 + STRETCH / 16 * (1 + part->len / 64);
    *ret_at = SIZE_MAX;
    int r = 0;
    for (size_t at = part->len <= len ? len - part->len + 1 : 0, left = 0; at > 0; at--, left--) {
        if (left == 0) {
            r = jinja_spend(run, cost);
            left = STRETCH;
        }
        if (r != 0)
            return r;
        if (memcmp(string->data + at - 1, part->data, part->len) == 0) {
            *ret_at = at - 1;
            return 0;
        }
    }
    return 0;
}

/* Splits from the right; without a limit that is a split from the left. */
int jinja_split_right(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *string = a->items[0].string, *by;
    int64_t times;
    struct jinja_value parts;
    int r = split_arguments(run, a, &by, &times, &parts);
    if (r != 0 || times < 0)
        return r != 0 ? r : jinja_split(run, a, ret_value);
    size_t end = string->len, len;
    while (r == 0) {
        while (!by && end > 0 && (len = jinja_white_len_before(string, end)) > 0)
            end -= len;
        if (!by && end == 0)
            break;
        size_t begin = end;
        if (times == 0) {
            begin = 0; /* blanks in front belong to the rest */
            r = add_part(run, string, begin, end - begin, parts.list);
            break;
        }
        if (by) {
            size_t found;
            r = jinja_find_last(run, string, end, by, &found);
            begin = found == SIZE_MAX ? 0 : found + by->len;
            if (r == 0)
                r = add_part(run, string, begin, end - begin, parts.list);
            if (found == SIZE_MAX)
                break;
            end = found;
        } else {
            while (begin > 0 && jinja_white_len_before(string, begin) == 0)
                begin--;
            r = add_part(run, string, begin, end - begin, parts.list);
            end = begin;
        }
        times--;
    }
    struct jinja_list *list = parts.list;
    for (size_t i = 0; i < list->n / 2; i++) {
        struct jinja_value other = list->items[i];
        list->items[i] = list->items[list->n - 1 - i];
        list->items[list->n - 1 - i] = other;
    }
    *ret_value = parts;
    return r;
}

/* (before, separator, behind) of its first or last place; the whole string and nothing when it is not there.
 */
static int divide(struct jinja_run *run, const struct jinja_arguments *a, bool at_last,
                  struct jinja_value *ret_value)
{
    const struct jinja_string *string = a->items[0].string, *by;
    int r = jinja_string_argument(run, a, 1, "sep", &by);
    if (r == 0 && (!by || by->len == 0))
        return jinja_fail(run, -EINVAL, "partition takes a non-empty string");
    if (r == 0)
        r = jinja_spend(run, 1 + string->len / 16);
    if (r == 0)
        r = jinja_new_list(run, 3, ret_value);
    if (r != 0)
        return r;
    const char *first = memmem(string->data, string->len, by->data, by->len);
    size_t at = first ? (size_t)(first - string->data) : string->len;
    if (first && at_last)
        r = jinja_find_last(run, string, string->len, by, &at);
    if (r != 0)
        return r;
    size_t len = first ? by->len : 0;
    if (!first && at_last)
        at = 0;
    ret_value->list->is_tuple = true;
    r = add_part(run, string, 0, at, ret_value->list);
    if (r == 0)
        r = add_part(run, string, at, len, ret_value->list);
    return r != 0 ? r : add_part(run, string, at + len, string->len - at - len, ret_value->list);
}

int jinja_partition(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return divide(run, a, false, ret_value);
}

int jinja_partition_right(struct jinja_run *run, const struct jinja_arguments *a,
                          struct jinja_value *ret_value)
{
    return divide(run, a, true, ret_value);
}

/* Bytes of the line end at `at`: 0 when there is none. */
static size_t line_end_len(const struct jinja_string *string, size_t at)
{
    const char *data = string->data + at;
    const size_t left = string->len - at;
    if (data[0] == '\r')
        return left > 1 && data[1] == '\n' ? 2 : 1;
    if ((data[0] >= '\n' && data[0] <= '\f') || (data[0] >= 0x1c && data[0] <= 0x1e))
        return 1;
    if (left > 1 && memcmp(data, "\xc2\x85", 2) == 0)
        return 2;
    return left > 2 && (memcmp(data, "\xe2\x80\xa8", 3) == 0 || memcmp(data, "\xe2\x80\xa9", 3) == 0) ? 3 : 0;
}

int jinja_split_lines(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *string = a->items[0].string;
    struct jinja_value list, keep = jinja_of_bool(false);
    jinja_argument(a, 1, "keepends", &keep);
    int r = jinja_new_list(run, 0, &list);
    if (r == 0)
        r = jinja_spend(run, 1 + string->len / 16);
    for (size_t at = 0; r == 0 && at < string->len;) {
        size_t end = at;
        while (end < string->len && line_end_len(string, end) == 0)
            end++;
        const size_t ending = end < string->len ? line_end_len(string, end) : 0;
        r = add_part(run, string, at, end - at + (jinja_is_true(keep) ? ending : 0), list.list);
        at = end + ending;
    }
    if (r == 0)
        *ret_value = list;
    return r;
}
