/* SPDX-License-Identifier: MIT */
/* Predicates: what Jinja calls tests, the words behind `is`. */

#include "text/template/jinja/library/library.h"

#include <errno.h>
#include <string.h>

#include "text/template/jinja/string_ops.h"
#include "text/template/jinja/arithmetic.h"
#include "text/template/jinja/operators.h"
#include "text/template/jinja/print.h"

static int give(bool yes, struct jinja_value *ret_value)
{
    *ret_value = jinja_of_bool(yes);
    return 0;
}

/* The second operand of a test that needs one. */
static int second(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    if (a->n < 2)
        return jinja_fail(run, -EINVAL, "a test lacks an argument");
    *ret_value = a->items[1];
    return 0;
}

static int test_defined(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give(a->items[0].type != JINJA_UNDEFINED, ret_value);
}

static int test_undefined(struct jinja_run *run, const struct jinja_arguments *a,
                          struct jinja_value *ret_value)
{
    return give(a->items[0].type == JINJA_UNDEFINED, ret_value);
}

static int test_none(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give(a->items[0].type == JINJA_NONE, ret_value);
}

static int test_string(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give(a->items[0].type == JINJA_STR, ret_value);
}

static int test_mapping(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give(a->items[0].type == JINJA_DICT && !a->items[0].dict->is_namespace, ret_value);
}

static int test_iterable(struct jinja_run *run, const struct jinja_arguments *a,
                         struct jinja_value *ret_value)
{
    enum jinja_type type = a->items[0].type;
    return give(type == JINJA_STR || type == JINJA_LIST || type == JINJA_GENERATOR || type == JINJA_DICT ||
                    type == JINJA_UNDEFINED,
                ret_value);
}

static int test_sequence(struct jinja_run *run, const struct jinja_arguments *a,
                         struct jinja_value *ret_value)
{
    if (a->items[0].type == JINJA_GENERATOR)
        return give(false, ret_value);
    return test_iterable(run, a, ret_value);
}

static int test_number(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    enum jinja_type type = a->items[0].type;
    return give(type == JINJA_INT || type == JINJA_FLOAT || type == JINJA_BOOLEAN, ret_value);
}

static int test_integer(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give(a->items[0].type == JINJA_INT, ret_value);
}

static int test_float(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give(a->items[0].type == JINJA_FLOAT, ret_value);
}

static int test_boolean(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give(a->items[0].type == JINJA_BOOLEAN, ret_value);
}

static int test_true(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give(a->items[0].type == JINJA_BOOLEAN && a->items[0].boolean, ret_value);
}

static int test_false(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give(a->items[0].type == JINJA_BOOLEAN && !a->items[0].boolean, ret_value);
}

static int test_escaped(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give(a->items[0].type == JINJA_STR && a->items[0].string->html, ret_value);
}

static int test_callable(struct jinja_run *run, const struct jinja_arguments *a,
                         struct jinja_value *ret_value)
{
    return give(a->items[0].type == JINJA_MACRO || a->items[0].type == JINJA_FUNCTION, ret_value);
}

static int test_divisible(struct jinja_run *run, const struct jinja_arguments *a,
                          struct jinja_value *ret_value)
{
    struct jinja_value by, rest;
    int r = second(run, a, &by);
    if (r == 0)
        r = jinja_calculate(run, JINJA_MODULO, a->items[0], by, &rest);
    return r != 0 ? r : give(!jinja_is_true(rest), ret_value);
}

static int has_rest(struct jinja_run *run, const struct jinja_arguments *a, int64_t wanted,
                    struct jinja_value *ret_value)
{
    struct jinja_value rest;
    bool equal = false;
    int r = jinja_calculate(run, JINJA_MODULO, a->items[0], jinja_of_int(2), &rest);
    if (r == 0)
        r = jinja_equal(run, rest, jinja_of_int(wanted), 0, &equal);
    return r != 0 ? r : give(equal, ret_value);
}

static int test_even(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return has_rest(run, a, 0, ret_value);
}

static int test_odd(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return has_rest(run, a, 1, ret_value);
}

static int test_equal(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    struct jinja_value other;
    bool equal = false;
    int r = second(run, a, &other);
    if (r == 0)
        r = jinja_equal(run, a->items[0], other, 0, &equal);
    return r != 0 ? r : give(equal, ret_value);
}

static int test_not_equal(struct jinja_run *run, const struct jinja_arguments *a,
                          struct jinja_value *ret_value)
{
    int r = test_equal(run, a, ret_value);
    return r != 0 ? r : give(!ret_value->boolean, ret_value);
}

static int order_of(struct jinja_run *run, const struct jinja_arguments *a, int *ret_order)
{
    struct jinja_value other;
    int r = second(run, a, &other);
    return r != 0 ? r : jinja_compare(run, a->items[0], other, ret_order);
}

static int test_less(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    int order = 0, r = order_of(run, a, &order);
    return r != 0 ? r : give(order < 0, ret_value);
}

static int test_less_equal(struct jinja_run *run, const struct jinja_arguments *a,
                           struct jinja_value *ret_value)
{
    int order = 0, r = order_of(run, a, &order);
    return r != 0 ? r : give(order <= 0, ret_value);
}

static int test_greater(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    int order = 0, r = order_of(run, a, &order);
    return r != 0 ? r : give(order > 0, ret_value);
}

static int test_greater_equal(struct jinja_run *run, const struct jinja_arguments *a,
                              struct jinja_value *ret_value)
{
    int order = 0, r = order_of(run, a, &order);
    return r != 0 ? r : give(order >= 0, ret_value);
}

static int test_in(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    struct jinja_value whole;
    bool contains = false;
    int r = second(run, a, &whole);
    if (r == 0)
        r = jinja_contains(run, whole, a->items[0], &contains);
    return r != 0 ? r : give(contains, ret_value);
}

static int is_in_case(struct jinja_run *run, struct jinja_value value, enum jinja_case wanted,
                      struct jinja_value *ret_value)
{
    const struct jinja_string *text;
    int r = jinja_text_of(run, value, &text);
    return r != 0 ? r : jinja_is_in_case(run, text, wanted, ret_value);
}

static int test_lower(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return is_in_case(run, a->items[0], JINJA_LOWER, ret_value);
}

static int test_upper(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return is_in_case(run, a->items[0], JINJA_UPPER, ret_value);
}

jinja_function *jinja_find_test(struct bytes name)
{
    static const struct jinja_named table[] = {
        {"defined", test_defined},
        {"undefined", test_undefined},
        {"none", test_none},
        {"string", test_string},
        {"mapping", test_mapping},
        {"iterable", test_iterable},
        {"sequence", test_sequence},
        {"number", test_number},
        {"integer", test_integer},
        {"float", test_float},
        {"boolean", test_boolean},
        {"true", test_true},
        {"false", test_false},
        {"callable", test_callable},
        {"escaped", test_escaped},
        {"divisibleby", test_divisible},
        {"even", test_even},
        {"odd", test_odd},
        {"equalto", test_equal},
        {"eq", test_equal},
        {"==", test_equal},
        {"sameas", test_equal},
        {"ne", test_not_equal},
        {"!=", test_not_equal},
        {"lt", test_less},
        {"lessthan", test_less},
        {"<", test_less},
        {"le", test_less_equal},
        {"<=", test_less_equal},
        {"gt", test_greater},
        {"greaterthan", test_greater},
        {">", test_greater},
        {"ge", test_greater_equal},
        {">=", test_greater_equal},
        {"in", test_in},
        {"lower", test_lower},
        {"upper", test_upper},
        {NULL, NULL},
    };
    return jinja_find_named(table, name);
}
