/* SPDX-License-Identifier: MIT */
/* Operations on strings that filters and methods share. */

#include "worker/model/jinja/text.h"

#include <errno.h>
#include <string.h>
#include <utf8proc.h>

int jinja_string_argument(struct jinja_run *run, const struct jinja_arguments *arguments, size_t i,
                          const char *name, const struct jinja_string **ret_string)
{
    struct jinja_value value;
    *ret_string = NULL;
    if (!jinja_argument(arguments, i, name, &value) || value.type == JINJA_NONE)
        return 0;
    if (value.type != JINJA_STR)
        return jinja_fail(run, -EINVAL, "%s stands where a string belongs", jinja_type_name(value));
    *ret_string = value.string;
    return 0;
}

int jinja_int_argument(struct jinja_run *run, const struct jinja_arguments *arguments, size_t i,
                       const char *name, int64_t otherwise, int64_t *ret_value)
{
    struct jinja_value value;
    *ret_value = otherwise;
    if (!jinja_argument(arguments, i, name, &value) || value.type == JINJA_NONE)
        return 0;
    if (value.type != JINJA_INT)
        return jinja_fail(run, -EINVAL, "%s stands where a whole number belongs", jinja_type_name(value));
    *ret_value = value.integer;
    return 0;
}

static utf8proc_int32_t point_at(const struct jinja_string *string, size_t at, size_t *ret_len)
{
    utf8proc_int32_t point;
    utf8proc_ssize_t len =
        utf8proc_iterate((const uint8_t *)string->data + at, (utf8proc_ssize_t)(string->len - at), &point);
    *ret_len = len > 0 ? (size_t)len : 1;
    return len > 0 ? point : 0xfffd;
}

static bool is_white_point(utf8proc_int32_t point)
{
    if (point < 0x80)
        return point == ' ' || (point >= '\t' && point <= '\r') || (point >= 0x1c && point <= 0x1f);
    utf8proc_category_t category = utf8proc_category(point);
    return point == 0x85 || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
           category == UTF8PROC_CATEGORY_ZP;
}

static bool strips(const struct jinja_string *string, size_t at, size_t len, const struct jinja_string *set)
{
    size_t n;
    return set ? memmem(set->data, set->len, string->data + at, len) != NULL
               : is_white_point(point_at(string, at, &n));
}

int jinja_strip(struct jinja_run *run, const struct jinja_string *string, int sides,
                const struct jinja_string *set, struct jinja_value *ret_value)
{
    size_t begin = 0, end = string->len, len;
    while (sides & JINJA_LEFT && begin < end) {
        point_at(string, begin, &len);
        if (!strips(string, begin, len, set))
            break;
        begin += len;
    }
    while (sides & JINJA_RIGHT && end > begin) {
        size_t at = end - 1;
        while (at > begin && ((uint8_t)string->data[at] & 0xc0) == 0x80)
            at--;
        if (!strips(string, at, end - at, set))
            break;
        end = at;
    }
    int r = jinja_spend(run, 1 + (string->len - (end - begin)) / 16 * (set ? 1 + set->len / 16 : 1));
    return r != 0 ? r : jinja_of_part(run, string, begin, end - begin, ret_value);
}

static bool is_letter(utf8proc_int32_t point)
{
    utf8proc_category_t category = utf8proc_category(point);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

/* Does a word begin behind this character, as the filter `title` sees it? */
static bool begins_word(utf8proc_int32_t point)
{
    return is_white_point(point) || (point > 0 && point < 0x80 && strchr("-({[<", point));
}

int jinja_change_case(struct jinja_run *run, const struct jinja_string *string, enum jinja_case change,
                      struct jinja_value *ret_value)
{
    struct jinja_builder builder = {0};
    bool in_word = false;
    int r = jinja_spend(run, 1 + string->len / 8);
    for (size_t at = 0, len; r == 0 && at < string->len; at += len) {
        utf8proc_int32_t point = point_at(string, at, &len);
        bool up =
            change == JINJA_UPPER || (change == JINJA_CAPITAL ? at == 0 : change != JINJA_LOWER && !in_word);
        utf8proc_int32_t changed = up ? utf8proc_toupper(point) : utf8proc_tolower(point);
        in_word = change == JINJA_TITLE_WORDS ? !begins_word(point) : is_letter(point);
        uint8_t bytes[4], marks[4];
        if (changed == point) { /* malformed bytes stay as they are */
            r = jinja_append(run, &builder, string->data + at, len,
                             string->marks ? string->marks + at : NULL);
            continue;
        }
        size_t n = (size_t)utf8proc_encode_char(changed, bytes);
        memset(marks, string->marks ? string->marks[at] : 0, sizeof marks);
        r = jinja_append(run, &builder, (const char *)bytes, n, string->marks ? marks : NULL);
    }
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

int jinja_replace(struct jinja_run *run, const struct jinja_string *string, const struct jinja_string *from,
                  const struct jinja_string *to, int64_t times, struct jinja_value *ret_value)
{
    struct jinja_builder builder = {0};
    size_t at = 0;
    int r = jinja_spend(run, 1 + string->len / 16);
    if (from->len == 0)
        return jinja_fail(run, -EINVAL, "an empty string is replaced");
    for (int64_t n = 0; r == 0 && (times < 0 || n < times); n++) {
        const char *found = memmem(string->data + at, string->len - at, from->data, from->len);
        if (!found)
            break;
        size_t len = (size_t)(found - (string->data + at));
        r = jinja_append(run, &builder, string->data + at, len, string->marks ? string->marks + at : NULL);
        if (r == 0)
            r = jinja_append_string(run, &builder, to);
        at += len + from->len;
    }
    if (r == 0)
        r = jinja_append(run, &builder, string->data + at, string->len - at,
                         string->marks ? string->marks + at : NULL);
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

int jinja_join(struct jinja_run *run, const struct jinja_list *list, const struct jinja_string *separator,
               struct jinja_value *ret_value)
{
    struct jinja_builder builder = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        r = jinja_spend(run, 1);
        if (r == 0 && i > 0 && separator)
            r = jinja_append_string(run, &builder, separator);
        if (r == 0)
            r = jinja_append_value(run, &builder, list->items[i]);
    }
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

int jinja_pairs(struct jinja_run *run, const struct jinja_dict *dict, struct jinja_value *ret_value)
{
    struct jinja_value list, pair;
    int r = jinja_new_list(run, dict->n, &list);
    for (size_t i = 0; r == 0 && i < dict->n; i++) {
        r = jinja_new_list(run, 2, &pair);
        if (r == 0)
            r = jinja_list_add(run, pair.list, dict->items[i].key);
        if (r == 0)
            r = jinja_list_add(run, pair.list, dict->items[i].value);
        if (r == 0)
            r = jinja_list_add(run, list.list, pair);
    }
    if (r == 0)
        *ret_value = list;
    return r;
}
