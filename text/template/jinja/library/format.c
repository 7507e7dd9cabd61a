/* SPDX-License-Identifier: MIT */
/* Formats: the method "{}".format, and "%s" with the operator % or the filter `format`.
 *
 * Both languages end in a layout of one value (layout.h); each has its own reader for it. The text of the
 * format is the template's (or keeps its marks), what fills its places keeps its own. */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "text/template/jinja/library/layout.h"
#include "text/template/jinja/string_ops.h"
#include "text/template/jinja/characters.h"
#include "text/template/jinja/operators.h"
#include "text/template/jinja/print.h"

enum { MAX_FORMAT_DEPTH = 1 }; /* as in Python */

/* ---- {} ---- */

struct reader { /* of "{}" */
    const struct jinja_string *format;
    size_t at;
    const struct jinja_arguments *arguments;
    size_t skip;  /* arguments before the first that may be named */
    int64_t next; /* of {} without a number; −1 after one with a number */
    unsigned depth;
};

static bool reads(const struct reader *reader, char c)
{
    return reader->at < reader->format->len && reader->format->data[reader->at] == c;
}

static int read_number(struct jinja_run *run, const struct jinja_string *text, size_t *at,
                       int64_t *ret_number)
{
    int64_t number = 0;
    for (; *at < text->len && text->data[*at] >= '0' && text->data[*at] <= '9'; (*at)++) {
        number = number * 10 + text->data[*at] - '0';
        if (number > INT32_MAX)
            return jinja_fail(run, -EINVAL, "a number in a format is too large");
    }
    *ret_number = number;
    return 0;
}

/* [[fill]align][sign][#][0][width][,][.precision][type] */
static int read_layout(struct jinja_run *run, const struct jinja_string *spec,
                       struct jinja_layout *ret_layout)
{
    struct jinja_layout layout = {.precision = -1};
    size_t at = 0, first = spec->len > 0 ? jinja_character_len(spec, 0) : 0;
    int r = 0;
    if (first > 0 && first < spec->len && memchr("<>^=", spec->data[first], 4)) {
        layout.fill = *spec;
        layout.fill.len = first;
        layout.align = spec->data[first];
        at = first + 1;
    } else if (first > 0 && memchr("<>^=", spec->data[0], 4)) {
        layout.align = spec->data[at++];
    }
    if (at < spec->len && memchr("+- ", spec->data[at], 3))
        layout.sign = spec->data[at++];
    if (at < spec->len && spec->data[at] == '#') {
        layout.alternate = true;
        at++;
    }
    if (at < spec->len && spec->data[at] == '0') {
        layout.zeros = !layout.align;
        if (layout.fill.len == 0)
            layout.fill = (struct jinja_string){.data = "0", .len = 1};
    }
    r = read_number(run, spec, &at, &layout.width);
    if (r == 0 && at < spec->len && (spec->data[at] == ',' || spec->data[at] == '_'))
        layout.grouping = spec->data[at++];
    if (r == 0 && at < spec->len && spec->data[at] == '.') {
        at++;
        r = read_number(run, spec, &at, &layout.precision);
    }
    if (r == 0 && at < spec->len)
        layout.type = spec->data[at++];
    if (r == 0 && at < spec->len)
        return jinja_fail(run, -EINVAL, "invalid format");
    *ret_layout = layout;
    return r;
}

/* The argument that a place begins with: a number, a name, or the next one. */
static int read_argument(struct jinja_run *run, struct reader *reader, struct jinja_value *ret_value)
{
    const struct jinja_string *format = reader->format;
    const size_t start = reader->at;
    while (reader->at < format->len && !memchr(".[!:}{", format->data[reader->at], 6))
        reader->at++;
    const struct jinja_string name = {.data = format->data + start, .len = reader->at - start};
    size_t digits = 0;
    int64_t i = 0;
    int r = read_number(run, &name, &digits, &i);
    if (r != 0)
        return r;
    if (name.len > 0 && digits < name.len) {
        for (size_t k = 0; k < reader->arguments->n_named; k++) {
            const struct jinja_string *key = reader->arguments->named[k].key.string;
            if (bytes_equal((struct bytes){key->data, key->len}, (struct bytes){name.data, name.len})) {
                *ret_value = reader->arguments->named[k].value;
                return 0;
            }
        }
        return jinja_fail(run, -EINVAL, "a format needs \"%.*s\", which is missing",
                          (int)(name.len < 64 ? name.len : 64), name.data);
    }
    if (name.len == 0 ? reader->next < 0 : reader->next > 0)
        return jinja_fail(run, -EINVAL, "a format mixes numbered and unnumbered fields");
    i = name.len == 0 ? reader->next++ : i;
    if (name.len > 0)
        reader->next = -1;
    if ((size_t)i >= reader->arguments->n - reader->skip)
        return jinja_fail(run, -EINVAL, "a format refers to value %lld of %zu", (long long)i + 1,
                          reader->arguments->n - reader->skip);
    *ret_value = reader->arguments->items[reader->skip + (size_t)i];
    return 0;
}

/* .name and [key] behind an argument. */
static int read_members(struct jinja_run *run, struct reader *reader, struct jinja_value *value)
{
    const struct jinja_string *format = reader->format;
    int r = 0;
    while (r == 0 && (reads(reader, '.') || reads(reader, '['))) {
        const bool bracket = reads(reader, '[');
        const size_t start = ++reader->at;
        while (reader->at < format->len &&
               !(bracket ? reads(reader, ']') : memchr(".[!:}{", format->data[reader->at], 6) != NULL))
            reader->at++;
        const struct jinja_string key = {.data = format->data + start, .len = reader->at - start};
        size_t digits = 0;
        int64_t i = 0;
        if (key.len == 0 || reader->at == format->len)
            return jinja_fail(run, -EINVAL, "a format field has an empty member name");
        reader->at += bracket;
        r = read_number(run, &key, &digits, &i);
        if (r == 0 && bracket && digits == key.len)
            r = jinja_member_of(run, *value, jinja_of_int(i), value);
        else if (r == 0)
            r = jinja_attribute(run, *value, (struct bytes){key.data, key.len}, NULL, value);
        if (r == 0)
            r = jinja_spend(run, 1);
    }
    return r;
}

static int fill_places(struct jinja_run *run, struct reader *reader, struct jinja_builder *builder);

/* What stands behind the colon, with its own places filled. */
static int read_spec(struct jinja_run *run, struct reader *reader, struct jinja_layout *ret_layout)
{
    size_t start = reader->at, open = 0;
    for (; reader->at < reader->format->len && (open > 0 || !reads(reader, '}')); reader->at++) {
        open += reads(reader, '{');
        open -= reads(reader, '}');
    }
    struct jinja_string spec = *reader->format;
    spec.data += start;
    spec.marks = spec.marks ? spec.marks + start : NULL;
    spec.len = reader->at - start;
    struct reader inner = *reader;
    struct jinja_builder builder = {0};
    struct jinja_value filled;
    inner.format = &spec;
    inner.at = 0;
    inner.depth++;
    int r = fill_places(run, &inner, &builder);
    reader->next = inner.next;
    if (r == 0)
        r = jinja_of_builder(run, &builder, &filled);
    return r != 0 ? r : read_layout(run, filled.string, ret_layout);
}

/* {argument.member[key]!conversion:layout}, behind the opening brace. */
static int fill_place(struct jinja_run *run, struct reader *reader, struct jinja_builder *builder)
{
    struct jinja_value value;
    struct jinja_layout layout = {.precision = -1};
    int r = read_argument(run, reader, &value);
    if (r == 0)
        r = read_members(run, reader, &value);
    if (r == 0 && reads(reader, '!')) {
        char conversion = reader->at + 1 < reader->format->len ? reader->format->data[reader->at + 1] : 0;
        if (conversion != 's' && conversion != 'r')
            return jinja_fail(run, -EINVAL, "a format supports only the conversions !s and !r");
        reader->at += 2;
        r = conversion == 'r' ? jinja_repr_of(run, value, &value) : 0;
        const struct jinja_string *text;
        if (r == 0)
            r = jinja_text_of(run, value, &text);
        if (r == 0)
            value = (struct jinja_value){.type = JINJA_STR, .string = text};
    }
    if (r == 0 && reads(reader, ':')) {
        reader->at++;
        r = read_spec(run, reader, &layout);
    }
    if (r == 0 && !reads(reader, '}'))
        return jinja_fail(run, -EINVAL, "unmatched '{' in a format");
    reader->at++;
    return r != 0 ? r : jinja_lay_out(run, builder, &layout, value);
}

static int fill_places(struct jinja_run *run, struct reader *reader, struct jinja_builder *builder)
{
    const struct jinja_string *format = reader->format;
    int r = reader->depth > MAX_FORMAT_DEPTH ? jinja_fail(run, -EINVAL, "formats nested too deeply") : 0;
    while (r == 0 && reader->at < format->len) {
        const size_t start = reader->at;
        while (reader->at < format->len && !reads(reader, '{') && !reads(reader, '}'))
            reader->at++;
        r = jinja_append(run, builder, format->data + start, reader->at - start,
                         format->marks ? format->marks + start : NULL);
        if (r != 0 || reader->at == format->len)
            break;
        const char brace = format->data[reader->at++];
        if (reads(reader, brace)) {
            r = jinja_append(run, builder, &brace, 1, format->marks ? format->marks + reader->at : NULL);
            reader->at++;
        } else {
            r = brace == '{' ? fill_place(run, reader, builder)
                             : jinja_fail(run, -EINVAL, "unmatched '}' in a format");
        }
    }
    return r;
}

int jinja_format(struct jinja_run *run, const struct jinja_string *format,
                 const struct jinja_arguments *arguments, size_t skip, struct jinja_value *ret_value)
{
    struct reader reader = {.format = format, .arguments = arguments, .skip = skip};
    struct jinja_builder builder = {.html = format->html};
    int r = fill_places(run, &reader, &builder);
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

/* ---- % ---- */

/* The next value of a tuple, the only value, or the member "(name)" of a mapping. */
static int next_value(struct jinja_run *run, const struct jinja_string *format, size_t *at,
                      struct jinja_value values, size_t *next, struct jinja_value *ret_value)
{
    if (*at < format->len && format->data[*at] == '(') {
        const size_t start = ++*at;
        while (*at < format->len && format->data[*at] != ')')
            ++*at;
        if (*at == format->len || values.type != JINJA_DICT)
            return jinja_fail(run, -EINVAL, "a format needs a mapping, not %s", jinja_type_name(values));
        const struct jinja_string name = {.data = format->data + start, .len = (*at)++ - start};
        int r =
            jinja_member_of(run, values, (struct jinja_value){.type = JINJA_STR, .string = &name}, ret_value);
        if (r == 0 && ret_value->type == JINJA_UNDEFINED)
            return jinja_fail(run, -EINVAL, "a format needs \"%.*s\", which is missing",
                              (int)(name.len < 64 ? name.len : 64), name.data);
        return r;
    }
    const bool tuple = values.type == JINJA_LIST && values.list->is_tuple;
    if (*next >= (tuple ? values.list->n : 1))
        return jinja_fail(run, -EINVAL, "not enough values for a format");
    *ret_value = tuple ? values.list->items[*next] : values;
    ++*next;
    return 0;
}

/* Flags, width and precision behind a %. */
static int read_percent_layout(struct jinja_run *run, const struct jinja_string *format, size_t *at,
                               struct jinja_layout *layout)
{
    for (; *at < format->len && memchr("-+ #0", format->data[*at], 5); ++*at) {
        char flag = format->data[*at];
        if (flag == '-')
            layout->align = '<';
        else if (flag == '#')
            layout->alternate = true;
        else if (flag == '0')
            layout->align = layout->align ? layout->align : '=';
        else
            layout->sign = flag;
    }
    int r = read_number(run, format, at, &layout->width);
    if (r == 0 && *at < format->len && format->data[*at] == '.') {
        ++*at;
        r = read_number(run, format, at, &layout->precision);
    }
    return r;
}

static int lay_out_percent(struct jinja_run *run, struct jinja_builder *builder, struct jinja_layout *layout,
                           char type, struct jinja_value value)
{
    const bool as_text = type == 's' || type == 'r' || (type == 'c' && value.type == JINJA_STR);
    if (as_text) {
        const struct jinja_string *text;
        int r = type == 'r' ? jinja_repr_of(run, value, &value) : 0;
        if (r == 0)
            r = jinja_text_of(run, value, &text);
        layout->align = layout->align == '<' ? '<' : '>';
        layout->sign = 0;
        layout->alternate = false;
        return r != 0 ? r
                      : jinja_lay_out(run, builder, layout,
                                      (struct jinja_value){.type = JINJA_STR, .string = text});
    }
    if (!jinja_is_number(value) || !strchr("diuxXoeEfFgG", type))
        return jinja_unfit(run, type, value);
    if (layout->align == '=')
        layout->fill = (struct jinja_string){.data = "0", .len = 1};
    layout->type = type == 'i' || type == 'u' ? 'd' : type;
    if (strchr("dxXo", layout->type)) {
        layout->precision = -1;
        if (value.type == JINJA_FLOAT) {
            if (layout->type != 'd' || !(fabs(value.real) < 9.2e18))
                return jinja_unfit(run, type, value);
            value = jinja_of_int((int64_t)value.real);
        }
    }
    return jinja_lay_out(run, builder, layout, value);
}

int jinja_format_percent(struct jinja_run *run, const struct jinja_string *format, struct jinja_value values,
                         struct jinja_value *ret_value)
{
    struct jinja_builder builder = {.html = format->html};
    size_t at = 0, next = 0;
    int r = 0;
    while (r == 0 && at < format->len) {
        const char *percent = memchr(format->data + at, '%', format->len - at);
        const size_t len = percent ? (size_t)(percent - (format->data + at)) : format->len - at;
        r = jinja_append(run, &builder, format->data + at, len, format->marks ? format->marks + at : NULL);
        at += len + 1;
        if (r != 0 || !percent)
            break;
        if (at < format->len && format->data[at] == '%') {
            r = jinja_append(run, &builder, "%", 1, format->marks ? format->marks + at : NULL);
            at++;
            continue;
        }
        struct jinja_layout layout = {.precision = -1};
        struct jinja_value value = values;
        size_t place = at;
        /* A name stands before the flags; a value without one is taken behind them, but none is read there.
         */
        r = next_value(run, format, &place, values, &next, &value);
        at = place;
        if (r == 0)
            r = read_percent_layout(run, format, &at, &layout);
        if (r == 0 && at == format->len)
            r = jinja_fail(run, -EINVAL, "a format ends after %%");
        if (r == 0)
            r = lay_out_percent(run, &builder, &layout, format->data[at++], value);
    }
    if (r == 0 && values.type != JINJA_DICT &&
        next < (values.type == JINJA_LIST && values.list->is_tuple ? values.list->n : 1))
        r = jinja_fail(run, -EINVAL, "too many values for a format");
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}
