/* SPDX-License-Identifier: MIT */
/* Expressions, evaluated by walking the tree.
 *
 * Every step is charged and every level counted: a template can neither run forever nor end the C stack. The
 * run's line follows the walk, so that whatever fails below is told with its place. */

#include "text/template/jinja/evaluate.h"

#include <errno.h>
#include <string.h>

#include "text/template/jinja/arithmetic.h"
#include "text/template/jinja/operators.h"
#include "text/template/jinja/library/library.h"

static int find_variable(struct jinja_run *run, const struct jinja_node *node, struct jinja_value *ret_value)
{
    for (const struct jinja_scope *scope = run->scope; scope; scope = scope->outer) {
        int r = jinja_spend(run, scope->names.n / 8);
        if (r != 0)
            return r;
        for (size_t i = 0; i < scope->names.n; i++) {
            const struct jinja_string *name = scope->names.items[i].key.string;
            if (bytes_equal(node->name, (struct bytes){name->data, name->len})) {
                *ret_value = scope->names.items[i].value;
                return 0;
            }
        }
    }
    jinja_function *function = jinja_find_global(node->name);
    if (function)
        *ret_value = (struct jinja_value){.type = JINJA_FUNCTION, .function = function};
    else
        *ret_value = (struct jinja_value){.type = JINJA_UNDEFINED, .node = node};
    return 0;
}

static int evaluate_list(struct jinja_run *run, const struct jinja_node *node, struct jinja_value *ret_value)
{
    struct jinja_value list, item;
    int r = jinja_new_list(run, node->n_items, &list);
    for (const struct jinja_node *n = node->items; r == 0 && n; n = n->next) {
        r = jinja_evaluate(run, n, &item);
        if (r == 0)
            r = jinja_list_add(run, list.list, item);
    }
    if (r == 0) {
        list.list->is_tuple = node->integer;
        *ret_value = list;
    }
    return r;
}

static int evaluate_dict(struct jinja_run *run, const struct jinja_node *node, struct jinja_value *ret_value)
{
    struct jinja_value dict, key, value;
    int r = jinja_new_dict(run, &dict);
    for (const struct jinja_node *n = node->items; r == 0 && n; n = n->next->next) {
        r = jinja_evaluate(run, n, &key);
        if (r == 0)
            r = jinja_evaluate(run, n->next, &value);
        if (r == 0)
            r = jinja_dict_set(run, dict.dict, key, value);
    }
    if (r == 0)
        *ret_value = dict;
    return r;
}

/* Arguments behind `first`, if there is one: what a filter or method is applied to. */
static int evaluate_arguments(struct jinja_run *run, const struct jinja_node *node,
                              const struct jinja_value *first, struct jinja_arguments *ret_arguments)
{
    struct jinja_arguments arguments = {0};
    arguments.items = jinja_alloc(run, ((size_t)node->n_items + 1) * sizeof *arguments.items);
    /* with room for a caller */
    arguments.named = jinja_alloc(run, ((size_t)node->n_items + 1) * sizeof *arguments.named);
    if (!arguments.items || !arguments.named)
        return jinja_no_memory(run);
    if (first)
        arguments.items[arguments.n++] = *first;
    for (const struct jinja_node *n = node->items; n; n = n->next) {
        struct jinja_value value;
        int r = jinja_evaluate(run, n->kind == JINJA_NODE_NAMED ? n->a : n, &value);
        if (r != 0)
            return r;
        if (n->kind != JINJA_NODE_NAMED) {
            arguments.items[arguments.n++] = value;
            continue;
        }
        struct jinja_member *named = &arguments.named[arguments.n_named++];
        r = jinja_of_bytes(run, n->name.data, n->name.len, NULL, &named->key);
        if (r != 0)
            return r;
        named->value = value;
    }
    *ret_arguments = arguments;
    return 0;
}

int jinja_call(struct jinja_run *run, struct jinja_value callee, const struct jinja_arguments *arguments,
               struct jinja_value *ret_value)
{
    if (callee.type == JINJA_MACRO)
        return jinja_call_macro(run, callee.macro, arguments, ret_value);
    if (callee.type == JINJA_FUNCTION)
        return callee.function(run, arguments, ret_value);
    if (callee.type == JINJA_UNDEFINED && callee.node)
        return jinja_fail(run, -EINVAL, "\"%.*s\" is called but not defined",
                          (int)(callee.node->name.len < 64 ? callee.node->name.len : 64),
                          (const char *)callee.node->name.data);
    return jinja_fail(run, -EINVAL, "%s cannot be called", jinja_type_name(callee));
}

static int add_caller(struct jinja_run *run, struct jinja_value caller, struct jinja_arguments *arguments)
{
    struct jinja_member *named = &arguments->named[arguments->n_named++];
    named->value = caller;
    return jinja_of_bytes(run, "caller", strlen("caller"), NULL, &named->key);
}

/* `caller`: what a call block gives, or NULL. */
static int evaluate_call(struct jinja_run *run, const struct jinja_node *node,
                         const struct jinja_value *caller, struct jinja_value *ret_value)
{
    struct jinja_value callee, object;
    struct jinja_arguments arguments;
    int r;
    if (node->a->kind == JINJA_NODE_ATTRIBUTE) {
        r = jinja_evaluate(run, node->a->a, &object);
        if (r != 0)
            return r;
        jinja_function *method = jinja_find_method(object, node->a->name);
        if (method) {
            r = evaluate_arguments(run, node, &object, &arguments);
            run->line = node->line;
            return r != 0 ? r : method(run, &arguments, ret_value);
        }
        r = jinja_attribute(run, object, node->a->name, node->a, &callee);
    } else {
        r = jinja_evaluate(run, node->a, &callee);
    }
    if (r == 0)
        r = evaluate_arguments(run, node, NULL, &arguments);
    if (r == 0 && caller)
        r = add_caller(run, *caller, &arguments);
    run->line = node->line;
    return r != 0 ? r : jinja_call(run, callee, &arguments, ret_value);
}

int jinja_call_with(struct jinja_run *run, const struct jinja_node *node, struct jinja_value caller,
                    struct jinja_value *ret_value)
{
    return evaluate_call(run, node, &caller, ret_value);
}

static int apply_filter(struct jinja_run *run, const struct jinja_node *node, struct jinja_value value,
                        struct jinja_value *ret_value)
{
    struct jinja_arguments arguments;
    jinja_function *filter = jinja_find_filter(node->name);
    run->line = node->line;
    if (!filter)
        return jinja_fail(run, -EINVAL, "unknown filter \"%.*s\"",
                          (int)(node->name.len < 64 ? node->name.len : 64), (const char *)node->name.data);
    int r = evaluate_arguments(run, node, &value, &arguments);
    run->line = node->line;
    return r != 0 ? r : filter(run, &arguments, ret_value);
}

int jinja_filter_text(struct jinja_run *run, const struct jinja_node *filters, struct jinja_value text,
                      struct jinja_value *ret_value)
{
    int r = jinja_spend(run, 1);
    if (r == 0 && filters->a) { /* the innermost filter comes first */
        if (++run->depth > JINJA_MAX_DEPTH)
            return jinja_fail(run, -EMSGSIZE, "nested more than %d deep", JINJA_MAX_DEPTH);
        r = jinja_filter_text(run, filters->a, text, &text);
        run->depth--;
    }
    return r != 0 ? r : apply_filter(run, filters, text, ret_value);
}

static int evaluate_test(struct jinja_run *run, const struct jinja_node *node, struct jinja_value *ret_value)
{
    struct jinja_value value;
    struct jinja_arguments arguments;
    jinja_function *test = jinja_find_test(node->name);
    if (!test)
        return jinja_fail(run, -EINVAL, "unknown test \"%.*s\"",
                          (int)(node->name.len < 64 ? node->name.len : 64), (const char *)node->name.data);
    int r = jinja_evaluate(run, node->a, &value);
    if (r == 0)
        r = evaluate_arguments(run, node, &value, &arguments);
    run->line = node->line;
    return r != 0 ? r : test(run, &arguments, ret_value);
}

static int evaluate_unary(struct jinja_run *run, const struct jinja_node *node, struct jinja_value *ret_value)
{
    struct jinja_value value;
    int r = jinja_evaluate(run, node->a, &value);
    if (r != 0)
        return r;
    if (node->op == JINJA_NOT) {
        *ret_value = jinja_of_bool(!jinja_is_true(value));
        return 0;
    }
    if (value.type == JINJA_FLOAT) { /* 0 - 0.0 would lose the sign */
        *ret_value = jinja_of_real(node->op == JINJA_NEGATE ? -value.real : value.real);
        return 0;
    }
    return jinja_calculate(run, node->op == JINJA_NEGATE ? JINJA_SUBTRACT : JINJA_ADD, jinja_of_int(0), value,
                           ret_value);
}

static int evaluate_comparison(struct jinja_run *run, enum jinja_operator op, struct jinja_value a,
                               struct jinja_value b, struct jinja_value *ret_value)
{
    bool yes = false;
    int order = 0, r;
    switch (op) {
    case JINJA_EQUAL:
    case JINJA_NOT_EQUAL:
        r = jinja_equal(run, a, b, 0, &yes);
        break;
    case JINJA_IN:
    case JINJA_NOT_IN:
        r = jinja_contains(run, b, a, &yes);
        break;
    default:
        r = jinja_compare(run, a, b, &order);
        yes = op == JINJA_LESS         ? order < 0
              : op == JINJA_LESS_EQUAL ? order <= 0
              : op == JINJA_GREATER    ? order > 0
                                       : order >= 0;
        break;
    }
    if (r == 0)
        *ret_value = jinja_of_bool(yes != (op == JINJA_NOT_EQUAL || op == JINJA_NOT_IN));
    return r;
}

static int evaluate_binary(struct jinja_run *run, const struct jinja_node *node,
                           struct jinja_value *ret_value)
{
    struct jinja_value a, b;
    int r = jinja_evaluate(run, node->a, &a);
    if (r != 0)
        return r;
    if (node->op == JINJA_AND || node->op == JINJA_OR) { /* as in Python, the deciding operand is the value */
        if (jinja_is_true(a) != (node->op == JINJA_AND)) {
            *ret_value = a;
            return 0;
        }
        return jinja_evaluate(run, node->b, ret_value);
    }
    r = jinja_evaluate(run, node->b, &b);
    if (r != 0)
        return r;
    run->line = node->line;
    if (node->op >= JINJA_EQUAL && node->op <= JINJA_NOT_IN)
        return evaluate_comparison(run, node->op, a, b, ret_value);
    return jinja_calculate(run, node->op, a, b, ret_value);
}

static int evaluate_index(struct jinja_run *run, const struct jinja_node *node, struct jinja_value *ret_value)
{
    struct jinja_value object, key;
    int r = jinja_evaluate(run, node->a, &object);
    if (r == 0)
        r = jinja_evaluate(run, node->b, &key);
    run->line = node->line;
    if (r == 0 && key.type == JINJA_STR)
        return jinja_attribute(run, object, (struct bytes){key.string->data, key.string->len}, node,
                               ret_value);
    return r != 0 ? r : jinja_member_of(run, object, key, ret_value);
}

static int evaluate_slice(struct jinja_run *run, const struct jinja_node *node, struct jinja_value *ret_value)
{
    struct jinja_value object, from, to, step = jinja_of_int(1);
    int r = jinja_evaluate(run, node->a, &object);
    if (r == 0 && node->b)
        r = jinja_evaluate(run, node->b, &from);
    if (r == 0 && node->c)
        r = jinja_evaluate(run, node->c, &to);
    if (r == 0 && node->d)
        r = jinja_evaluate(run, node->d, &step);
    if (r != 0)
        return r;
    run->line = node->line;
    if (step.type == JINJA_NONE)
        step = jinja_of_int(1);
    if (step.type != JINJA_INT)
        return jinja_fail(run, -EINVAL, "slice step is %s", jinja_type_name(step));
    return jinja_slice(run, object, node->b ? &from : NULL, node->c ? &to : NULL, step.integer, ret_value);
}

static int evaluate_conditional(struct jinja_run *run, const struct jinja_node *node,
                                struct jinja_value *ret_value)
{
    struct jinja_value condition;
    int r = jinja_evaluate(run, node->b, &condition);
    if (r != 0)
        return r;
    if (jinja_is_true(condition))
        return jinja_evaluate(run, node->a, ret_value);
    if (node->c)
        return jinja_evaluate(run, node->c, ret_value);
    *ret_value = (struct jinja_value){.type = JINJA_UNDEFINED};
    return 0;
}

static int evaluate_attribute(struct jinja_run *run, const struct jinja_node *node,
                              struct jinja_value *ret_value)
{
    struct jinja_value object;
    int r = jinja_evaluate(run, node->a, &object);
    run->line = node->line;
    return r != 0 ? r : jinja_attribute(run, object, node->name, node, ret_value);
}

static int evaluate_filter(struct jinja_run *run, const struct jinja_node *node,
                           struct jinja_value *ret_value)
{
    struct jinja_value value;
    int r = jinja_evaluate(run, node->a, &value);
    return r != 0 ? r : apply_filter(run, node, value, ret_value);
}

static int evaluate_kind(struct jinja_run *run, const struct jinja_node *node, struct jinja_value *ret_value)
{
    switch (node->kind) {
    case JINJA_NODE_STRING:
        return jinja_of_bytes(run, node->name.data, node->name.len, NULL, ret_value);
    case JINJA_NODE_INTEGER:
        *ret_value = jinja_of_int(node->integer);
        return 0;
    case JINJA_NODE_REAL:
        *ret_value = jinja_of_real(node->real);
        return 0;
    case JINJA_NODE_BOOLEAN:
        *ret_value = jinja_of_bool(node->integer);
        return 0;
    case JINJA_NODE_NONE:
        *ret_value = (struct jinja_value){.type = JINJA_NONE};
        return 0;
    case JINJA_NODE_VARIABLE:
        return find_variable(run, node, ret_value);
    case JINJA_NODE_LIST:
        return evaluate_list(run, node, ret_value);
    case JINJA_NODE_DICT:
        return evaluate_dict(run, node, ret_value);
    case JINJA_NODE_ATTRIBUTE:
        return evaluate_attribute(run, node, ret_value);
    case JINJA_NODE_INDEX:
        return evaluate_index(run, node, ret_value);
    case JINJA_NODE_SLICE:
        return evaluate_slice(run, node, ret_value);
    case JINJA_NODE_CALL:
        return evaluate_call(run, node, NULL, ret_value);
    case JINJA_NODE_FILTER:
        return evaluate_filter(run, node, ret_value);
    case JINJA_NODE_TEST:
        return evaluate_test(run, node, ret_value);
    case JINJA_NODE_UNARY:
        return evaluate_unary(run, node, ret_value);
    case JINJA_NODE_BINARY:
        return evaluate_binary(run, node, ret_value);
    case JINJA_NODE_CONDITIONAL:
        return evaluate_conditional(run, node, ret_value);
    default:
        return jinja_fail(run, -EINVAL, "a statement where a value is expected");
    }
}

int jinja_evaluate(struct jinja_run *run, const struct jinja_node *node, struct jinja_value *ret_value)
{
    run->line = node->line;
    int r = jinja_spend(run, 1);
    if (r != 0)
        return r;
    if (run->depth >= JINJA_MAX_DEPTH)
        return jinja_fail(run, -EMSGSIZE, "nested more than %d deep", JINJA_MAX_DEPTH);
    run->depth++;
    r = evaluate_kind(run, node, ret_value);
    run->depth--;
    return r;
}
