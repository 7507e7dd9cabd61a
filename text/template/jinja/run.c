/* SPDX-License-Identifier: MIT */
/* Statements, and the run as a whole.
 *
 * Scopes are a chain: a loop's body, a macro and a with have their own, an if has none. A macro sees the
 * names where it was defined and its parameters, not the loops around its call; so scopes lie in the arena,
 * where a macro that outlives its loop still finds them. Output goes to the builder on top: macros, set
 * blocks and filter blocks put one of their own there and take it away again. A break or continue is a flag
 * that bodies obey by returning until the loop clears it. */

#include "text/template/jinja/evaluate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text/template/jinja/operators.h"
#include "text/template/jinja/print.h"

struct jinja_template {
    struct arena arena; /* holds the tree */
    struct jinja_node *tree;
    bool changes; /* lists can be changed */
};

/* Opens a scope inside `outer`; the caller makes it the run's, and takes it away again. */
static int new_scope(struct jinja_run *run, struct jinja_scope *outer, struct jinja_scope **ret_scope)
{
    struct jinja_scope *scope = jinja_alloc(run, sizeof *scope);
    if (!scope)
        return jinja_no_memory(run);
    scope->outer = outer;
    *ret_scope = scope;
    return 0;
}

static int set_name(struct jinja_run *run, struct jinja_scope *scope, struct bytes name,
                    struct jinja_value value)
{
    struct jinja_value key;
    int r = jinja_of_bytes(run, name.data, name.len, NULL, &key);
    return r != 0 ? r : jinja_dict_set(run, &scope->names, key, value);
}

/* Gives a value to a name, or to a member of a namespace. */
static int assign(struct jinja_run *run, const struct jinja_node *target, struct jinja_value value)
{
    if (target->kind == JINJA_NODE_VARIABLE)
        return set_name(run, run->scope, target->name, value);
    struct jinja_value object, key;
    int r = jinja_evaluate(run, target->a, &object);
    if (r != 0)
        return r;
    if (object.type != JINJA_DICT || !object.dict->is_namespace)
        return jinja_fail(run, -EINVAL, "\"%.*s\" is set in %s, which is not a namespace",
                          (int)(target->name.len < 64 ? target->name.len : 64),
                          (const char *)target->name.data, jinja_type_name(object));
    r = jinja_of_bytes(run, target->name.data, target->name.len, NULL, &key);
    return r != 0 ? r : jinja_dict_set(run, object.dict, key, value);
}

/* One value to one target, or the items of a list to several. */
static int assign_all(struct jinja_run *run, const struct jinja_node *node, struct jinja_value value)
{
    if (node->n_items == 1)
        return assign(run, node->items, value);
    const struct jinja_list *list;
    int r = jinja_items_of(run, value, &list);
    if (r == 0 && list->n != node->n_items)
        return jinja_fail(run, -EINVAL, "%zu values for %u names", list->n, node->n_items);
    size_t i = 0;
    for (const struct jinja_node *target = node->items; r == 0 && target; target = target->next)
        r = assign(run, target, list->items[i++]);
    return r;
}

/* Runs a body with its output caught as a string. */
static int capture(struct jinja_run *run, const struct jinja_node *body, struct jinja_value *ret_value)
{
    struct jinja_builder builder = {0}, *out = run->out;
    run->out = &builder;
    int r = jinja_run_body(run, body);
    run->out = out;
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

/* The items that the loop's filter lets through; `scope` is for its names. */
static int filter_items(struct jinja_run *run, const struct jinja_node *node, const struct jinja_list **list)
{
    struct jinja_value kept, yes;
    int r = jinja_new_list(run, 0, &kept);
    for (size_t i = 0; r == 0 && i < (*list)->n; i++) {
        run->scope->names.n = 0;
        r = assign_all(run, node, (*list)->items[i]);
        if (r == 0)
            r = jinja_evaluate(run, node->b, &yes);
        if (r == 0 && jinja_is_true(yes))
            r = jinja_list_add(run, kept.list, (*list)->items[i]);
    }
    if (r == 0)
        *list = kept.list;
    return r;
}

static int run_for(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value value;
    const struct jinja_list *list;
    int r = jinja_evaluate(run, node->a, &value);
    if (r == 0)
        r = jinja_items_of(run, value, &list);
    struct jinja_scope *scope = NULL, *outer = run->scope;
    struct jinja_loop *loop = r == 0 ? jinja_alloc(run, sizeof *loop) : NULL;
    if (r == 0 && !loop)
        r = jinja_no_memory(run);
    if (r == 0)
        r = new_scope(run, outer, &scope);
    if (r != 0)
        return r;
    run->scope = scope;
    if (node->b)
        r = filter_items(run, node, &list);
    loop->list = list;
    for (; r == 0 && loop->index < list->n; loop->index++) {
        scope->names.n = 0; /* what the last round set is gone */
        r = set_name(run, scope, BYTES_LITERAL("loop"),
                     (struct jinja_value){.type = JINJA_LOOP, .loop = loop});
        if (r == 0)
            r = assign_all(run, node, list->items[loop->index]);
        if (r == 0)
            r = jinja_run_body(run, node->body);
        bool leave = run->jump == JINJA_BREAK;
        run->jump = JINJA_GO_ON;
        if (leave)
            break;
    }
    run->scope = outer;
    if (r == 0 && list->n == 0)
        r = jinja_run_body(run, node->otherwise);
    return r;
}

/* The argument of this name, or NULL. */
static const struct jinja_value *find_named(const struct jinja_arguments *arguments, struct bytes name)
{
    for (size_t i = 0; i < arguments->n_named; i++) {
        const struct jinja_string *key = arguments->named[i].key.string;
        if (bytes_equal(name, (struct bytes){key->data, key->len}))
            return &arguments->named[i].value;
    }
    return NULL;
}

/* Are there parameters for all arguments? `caller`, which a call block gives, needs none. */
static int check_arguments(struct jinja_run *run, const struct jinja_node *macro,
                           const struct jinja_arguments *arguments)
{
    const int shown = (int)(macro->name.len < 64 ? macro->name.len : 64);
    if (arguments->n > macro->n_items)
        return jinja_fail(run, -EINVAL, "macro \"%.*s\" takes %u arguments, not %zu", shown,
                          (const char *)macro->name.data, macro->n_items, arguments->n);
    for (size_t i = 0; i < arguments->n_named; i++) {
        const struct jinja_node *p = macro->items;
        const struct jinja_string *name = arguments->named[i].key.string;
        while (p && !bytes_equal(p->name, (struct bytes){name->data, name->len}))
            p = p->next;
        if (!p && !jinja_string_is(arguments->named[i].key, "caller"))
            return jinja_fail(run, -EINVAL, "macro \"%.*s\" has no parameter \"%.*s\"", shown,
                              (const char *)macro->name.data, (int)(name->len < 64 ? name->len : 64),
                              name->data);
    }
    return 0;
}

int jinja_call_macro(struct jinja_run *run, const struct jinja_macro *macro,
                     const struct jinja_arguments *arguments, struct jinja_value *ret_value)
{
    const struct bytes caller_name = BYTES_LITERAL("caller");
    struct jinja_scope *scope = NULL, *outside = run->scope;
    int r = check_arguments(run, macro->node, arguments);
    if (r == 0)
        r = new_scope(run, macro->scope, &scope);
    if (r != 0)
        return r;
    run->scope = scope;
    const struct jinja_value *caller = find_named(arguments, caller_name);
    r = set_name(run, scope, caller_name, caller ? *caller : (struct jinja_value){.type = JINJA_UNDEFINED});
    size_t i = 0;
    for (const struct jinja_node *p = macro->node->items; r == 0 && p; p = p->next, i++) {
        struct jinja_value value = {.type = JINJA_UNDEFINED, .node = p};
        const struct jinja_value *given =
            i < arguments->n ? &arguments->items[i] : find_named(arguments, p->name);
        if (given)
            value = *given;
        else if (p->a)
            r = jinja_evaluate(run, p->a, &value);
        if (r == 0)
            r = set_name(run, scope, p->name, value);
    }
    if (r == 0)
        r = capture(run, macro->node->body, ret_value);
    run->scope = outside;
    return r;
}

static int new_macro(struct jinja_run *run, const struct jinja_node *node, struct jinja_value *ret_value)
{
    struct jinja_macro *macro = jinja_alloc(run, sizeof *macro);
    if (!macro)
        return jinja_no_memory(run);
    *macro = (struct jinja_macro){node, run->scope};
    *ret_value = (struct jinja_value){.type = JINJA_MACRO, .macro = macro};
    return 0;
}

static int run_macro(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value macro;
    int r = new_macro(run, node, &macro);
    return r != 0 ? r : set_name(run, run->scope, node->name, macro);
}

static int run_call_block(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value caller, text;
    int r = new_macro(run, node, &caller);
    if (r == 0)
        r = jinja_call_with(run, node->a, caller, &text);
    return r != 0 ? r : jinja_append_value(run, run->out, text);
}

/* The values belong to the scope around. */
static int run_with(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_scope *scope = NULL, *outer = run->scope;
    int r = new_scope(run, outer, &scope);
    for (const struct jinja_node *p = node->items; r == 0 && p; p = p->next) {
        struct jinja_value value;
        r = jinja_evaluate(run, p->a, &value);
        if (r == 0)
            r = set_name(run, scope, p->name, value);
    }
    if (r != 0)
        return r;
    run->scope = scope;
    r = jinja_run_body(run, node->body);
    run->scope = outer;
    return r;
}

static int run_block(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value text;
    int r = capture(run, node->body, &text);
    if (r == 0 && node->a)
        r = jinja_filter_text(run, node->a, text, &text);
    if (r != 0)
        return r;
    return node->kind == JINJA_NODE_SET_BLOCK ? assign(run, node->items, text)
                                              : jinja_append_value(run, run->out, text);
}

static int run_if(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value condition;
    int r = jinja_evaluate(run, node->a, &condition);
    return r != 0 ? r : jinja_run_body(run, jinja_is_true(condition) ? node->body : node->otherwise);
}

static int run_statement(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value value;
    int r;
    switch (node->kind) {
    case JINJA_NODE_TEXT:
        return jinja_append(run, run->out, node->name.data, node->name.len, NULL);
    case JINJA_NODE_OUTPUT:
        r = jinja_evaluate(run, node->a, &value);
        return r != 0 ? r : jinja_append_value(run, run->out, value);
    case JINJA_NODE_IF:
        return run_if(run, node);
    case JINJA_NODE_FOR:
        return run_for(run, node);
    case JINJA_NODE_SET:
        r = jinja_evaluate(run, node->a, &value);
        return r != 0 ? r : assign_all(run, node, value);
    case JINJA_NODE_SET_BLOCK:
    case JINJA_NODE_FILTER_BLOCK:
        return run_block(run, node);
    case JINJA_NODE_MACRO:
        return run_macro(run, node);
    case JINJA_NODE_CALL_BLOCK:
        return run_call_block(run, node);
    case JINJA_NODE_WITH:
        return run_with(run, node);
    case JINJA_NODE_GROUP:
        return jinja_run_body(run, node->body);
    case JINJA_NODE_BREAK:
    case JINJA_NODE_CONTINUE:
        run->jump = node->kind == JINJA_NODE_BREAK ? JINJA_BREAK : JINJA_CONTINUE;
        return 0;
    default:
        return jinja_fail(run, -EINVAL, "a value where a statement is expected");
    }
}

int jinja_run_body(struct jinja_run *run, const struct jinja_node *chain)
{
    if (run->depth >= JINJA_MAX_DEPTH)
        return jinja_fail(run, -EMSGSIZE, "nested more than %d deep", JINJA_MAX_DEPTH);
    run->depth++;
    int r = 0;
    for (const struct jinja_node *node = chain; r == 0 && node && run->jump == JINJA_GO_ON;
         node = node->next) {
        run->line = node->line;
        r = jinja_spend(run, 1);
        if (r == 0)
            r = run_statement(run, node);
    }
    run->depth--;
    return r;
}

int jinja_template_new(struct bytes source, struct jinja_template **ret_template, struct error *err)
{
    if (source.len > JINJA_MAX_SOURCE)
        return error_set(err, -EMSGSIZE, "the template has %zu bytes, at most %d are allowed", source.len,
                         JINJA_MAX_SOURCE);
    struct jinja_template *jinja = calloc(1, sizeof *jinja);
    if (!jinja)
        return error_set(err, -ENOMEM, "not enough memory for the template");
    jinja->arena.limit = SIZE_MAX / 2; /* the source bounds it: less than 400 bytes for each of its bytes */
    int r = jinja_parse(source, &jinja->arena, &jinja->tree, err);
    if (r < 0) {
        jinja_template_free(jinja);
        return r;
    }
    *ret_template = jinja;
    return 0;
}

struct jinja_template *jinja_template_free(struct jinja_template *jinja)
{
    if (!jinja)
        return NULL;
    arena_deinit(&jinja->arena);
    free(jinja);
    return NULL;
}

/* Bytes of all strings in a JSON value, to measure the bound on memory by. */
static size_t json_bytes(const json_t *json, unsigned depth)
{
    size_t bytes = 32, i;
    json_t *item;
    const char *key;
    if (depth > JINJA_MAX_NESTING)
        return bytes;
    if (json_is_string(json))
        return bytes + json_string_length(json);
    /* Neither loop does anything for a value of the other kind. */
    json_array_foreach(json, i, item)
    {
        bytes += json_bytes(item, depth + 1);
    }
    json_object_foreach((json_t *)json, key, item)
    {
        bytes += strlen(key) + json_bytes(item, depth + 1);
    }
    return bytes;
}

static int copy_out(const struct jinja_builder *out, struct buffer *ret_text, struct buffer *ret_marks)
{
    int r = buffer_reserve(ret_text, out->len);
    if (r == 0)
        r = buffer_reserve(ret_marks, out->len);
    if (r < 0 || out->len == 0)
        return r;
    memcpy(ret_text->data + ret_text->len, out->data, out->len);
    if (out->marks)
        memcpy(ret_marks->data + ret_marks->len, out->marks, out->len);
    else
        memset(ret_marks->data + ret_marks->len, 0, out->len);
    ret_text->len += out->len;
    ret_marks->len += out->len;
    return 0;
}

void jinja_template_permit_changes(struct jinja_template *jinja)
{
    jinja->changes = true;
}

int jinja_render(const struct jinja_template *jinja, const struct jinja_variable *variables, size_t n,
                 const struct tm *date, struct buffer *ret_text, struct buffer *ret_marks, struct error *err)
{
    enum { BASE_MEMORY = 64 << 20, MEMORY_PER_BYTE = 64 };
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += json_bytes(variables[i].value, 0);
    struct jinja_builder out = {0};
    struct jinja_run run = {.err = err, .line = 1, .out = &out, .date = *date, .changes = jinja->changes};
    run.arena.limit = BASE_MEMORY + (bytes < SIZE_MAX / 256 ? bytes : SIZE_MAX / 256) * MEMORY_PER_BYTE;
    run.scope = &run.globals;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct jinja_value value;
        r = jinja_of_json(&run, variables[i].value, variables[i].from_user, 0, &value);
        if (r == 0)
            r = set_name(&run, &run.globals, bytes_of_string(variables[i].name), value);
    }
    if (r == 0)
        r = jinja_run_body(&run, jinja->tree);
    if (r == 0 && copy_out(&out, ret_text, ret_marks) < 0)
        r = error_set(err, -ENOMEM, "not enough memory for the text of a chat");
    arena_deinit(&run.arena);
    return r;
}
