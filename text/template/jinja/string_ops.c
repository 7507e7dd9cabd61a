/* SPDX-License-Identifier: MIT */
/* Operations on strings that filters and methods share. */

#include "text/template/jinja/string_ops.h"

#include <errno.h>
#include <string.h>
#include <utf8proc.h>

#include "text/template/jinja/characters.h"
#include "text/template/jinja/operators.h"
#include "text/template/jinja/print.h"

int jinja_string_argument(struct jinja_run *run, const struct jinja_arguments *arguments, size_t i,
                          const char *name, const struct jinja_string **ret_string)
{
    struct jinja_value value;
    *ret_string = NULL;
    if (!jinja_argument(arguments, i, name, &value) || value.type == JINJA_NONE)
        return 0;
    if (value.type != JINJA_STR)
        return jinja_fail(run, -EINVAL, "expected a string, not %s", jinja_type_name(value));
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
        return jinja_fail(run, -EINVAL, "expected a whole number, not %s", jinja_type_name(value));
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

size_t jinja_white_len(const struct jinja_string *string, size_t at)
{
    size_t len;
    return is_white_point(point_at(string, at, &len)) ? len : 0;
}

/* Where the character that ends at `end` begins, not before `least`. */
static size_t character_before(const struct jinja_string *string, size_t least, size_t end)
{
    size_t at = end - 1;
    while (at > least && ((uint8_t)string->data[at] & 0xc0) == 0x80)
        at--;
    return at;
}

size_t jinja_white_len_before(const struct jinja_string *string, size_t end)
{
    /* No character has more than four bytes: a long run of malformed ones is not walked again for each. */
    size_t at = character_before(string, end > 4 ? end - 4 : 0, end);
    return jinja_white_len(string, at) == end - at ? end - at : 0;
}

/* The characters that a strip takes away: bits for ASCII, a search for the others. */
struct strip_set {
    const struct jinja_string *characters; /* NULL: white space */
    uint64_t ascii[2];
};

static bool strips(const struct strip_set *set, const struct jinja_string *string, size_t at, size_t len)
{
    const uint8_t first = (uint8_t)string->data[at];
    size_t n;
    if (!set->characters)
        return is_white_point(point_at(string, at, &n));
    if (first < 0x80)
        return set->ascii[first / 64] >> (first % 64) & 1;
    return memmem(set->characters->data, set->characters->len, string->data + at, len) != NULL;
}

int jinja_strip(struct jinja_run *run, const struct jinja_string *string, int sides,
                const struct jinja_string *set, struct jinja_value *ret_value)
{
    struct strip_set strip = {.characters = set};
    size_t begin = 0, end = string->len, len;
    /* Each character beyond ASCII searches the whole set: charged before it is done. */
    int r = jinja_spend(run, 1 + string->len / 16 + (set ? set->len / 16 : 0));
    const size_t search = set ? set->len / 64 : 0;
    for (size_t i = 0; set && i < set->len; i++)
        if ((uint8_t)set->data[i] < 0x80)
            strip.ascii[(uint8_t)set->data[i] / 64] |= UINT64_C(1) << ((uint8_t)set->data[i] % 64);
    while (r == 0 && sides & JINJA_LEFT && begin < end) {
        point_at(string, begin, &len);
        if (len > 1)
            r = jinja_spend(run, search);
        if (r != 0 || !strips(&strip, string, begin, len))
            break;
        begin += len;
    }
    while (r == 0 && sides & JINJA_RIGHT && end > begin) {
        size_t at = character_before(string, begin, end);
        if (end - at > 1)
            r = jinja_spend(run, search);
        if (r != 0 || !strips(&strip, string, at, end - at))
            break;
        end = at;
    }
    return r != 0 ? r : jinja_of_part(run, string, begin, end - begin, ret_value);
}

int jinja_escape(struct jinja_run *run, const struct jinja_string *string, struct jinja_value *ret_value)
{
    static const char from[] = "&<>'\"";
    static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    if (string->html)
        return jinja_of_part(run, string, 0, string->len, ret_value);
    struct jinja_builder builder = {.html = true};
    int r = 0;
    for (size_t i = 0; r == 0 && i < string->len; i++) {
        const char *found = string->data[i] ? strchr(from, string->data[i]) : NULL;
        uint8_t marks[8];
        memset(marks, string->marks ? string->marks[i] : 0, sizeof marks);
        const char *out = found ? to[found - from] : string->data + i;
        r = jinja_append(run, &builder, out, found ? strlen(out) : 1, string->marks ? marks : NULL);
    }
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
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
    struct jinja_builder builder = {.html = string->html};
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

int jinja_is_in_case(struct jinja_run *run, const struct jinja_string *string, enum jinja_case wanted,
                     struct jinja_value *ret_value)
{
    struct jinja_value same, changed;
    bool equal = false, still_equal = false;
    int r = jinja_change_case(run, string, wanted, &same);
    if (r == 0)
        r = jinja_change_case(run, string, wanted == JINJA_LOWER ? JINJA_UPPER : JINJA_LOWER, &changed);
    const struct jinja_value before = {.type = JINJA_STR, .string = string};
    if (r == 0)
        r = jinja_equal(run, before, same, 0, &equal);
    if (r == 0)
        r = jinja_equal(run, before, changed, 0, &still_equal);
    *ret_value = jinja_of_bool(equal && !still_equal);
    return r;
}

int jinja_is_all(struct jinja_run *run, const struct jinja_string *string, unsigned kinds,
                 struct jinja_value *ret_value)
{
    bool all = string->len > 0;
    int r = jinja_spend(run, 1 + string->len / 16);
    for (size_t at = 0, len; r == 0 && all && at < string->len; at += len) {
        utf8proc_int32_t point = point_at(string, at, &len);
        all = (kinds & JINJA_LETTERS && is_letter(point)) ||
              (kinds & JINJA_DIGITS && utf8proc_category(point) == UTF8PROC_CATEGORY_ND) ||
              (kinds & JINJA_BLANKS && is_white_point(point));
    }
    *ret_value = jinja_of_bool(all);
    return r;
}

int jinja_pad(struct jinja_run *run, const struct jinja_string *string, int sides, int64_t width,
              const struct jinja_string *fill, struct jinja_value *ret_value)
{
    static const struct jinja_string blank = {.data = " ", .len = 1};
    struct jinja_builder builder = {.html = string->html};
    int64_t n = 0;
    int r = jinja_length(run, (struct jinja_value){.type = JINJA_STR, .string = string}, &n);
    const int64_t missing = width > n ? width - n : 0;
    /* Where both sides share an odd number, Python gives the one more to the left if the width is odd. */
    const int64_t before = sides == JINJA_RIGHT  ? 0
                           : sides == JINJA_LEFT ? missing
                                                 : missing / 2 + (missing & width & 1);
    for (int64_t i = 0; r == 0 && i < before; i++)
        r = jinja_append_string(run, &builder, fill ? fill : &blank);
    if (r == 0)
        r = jinja_append_string(run, &builder, string);
    for (int64_t i = before; r == 0 && i < missing; i++)
        r = jinja_append_string(run, &builder, fill ? fill : &blank);
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

/* Puts `between` before each character and behind the last one, `times` times at most. */
static int interleave(struct jinja_run *run, const struct jinja_string *string,
                      const struct jinja_string *between, int64_t times, struct jinja_builder *builder)
{
    size_t at = 0;
    int r = 0;
    for (int64_t n = 0; r == 0 && (times < 0 || n < times); n++) {
        r = jinja_append_string(run, builder, between);
        if (r != 0 || at == string->len)
            return r;
        size_t len = jinja_character_len(string, at);
        r = jinja_append(run, builder, string->data + at, len, string->marks ? string->marks + at : NULL);
        at += len;
    }
    return r != 0 ? r
                  : jinja_append(run, builder, string->data + at, string->len - at,
                                 string->marks ? string->marks + at : NULL);
}

int jinja_replace(struct jinja_run *run, const struct jinja_string *string, const struct jinja_string *from,
                  const struct jinja_string *to, int64_t times, struct jinja_value *ret_value)
{
    struct jinja_builder builder = {.html = string->html};
    size_t at = 0;
    int r = jinja_spend(run, 1 + string->len / 16);
    if (r == 0 && from->len == 0) {
        r = interleave(run, string, to, times, &builder);
        return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
    }
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
    struct jinja_builder builder = {.html = separator && separator->html};
    int r = 0;
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        struct jinja_value item = list->items[i];
        r = jinja_spend(run, 1);
        if (r == 0 && i > 0 && separator)
            r = jinja_append_string(run, &builder, separator);
        if (r == 0 && builder.html && item.type == JINJA_STR)
            r = jinja_escape(run, item.string, &item);
        if (r == 0)
            r = jinja_append_value(run, &builder, item);
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
            pair.list->is_tuple = true;
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
