/* SPDX-License-Identifier: MIT */
/* Arithmetic, and what + * ~ do to strings and lists, with Python's meanings.
 *
 * Whole numbers are 64 bits wide: what does not fit is an error instead of a wrong number. Division of whole
 * numbers with // and % rounds down. */

#include "text/template/jinja/arithmetic.h"

#include <errno.h>
#include <math.h>

#include "text/template/jinja/string_ops.h"
#include "text/template/jinja/print.h"

static int join(struct jinja_run *run, struct jinja_value a, struct jinja_value b,
                struct jinja_value *ret_value)
{
    struct jinja_builder builder = {0};
    int r = jinja_append_value(run, &builder, a);
    if (r == 0)
        r = jinja_append_value(run, &builder, b);
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

static int add_strings(struct jinja_run *run, const struct jinja_string *a, const struct jinja_string *b,
                       struct jinja_value *ret_value)
{
    struct jinja_value left = {.type = JINJA_STR, .string = a}, right = {.type = JINJA_STR, .string = b};
    struct jinja_builder builder = {.html = a->html || b->html};
    int r = 0;
    if (builder.html) /* the one that is not html is escaped */
        r = jinja_escape(run, a, &left);
    if (r == 0 && builder.html)
        r = jinja_escape(run, b, &right);
    if (r == 0)
        r = jinja_append_string(run, &builder, left.string);
    if (r == 0)
        r = jinja_append_string(run, &builder, right.string);
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

static int join_lists(struct jinja_run *run, const struct jinja_list *a, const struct jinja_list *b,
                      struct jinja_value *ret_value)
{
    struct jinja_value out;
    int r = jinja_new_list(run, a->n + b->n, &out);
    if (r == 0)
        out.list->is_tuple = a->is_tuple;
    for (size_t i = 0; r == 0 && i < a->n; i++)
        r = jinja_list_add(run, out.list, a->items[i]);
    for (size_t i = 0; r == 0 && i < b->n; i++)
        r = jinja_list_add(run, out.list, b->items[i]);
    if (r == 0)
        *ret_value = out;
    return r;
}

static int repeat_string(struct jinja_run *run, const struct jinja_string *string, int64_t times,
                         struct jinja_value *ret_value)
{
    struct jinja_builder builder = {.html = string->html};
    int r = 0;
    for (int64_t i = 0; r == 0 && i < times; i++) {
        r = jinja_spend(run, 1);
        if (r == 0)
            r = jinja_append_string(run, &builder, string);
    }
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

static int repeat_list(struct jinja_run *run, const struct jinja_list *list, int64_t times,
                       struct jinja_value *ret_value)
{
    struct jinja_value out;
    int r = jinja_new_list(run, 0, &out);
    if (r == 0)
        out.list->is_tuple = list->is_tuple;
    for (int64_t i = 0; r == 0 && list->n > 0 && i < times; i++)
        for (size_t k = 0; r == 0 && k < list->n; k++)
            r = jinja_list_add(run, out.list, list->items[k]);
    if (r == 0)
        *ret_value = out;
    return r;
}

static int repeat(struct jinja_run *run, struct jinja_value value, struct jinja_value times,
                  struct jinja_value *ret_value)
{
    return value.type == JINJA_STR ? repeat_string(run, value.string, jinja_whole_of(times), ret_value)
                                   : repeat_list(run, value.list, jinja_whole_of(times), ret_value);
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    int64_t quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static int calculate_whole(struct jinja_run *run, enum jinja_operator op, int64_t a, int64_t b,
                           struct jinja_value *ret_value)
{
    int64_t result = 0;
    bool overflow = false;
    switch (op) {
    case JINJA_ADD:
        overflow = __builtin_add_overflow(a, b, &result);
        break;
    case JINJA_SUBTRACT:
        overflow = __builtin_sub_overflow(a, b, &result);
        break;
    case JINJA_MULTIPLY:
        overflow = __builtin_mul_overflow(a, b, &result);
        break;
    case JINJA_FLOOR_DIVIDE:
    case JINJA_MODULO:
        overflow = a == INT64_MIN && b == -1;
        if (!overflow)
            result = op == JINJA_MODULO ? a - b * floor_divide(a, b) : floor_divide(a, b);
        break;
    default: /* a power that is not negative; of anything but −1, 0 and 1 at most the 62nd fits */
        result = 1;
        if (a >= -1 && a <= 1 && b > 2)
            b = 2 - b % 2;
        for (int64_t i = 0; i < b && !overflow; i++)
            overflow = __builtin_mul_overflow(result, a, &result);
        break;
    }
    if (overflow)
        return jinja_fail(run, -EINVAL, "a number is too large");
    *ret_value = jinja_of_int(result);
    return 0;
}

static double calculate_real(enum jinja_operator op, double a, double b)
{
    switch (op) {
    case JINJA_ADD:
        return a + b;
    case JINJA_SUBTRACT:
        return a - b;
    case JINJA_MULTIPLY:
        return a * b;
    case JINJA_DIVIDE:
        return a / b;
    case JINJA_FLOOR_DIVIDE:
        return floor(a / b);
    case JINJA_MODULO:
        return a - b * floor(a / b);
    default:
        return pow(a, b);
    }
}

int jinja_calculate(struct jinja_run *run, enum jinja_operator op, struct jinja_value a, struct jinja_value b,
                    struct jinja_value *ret_value)
{
    if (op == JINJA_CONCAT)
        return join(run, a, b, ret_value);
    if (op == JINJA_ADD && a.type == JINJA_STR && b.type == JINJA_STR)
        return add_strings(run, a.string, b.string, ret_value);
    if (op == JINJA_ADD && a.type == JINJA_LIST && b.type == JINJA_LIST &&
        a.list->is_tuple == b.list->is_tuple)
        return join_lists(run, a.list, b.list, ret_value);
    if (op == JINJA_MULTIPLY && (a.type == JINJA_STR || a.type == JINJA_LIST) && jinja_is_whole(b))
        return repeat(run, a, b, ret_value);
    if (op == JINJA_MULTIPLY && (b.type == JINJA_STR || b.type == JINJA_LIST) && jinja_is_whole(a))
        return repeat(run, b, a, ret_value);
    if (op == JINJA_MODULO && a.type == JINJA_STR)
        return jinja_format_percent(run, a.string, b, ret_value);
    if (!jinja_is_number(a) || !jinja_is_number(b))
        return jinja_fail(run, -EINVAL, "%s and %s cannot be %s", jinja_type_name(a), jinja_type_name(b),
                          op == JINJA_ADD ? "added" : "used in arithmetic");
    bool divides = op == JINJA_DIVIDE || op == JINJA_FLOOR_DIVIDE || op == JINJA_MODULO;
    if (divides && jinja_real_of(b) == 0)
        return jinja_fail(run, -EINVAL, "division by zero");
    if (jinja_is_whole(a) && jinja_is_whole(b) && op != JINJA_DIVIDE &&
        (op != JINJA_POWER || jinja_whole_of(b) >= 0))
        return calculate_whole(run, op, jinja_whole_of(a), jinja_whole_of(b), ret_value);
    *ret_value = jinja_of_real(calculate_real(op, jinja_real_of(a), jinja_real_of(b)));
    return 0;
}
