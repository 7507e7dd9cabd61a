/* SPDX-License-Identifier: MIT */
/* Values as text: as {{ }} prints them, which is how Python does it, and as JSON.
 *
 * A container may hold itself (a namespace can be put into a list of its own), so walking is bounded in
 * depth.
 */

#include "text/template/jinja/print.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static int append_text(struct jinja_run *run, struct jinja_builder *builder, const char *text)
{
    return jinja_append(run, builder, text, strlen(text), NULL);
}

/* The shortest digits that read back as the same number, always with a point or an exponent. */
static int append_real(struct jinja_run *run, struct jinja_builder *builder, double real)
{
    char digits[40];
    if (isnan(real) || isinf(real))
        return append_text(run, builder, isnan(real) ? "nan" : real < 0 ? "-inf" : "inf");
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, real);
        if (strtod(digits, NULL) == real)
            break;
    }
    char *exponent = strchr(digits, 'e');
    if (exponent && fabs(real) < 1e16 && fabs(real) >= 1e-4)
        snprintf(digits, sizeof digits, "%.0f", real);
    if (!strpbrk(digits, ".e"))
        strcat(digits, ".0");
    return append_text(run, builder, digits);
}

static int append_int(struct jinja_run *run, struct jinja_builder *builder, int64_t integer)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)integer);
    return append_text(run, builder, digits);
}

/* A piece of text that stands for byte `i` of the string: as marked as that byte. */
static int append_escape(struct jinja_run *run, struct jinja_builder *builder,
                         const struct jinja_string *string, size_t i, const char *escape)
{
    uint8_t marks[16];
    memset(marks, string->marks ? string->marks[i] : 0, sizeof marks);
    return jinja_append(run, builder, escape, strlen(escape), string->marks ? marks : NULL);
}

/* The escape of a byte, or NULL when it stands for itself. */
static const char *escape_of(uint8_t byte, char quote, char room[8])
{
    switch (byte) {
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    case '\\':
        return "\\\\";
    default:
        break;
    }
    if (byte == (uint8_t)quote) {
        snprintf(room, 8, "\\%c", quote);
        return room;
    }
    return NULL;
}

static int append_escaped(struct jinja_run *run, struct jinja_builder *builder,
                          const struct jinja_string *string, char quote, bool json, bool ascii)
{
    char around[2] = {quote, 0}, room[16];
    int r = append_text(run, builder, around);
    for (size_t i = 0; r == 0 && i < string->len;) {
        size_t run_end = i;
        const char *escape = NULL;
        for (; run_end < string->len; run_end++) {
            uint8_t byte = (uint8_t)string->data[run_end];
            escape = escape_of(byte, quote, room);
            if (!escape && json && byte == '\b')
                escape = "\\b";
            if (!escape && json && byte == '\f')
                escape = "\\f";
            if (!escape && (byte < 0x20 || (byte == 0x7f && (!json || ascii)))) {
                snprintf(room, sizeof room, json ? "\\u%04x" : "\\x%02x", byte);
                escape = room;
            }
            if (escape || (ascii && byte >= 0x80))
                break;
        }
        r = jinja_append(run, builder, string->data + i, run_end - i,
                         string->marks ? string->marks + i : NULL);
        i = run_end;
        if (r != 0 || i == string->len)
            break;
        utf8proc_ssize_t taken = 1;
        if (!escape) {
            utf8proc_int32_t point;
            taken = utf8proc_iterate((const uint8_t *)string->data + i, (utf8proc_ssize_t)(string->len - i),
                                     &point);
            if (taken <= 0)
                return jinja_fail(run, -EINVAL, "a string that is not UTF-8");
            if (point >= 0x10000)
                snprintf(room, sizeof room, "\\u%04x\\u%04x", 0xd7c0u + ((unsigned)point >> 10),
                         0xdc00u + ((unsigned)point & 0x3ff));
            else
                snprintf(room, sizeof room, "\\u%04x", (unsigned)point);
            escape = room;
        }
        r = append_escape(run, builder, string, i, escape);
        i += (size_t)taken;
    }
    return r != 0 ? r : append_text(run, builder, around);
}

/* Python's repr: what stands inside a printed list. */
static int append_repr(struct jinja_run *run, struct jinja_builder *builder, struct jinja_value value,
                       unsigned depth)
{
    if (depth > JINJA_MAX_NESTING)
        return jinja_fail(run, -EMSGSIZE, "a value is nested more than %d deep", JINJA_MAX_NESTING);
    int r = jinja_spend(run, 1);
    if (r != 0)
        return r;
    if (value.type == JINJA_STR) {
        const struct jinja_string *s = value.string;
        bool other = s->len > 0 && memchr(s->data, '\'', s->len) && !memchr(s->data, '"', s->len);
        return append_escaped(run, builder, s, other ? '"' : '\'', false, false);
    }
    if (value.type == JINJA_LIST) {
        const bool tuple = value.list->is_tuple;
        r = append_text(run, builder, tuple ? "(" : "[");
        for (size_t i = 0; r == 0 && i < value.list->n; i++) {
            r = append_text(run, builder, i > 0 ? ", " : "");
            if (r == 0)
                r = append_repr(run, builder, value.list->items[i], depth + 1);
        }
        return r != 0 ? r : append_text(run, builder, !tuple ? "]" : value.list->n == 1 ? ",)" : ")");
    }
    if (value.type == JINJA_DICT) {
        r = append_text(run, builder, "{");
        for (size_t i = 0; r == 0 && i < value.dict->n; i++) {
            r = append_text(run, builder, i > 0 ? ", " : "");
            if (r == 0)
                r = append_repr(run, builder, value.dict->items[i].key, depth + 1);
            if (r == 0)
                r = append_text(run, builder, ": ");
            if (r == 0)
                r = append_repr(run, builder, value.dict->items[i].value, depth + 1);
        }
        return r != 0 ? r : append_text(run, builder, "}");
    }
    if (value.type == JINJA_UNDEFINED)
        return append_text(run, builder, "Undefined");
    return jinja_append_value(run, builder, value);
}

int jinja_append_value(struct jinja_run *run, struct jinja_builder *builder, struct jinja_value value)
{
    switch (value.type) {
    case JINJA_UNDEFINED:
        return 0;
    case JINJA_NONE:
        return append_text(run, builder, "None");
    case JINJA_BOOLEAN:
        return append_text(run, builder, value.boolean ? "True" : "False");
    case JINJA_INT:
        return append_int(run, builder, value.integer);
    case JINJA_FLOAT:
        return append_real(run, builder, value.real);
    case JINJA_STR:
        return jinja_append_string(run, builder, value.string);
    case JINJA_LIST:
    case JINJA_DICT:
        return append_repr(run, builder, value, 0);
    case JINJA_GENERATOR:
    case JINJA_LOOP:
    case JINJA_MACRO:
    case JINJA_FUNCTION:
        break;
    }
    return jinja_fail(run, -EINVAL, "%s cannot be printed", jinja_type_name(value));
}

int jinja_text_of(struct jinja_run *run, struct jinja_value value, const struct jinja_string **ret_string)
{
    if (value.type != JINJA_STR) {
        struct jinja_builder builder = {0};
        int r = jinja_append_value(run, &builder, value);
        if (r == 0)
            r = jinja_of_builder(run, &builder, &value);
        if (r != 0)
            return r;
    }
    *ret_string = value.string;
    return 0;
}

int jinja_repr_of(struct jinja_run *run, struct jinja_value value, struct jinja_value *ret_value)
{
    struct jinja_builder builder = {0};
    int r = append_repr(run, &builder, value, 0);
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

/* ---- JSON ---- */

static int append_break(struct jinja_run *run, struct jinja_builder *builder, int indent, unsigned depth)
{
    if (indent < 0)
        return 0;
    int r = append_text(run, builder, "\n");
    for (size_t n = (size_t)indent * depth; r == 0 && n > 0;) {
        static const char blanks[] = "                                ";
        size_t some = n < sizeof blanks - 1 ? n : sizeof blanks - 1;
        r = jinja_append(run, builder, blanks, some, NULL);
        n -= some;
    }
    return r;
}

static int compare_members(const void *a, const void *b)
{
    const struct jinja_member *x = a, *y = b;
    if (x->key.type != JINJA_STR || y->key.type != JINJA_STR)
        return 0;
    size_t len = x->key.string->len < y->key.string->len ? x->key.string->len : y->key.string->len;
    int order = len > 0 ? memcmp(x->key.string->data, y->key.string->data, len) : 0;
    return order ? order
                 : (x->key.string->len > y->key.string->len) - (x->key.string->len < y->key.string->len);
}

/* Strings are keys as they are; the JSON of any other is. */
static int json_key(struct jinja_run *run, struct jinja_value key, const struct jinja_json_style *style,
                    const struct jinja_string **ret_key)
{
    struct jinja_builder builder = {0};
    int r = 0;
    if (key.type != JINJA_STR)
        r = jinja_append_json(run, &builder, key, style, JINJA_MAX_NESTING);
    if (r == 0 && key.type != JINJA_STR)
        r = jinja_of_builder(run, &builder, &key);
    if (r == 0)
        *ret_key = key.string;
    return r;
}

static int append_json_dict(struct jinja_run *run, struct jinja_builder *builder,
                            const struct jinja_dict *dict, const struct jinja_json_style *style,
                            unsigned depth)
{
    struct jinja_member *items = dict->items;
    if (style->sorted && dict->n > 1) {
        items = jinja_alloc(run, dict->n * sizeof *items);
        if (!items)
            return jinja_no_memory(run);
        memcpy(items, dict->items, dict->n * sizeof *items);
        qsort(items, dict->n, sizeof *items, compare_members);
    }
    int r = append_text(run, builder, "{");
    for (size_t i = 0; r == 0 && i < dict->n; i++) {
        const struct jinja_string *key;
        r = i > 0 ? jinja_append_string(run, builder, &style->item_separator) : 0;
        if (r == 0)
            r = append_break(run, builder, style->indent, depth + 1);
        if (r == 0)
            r = json_key(run, items[i].key, style, &key);
        if (r == 0)
            r = append_escaped(run, builder, key, '"', true, style->ascii);
        if (r == 0)
            r = jinja_append_string(run, builder, &style->key_separator);
        if (r == 0)
            r = jinja_append_json(run, builder, items[i].value, style, depth + 1);
    }
    if (r == 0 && dict->n > 0)
        r = append_break(run, builder, style->indent, depth);
    return r != 0 ? r : append_text(run, builder, "}");
}

static int append_json_list(struct jinja_run *run, struct jinja_builder *builder,
                            const struct jinja_list *list, const struct jinja_json_style *style,
                            unsigned depth)
{
    int r = append_text(run, builder, "[");
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        r = i > 0 ? jinja_append_string(run, builder, &style->item_separator) : 0;
        if (r == 0)
            r = append_break(run, builder, style->indent, depth + 1);
        if (r == 0)
            r = jinja_append_json(run, builder, list->items[i], style, depth + 1);
    }
    if (r == 0 && list->n > 0)
        r = append_break(run, builder, style->indent, depth);
    return r != 0 ? r : append_text(run, builder, "]");
}

int jinja_append_json(struct jinja_run *run, struct jinja_builder *builder, struct jinja_value value,
                      const struct jinja_json_style *style, unsigned depth)
{
    if (depth > JINJA_MAX_NESTING)
        return jinja_fail(run, -EMSGSIZE, "a value is nested more than %d deep", JINJA_MAX_NESTING);
    int r = jinja_spend(run, 1);
    if (r != 0)
        return r;
    switch (value.type) {
    case JINJA_NONE:
        return append_text(run, builder, "null");
    case JINJA_BOOLEAN:
        return append_text(run, builder, value.boolean ? "true" : "false");
    case JINJA_INT:
        return append_int(run, builder, value.integer);
    case JINJA_FLOAT:
        return append_real(run, builder, value.real);
    case JINJA_STR:
        return append_escaped(run, builder, value.string, '"', true, style->ascii);
    case JINJA_LIST:
        return append_json_list(run, builder, value.list, style, depth);
    case JINJA_DICT:
        return append_json_dict(run, builder, value.dict, style, depth);
    default:
        return jinja_fail(run, -EINVAL, "%s cannot be written as JSON", jinja_type_name(value));
    }
}
