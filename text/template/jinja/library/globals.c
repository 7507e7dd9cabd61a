/* SPDX-License-Identifier: MIT */
/* Functions that every template finds: raise_exception, namespace, dict, range, strftime_now. */

#include "text/template/jinja/library/library.h"

#include <errno.h>
#include <string.h>

#include "text/template/jinja/string_ops.h"
#include "text/template/jinja/operators.h"
#include "text/template/jinja/print.h"

static int raise_exception(struct jinja_run *run, const struct jinja_arguments *a,
                           struct jinja_value *ret_value)
{
    const struct jinja_string *text;
    int r = a->n > 0 ? jinja_text_of(run, a->items[0], &text) : -1;
    if (r != 0 || text->len == 0)
        return error_set(run->err, JINJA_E_REFUSED, "raise_exception without a message");
    char line[256];
    size_t n = 0;
    for (; n < text->len && n < sizeof line - 1; n++) /* one line, whatever the template says */
        line[n] = (unsigned char)text->data[n] < ' ' ? ' ' : text->data[n];
    return error_set(run->err, JINJA_E_REFUSED, "%.*s", (int)n, line);
}

static int make_dict(struct jinja_run *run, const struct jinja_arguments *a, bool is_namespace,
                     struct jinja_value *ret_value)
{
    struct jinja_value dict;
    int r = jinja_new_dict(run, &dict);
    if (r == 0 && a->n > 0) {
        if (a->items[0].type != JINJA_DICT)
            return jinja_fail(run, -EINVAL, "expected a mapping, not %s", jinja_type_name(a->items[0]));
        const struct jinja_dict *from = a->items[0].dict;
        for (size_t i = 0; r == 0 && i < from->n; i++)
            r = jinja_dict_set(run, dict.dict, from->items[i].key, from->items[i].value);
    }
    for (size_t i = 0; r == 0 && i < a->n_named; i++)
        r = jinja_dict_set(run, dict.dict, a->named[i].key, a->named[i].value);
    if (r != 0)
        return r;
    dict.dict->is_namespace = is_namespace;
    *ret_value = dict;
    return 0;
}

static int make_namespace(struct jinja_run *run, const struct jinja_arguments *a,
                          struct jinja_value *ret_value)
{
    return make_dict(run, a, true, ret_value);
}

static int make_plain_dict(struct jinja_run *run, const struct jinja_arguments *a,
                           struct jinja_value *ret_value)
{
    return make_dict(run, a, false, ret_value);
}

static int range(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    int64_t bounds[3] = {0, 0, 1};
    if (a->n == 0 || a->n > 3)
        return jinja_fail(run, -EINVAL, "range takes one to three numbers");
    for (size_t i = 0; i < a->n; i++) {
        int r = jinja_int_argument(run, a, i, "", 0, &bounds[i]);
        if (r != 0)
            return r;
    }
    if (a->n == 1) {
        bounds[1] = bounds[0];
        bounds[0] = 0;
    }
    if (bounds[2] == 0)
        return jinja_fail(run, -EINVAL, "range step is 0");
    struct jinja_value list;
    int r = jinja_new_list(run, 0, &list);
    for (int64_t i = bounds[0]; r == 0 && (bounds[2] > 0 ? i < bounds[1] : i > bounds[1]);) {
        r = jinja_list_add(run, list.list, jinja_of_int(i)); /* charges: a long range ends at the bound */
        if (__builtin_add_overflow(i, bounds[2], &i))
            break;
    }
    if (r == 0)
        *ret_value = list;
    return r;
}

static int strftime_now(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *format;
    int r = jinja_string_argument(run, a, 0, "format", &format);
    char pattern[128], *text = jinja_alloc(run, 512);
    if (r != 0)
        return r;
    if (!text)
        return jinja_no_memory(run);
    if (!format || format->len >= sizeof pattern)
        return jinja_fail(run, -EINVAL, "strftime_now takes a format of at most %zu bytes",
                          sizeof pattern - 1);
    memcpy(pattern, format->data, format->len);
    pattern[format->len] = '\0';
    size_t len = strftime(text, 512, pattern, &run->date);
    uint8_t *marks = NULL;
    if (format->marks && memchr(format->marks, 1, format->len)) { /* which bytes came from it is not known */
        marks = jinja_alloc(run, 512);
        if (!marks)
            return jinja_no_memory(run);
        memset(marks, 1, 512);
    }
    return jinja_of_bytes(run, text, len, marks, ret_value);
}

jinja_function *jinja_find_global(struct bytes name)
{
    static const struct jinja_named table[] = {
        {"raise_exception", raise_exception},
        {"namespace", make_namespace},
        {"dict", make_plain_dict},
        {"range", range},
        {"strftime_now", strftime_now},
        {NULL, NULL},
    };
    return jinja_find_named(table, name);
}
