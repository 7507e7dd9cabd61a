/* SPDX-License-Identifier: MIT */
/* Statements: text, output, and what stands between {% and %}.
 *
 * A body is a chain of statements up to one of the words that may end it; which word it was decides how the
 * statement goes on (if … elif … else … endif). Expressions are parse_expression.c's. */

#include "text/template/jinja/parser.h"

#include <errno.h>

static int expect_tag_end(struct parser *parser)
{
    if (parser_token(parser)->kind != JINJA_TAG_END)
        return parser_fails(parser, "\"%}\"");
    parser->at++;
    return 0;
}

static int parse_statement(struct parser *parser, struct jinja_node **ret_node);

/* Statements up to a tag that begins with one of `ends` (a NULL-terminated list), whose word is stepped over.
 * Without `ends`: up to the end of the template. */
static int parse_body(struct parser *parser, const char *const *ends, struct jinja_node **ret_chain,
                      const char **ret_end)
{
    struct jinja_node *chain = NULL, **tail = &chain;
    uint32_t line = parser_token(parser)->line;
    for (;;) {
        const struct jinja_token *token = parser_token(parser);
        if (token->kind == JINJA_END) {
            if (ends)
                return error_set(parser->err, -EINVAL, "line %u: \"%s\" is missing", line, ends[0]);
            break;
        }
        if (token->kind == JINJA_TAG_BEGIN && ends) {
            parser->at++;
            for (size_t i = 0; ends[i]; i++)
                if (parser_takes(parser, JINJA_NAME, ends[i])) {
                    *ret_end = ends[i];
                    *ret_chain = chain;
                    return 0;
                }
            parser->at--;
        }
        int r = parse_statement(parser, tail);
        if (r != 0)
            return r;
        tail = &(*tail)->next;
    }
    *ret_chain = chain;
    return 0;
}

/* A body that ends with one word and nothing else in its tag. */
static int parse_simple_body(struct parser *parser, const char *end, struct jinja_node **ret_chain)
{
    const char *const ends[] = {end, NULL};
    const char *which;
    int r = expect_tag_end(parser);
    if (r == 0)
        r = parse_body(parser, ends, ret_chain, &which);
    /* endmacro, endblock and the like may repeat a name */
    if (r == 0 && parser_token(parser)->kind == JINJA_NAME)
        parser->at++;
    return r != 0 ? r : expect_tag_end(parser);
}

/* Behind `if` or `elif`. */
static int parse_if(struct parser *parser, struct jinja_node *node)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL}, *const last[] = {"endif", NULL};
    const char *end;
    node->kind = JINJA_NODE_IF;
    int r = parse_expression(parser, &node->a);
    if (r == 0)
        r = expect_tag_end(parser);
    if (r == 0)
        r = parse_body(parser, ends, &node->body, &end);
    if (r != 0)
        return r;
    if (end == ends[1]) {
        r = parser_node(parser, JINJA_NODE_IF, &node->otherwise);
        if (r == 0)
            r = parser_descend(parser);
        if (r != 0)
            return r;
        r = parse_if(parser, node->otherwise);
        parser->depth--;
        return r;
    }
    if (end == ends[2]) {
        r = expect_tag_end(parser);
        if (r == 0)
            r = parse_body(parser, last, &node->otherwise, &end);
    }
    return r != 0 ? r : expect_tag_end(parser);
}

/* a, b or ns.a: what a for or set gives values to. */
static int parse_targets(struct parser *parser, bool attributes, struct jinja_node *node)
{
    struct jinja_node **tail = &node->items;
    bool bracket = parser_takes(parser, JINJA_OPERATOR, "(");
    do {
        const struct jinja_token *name = parser_token(parser);
        if (name->kind != JINJA_NAME)
            return parser_fails(parser, "a name");
        int r = parser_node(parser, JINJA_NODE_VARIABLE, tail);
        if (r != 0)
            return r;
        (*tail)->name = name->text;
        parser->at++;
        if (attributes && parser_takes(parser, JINJA_OPERATOR, ".")) {
            struct jinja_node *object = *tail;
            r = parser_node(parser, JINJA_NODE_ATTRIBUTE, tail);
            if (r != 0)
                return r;
            if (parser_token(parser)->kind != JINJA_NAME)
                return parser_fails(parser, "a name after the point");
            (*tail)->a = object;
            (*tail)->name = parser_token(parser)->text;
            parser->at++;
        }
        node->n_items++;
        tail = &(*tail)->next;
    } while (parser_takes(parser, JINJA_OPERATOR, ","));
    return bracket ? parser_expects(parser, JINJA_OPERATOR, ")") : 0;
}

static int parse_for(struct parser *parser, struct jinja_node *node)
{
    static const char *const ends[] = {"endfor", "else", NULL}, *const last[] = {"endfor", NULL};
    const char *end;
    node->kind = JINJA_NODE_FOR;
    int r = parse_targets(parser, false, node);
    if (r == 0)
        r = parser_expects(parser, JINJA_NAME, "in");
    if (r == 0)
        r = parse_unconditional(parser, &node->a);
    if (r == 0 && parser_takes(parser, JINJA_NAME, "if"))
        r = parse_expression(parser, &node->b);
    if (r == 0 && parser_sees(parser, JINJA_NAME, "recursive"))
        return error_set(parser->err, -EINVAL, "line %u: recursive loops are not supported", node->line);
    if (r == 0)
        r = expect_tag_end(parser);
    parser->loops++;
    if (r == 0)
        r = parse_body(parser, ends, &node->body, &end);
    parser->loops--;
    if (r == 0 && end == ends[1]) {
        r = expect_tag_end(parser);
        if (r == 0)
            r = parse_body(parser, last, &node->otherwise, &end);
    }
    return r != 0 ? r : expect_tag_end(parser);
}

/* a, b, c without brackets, as set accepts it: a tuple if there is a comma. */
static int parse_tuple(struct parser *parser, struct jinja_node **ret_node)
{
    int r = parse_expression(parser, ret_node);
    if (r < 0 || !parser_sees(parser, JINJA_OPERATOR, ","))
        return r;
    struct jinja_node *list;
    r = parser_node(parser, JINJA_NODE_LIST, &list);
    if (r != 0)
        return r;
    list->integer = true;
    list->items = *ret_node;
    list->n_items = 1;
    struct jinja_node **tail = &list->items->next;
    while (r == 0 && parser_takes(parser, JINJA_OPERATOR, ",")) {
        if (parser_token(parser)->kind == JINJA_TAG_END)
            break;
        r = parse_expression(parser, tail);
        if (r == 0)
            tail = &(*tail)->next;
        list->n_items++;
    }
    *ret_node = list;
    return r;
}

static int parse_set(struct parser *parser, struct jinja_node *node)
{
    int r = parse_targets(parser, true, node);
    if (r != 0)
        return r;
    if (parser_takes(parser, JINJA_OPERATOR, "=")) {
        node->kind = JINJA_NODE_SET;
        r = parse_tuple(parser, &node->a);
        return r != 0 ? r : expect_tag_end(parser);
    }
    node->kind = JINJA_NODE_SET_BLOCK;
    if (node->n_items != 1)
        return parser_fails(parser, "\"=\"");
    r = parse_filters(parser, NULL, &node->a);
    return r != 0 ? r : parse_simple_body(parser, "endset", &node->body);
}

/* (a, b=1): the parameters of a macro or of a call block. */
static int parse_parameters(struct parser *parser, struct jinja_node *node)
{
    int r = parser_expects(parser, JINJA_OPERATOR, "(");
    struct jinja_node **tail = &node->items;
    while (r == 0 && !parser_takes(parser, JINJA_OPERATOR, ")")) {
        if (parser_token(parser)->kind != JINJA_NAME)
            return parser_fails(parser, "the name of a parameter");
        r = parser_node(parser, JINJA_NODE_NAMED, tail);
        if (r != 0)
            break;
        (*tail)->name = parser_token(parser)->text;
        parser->at++;
        if (parser_takes(parser, JINJA_OPERATOR, "="))
            r = parse_expression(parser, &(*tail)->a);
        tail = &(*tail)->next;
        node->n_items++;
        if (r == 0 && !parser_takes(parser, JINJA_OPERATOR, ",")) {
            r = parser_expects(parser, JINJA_OPERATOR, ")");
            break;
        }
    }
    return r;
}

/* A body that no break leaves, whatever loop stands around it. */
static int parse_closed_body(struct parser *parser, const char *end, struct jinja_node **ret_chain)
{
    unsigned loops = parser->loops;
    parser->loops = 0;
    int r = parse_simple_body(parser, end, ret_chain);
    parser->loops = loops;
    return r;
}

static int parse_macro(struct parser *parser, struct jinja_node *node)
{
    node->kind = JINJA_NODE_MACRO;
    if (parser_token(parser)->kind != JINJA_NAME)
        return parser_fails(parser, "the name of the macro");
    node->name = parser_token(parser)->text;
    parser->at++;
    int r = parse_parameters(parser, node);
    return r != 0 ? r : parse_closed_body(parser, "endmacro", &node->body);
}

static int parse_call_block(struct parser *parser, struct jinja_node *node)
{
    node->kind = JINJA_NODE_CALL_BLOCK;
    node->name = BYTES_LITERAL("caller");
    int r = parser_sees(parser, JINJA_OPERATOR, "(") ? parse_parameters(parser, node) : 0;
    if (r == 0)
        r = parse_expression(parser, &node->a);
    if (r == 0 && node->a->kind != JINJA_NODE_CALL)
        r = parser_fails(parser, "a call");
    return r != 0 ? r : parse_closed_body(parser, "endcall", &node->body);
}

/* a = 1, b = 2 */
static int parse_with(struct parser *parser, struct jinja_node *node)
{
    node->kind = JINJA_NODE_WITH;
    struct jinja_node **tail = &node->items;
    int r = 0;
    while (r == 0 && parser_token(parser)->kind == JINJA_NAME) {
        r = parser_node(parser, JINJA_NODE_NAMED, tail);
        if (r != 0)
            break;
        (*tail)->name = parser_token(parser)->text;
        parser->at++;
        r = parser_expects(parser, JINJA_OPERATOR, "=");
        if (r == 0)
            r = parse_expression(parser, &(*tail)->a);
        tail = &(*tail)->next;
        if (r == 0 && !parser_takes(parser, JINJA_OPERATOR, ","))
            break;
    }
    return r != 0 ? r : parse_simple_body(parser, "endwith", &node->body);
}

/* A named block: without inheritance, its body where it stands. */
static int parse_block(struct parser *parser, struct jinja_node *node)
{
    node->kind = JINJA_NODE_WITH;
    if (parser_token(parser)->kind != JINJA_NAME)
        return parser_fails(parser, "the name of the block");
    parser->at++;
    return parse_closed_body(parser, "endblock", &node->body);
}

static int parse_filter_block(struct parser *parser, struct jinja_node *node)
{
    node->kind = JINJA_NODE_FILTER_BLOCK;
    int r = parse_filter(parser, NULL, &node->a);
    if (r == 0)
        r = parse_filters(parser, node->a, &node->a);
    return r != 0 ? r : parse_simple_body(parser, "endfilter", &node->body);
}

static int parse_jump(struct parser *parser, struct jinja_node *node, enum jinja_node_kind kind)
{
    node->kind = kind;
    if (parser->loops == 0)
        return error_set(parser->err, -EINVAL, "line %u: %s outside of a loop", node->line,
                         kind == JINJA_NODE_BREAK ? "break" : "continue");
    return expect_tag_end(parser);
}

/* Behind {%. */
static int parse_tag(struct parser *parser, struct jinja_node *node)
{
    const struct jinja_token *word = parser_token(parser);
    if (parser_takes(parser, JINJA_NAME, "if"))
        return parse_if(parser, node);
    if (parser_takes(parser, JINJA_NAME, "for"))
        return parse_for(parser, node);
    if (parser_takes(parser, JINJA_NAME, "set"))
        return parse_set(parser, node);
    if (parser_takes(parser, JINJA_NAME, "macro"))
        return parse_macro(parser, node);
    if (parser_takes(parser, JINJA_NAME, "call"))
        return parse_call_block(parser, node);
    if (parser_takes(parser, JINJA_NAME, "with"))
        return parse_with(parser, node);
    if (parser_takes(parser, JINJA_NAME, "block"))
        return parse_block(parser, node);
    if (parser_takes(parser, JINJA_NAME, "filter"))
        return parse_filter_block(parser, node);
    if (parser_takes(parser, JINJA_NAME, "break"))
        return parse_jump(parser, node, JINJA_NODE_BREAK);
    if (parser_takes(parser, JINJA_NAME, "continue"))
        return parse_jump(parser, node, JINJA_NODE_CONTINUE);
    if (parser_takes(parser, JINJA_NAME, "generation")) { /* marks the assistant's part, for training */
        node->kind = JINJA_NODE_GROUP;
        return parse_simple_body(parser, "endgeneration", &node->body);
    }
    if (word->kind != JINJA_NAME)
        return parser_fails(parser, "a statement");
    int shown = (int)(word->text.len < 40 ? word->text.len : 40);
    return error_set(parser->err, -EINVAL, "line %u: the statement \"%.*s\" is not supported here",
                     word->line, shown, (const char *)word->text.data);
}

static int parse_statement(struct parser *parser, struct jinja_node **ret_node)
{
    struct jinja_node *node;
    int r = parser_node(parser, JINJA_NODE_TEXT, &node);
    if (r == 0)
        r = parser_descend(parser);
    if (r != 0)
        return r;
    enum jinja_token_kind kind = parser_token(parser)->kind;
    if (kind == JINJA_TEXT) {
        node->name = parser_token(parser)->text;
        parser->at++;
    } else if (kind == JINJA_OUTPUT_BEGIN) {
        node->kind = JINJA_NODE_OUTPUT;
        parser->at++;
        r = parse_tuple(parser, &node->a);
        if (r == 0 && parser_token(parser)->kind != JINJA_OUTPUT_END)
            r = parser_fails(parser, "\"}}\"");
        parser->at++;
    } else {
        parser->at++;
        r = parse_tag(parser, node);
    }
    parser->depth--;
    if (r == 0)
        *ret_node = node;
    return r;
}

int jinja_parse(struct bytes source, struct arena *arena, struct jinja_node **ret_tree, struct error *err)
{
    struct parser parser = {.arena = arena, .err = err};
    int r = jinja_lex(source, arena, &parser.tokens, err);
    return r != 0 ? r : parse_body(&parser, NULL, ret_tree, NULL);
}
