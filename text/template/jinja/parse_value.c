/* SPDX-License-Identifier: MIT */
/* Values in expressions: literals, names, brackets, and what may stand behind a value: members, indices,
 * slices, calls, filters and tests. */

#include "text/template/jinja/parser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Appends expressions up to a closing bracket, which is stepped over; a comma may stand before it. */
static int parse_items(struct parser *parser, const char *close, struct jinja_node *parent)
{
    struct jinja_node **tail = &parent->items;
    while (!parser_takes_operator(parser, close)) {
        int r = parse_expression(parser, tail);
        if (r != 0)
            return r;
        tail = &(*tail)->next;
        parent->n_items++;
        if (!parser_takes_operator(parser, ","))
            return parser_expects(parser, JINJA_OPERATOR, close);
    }
    return 0;
}

/* {key: value, …}, behind the opening brace. */
static int parse_dict(struct parser *parser, struct jinja_node *dict)
{
    struct jinja_node **tail = &dict->items;
    while (!parser_takes_operator(parser, "}")) {
        int r = parse_expression(parser, tail);
        if (r == 0)
            r = parser_expects(parser, JINJA_OPERATOR, ":");
        if (r == 0)
            r = parse_expression(parser, &(*tail)->next);
        if (r != 0)
            return r;
        tail = &(*tail)->next->next;
        dict->n_items += 2;
        if (!parser_takes_operator(parser, ","))
            return parser_expects(parser, JINJA_OPERATOR, "}");
    }
    return 0;
}

/* (a, b, name=c) behind the opening bracket: arguments of a call, filter or test. */
static int parse_arguments(struct parser *parser, struct jinja_node *call)
{
    struct jinja_node **tail = &call->items;
    while (!parser_takes_operator(parser, ")")) {
        const struct jinja_token *next = parser_token(parser);
        int r;
        if (next->kind == JINJA_NAME && next[1].kind == JINJA_OPERATOR &&
            bytes_equal(next[1].text, BYTES_LITERAL("="))) {
            r = parser_node(parser, JINJA_NODE_NAMED, tail);
            if (r != 0)
                return r;
            (*tail)->name = next->text;
            parser->at += 2;
            r = parse_expression(parser, &(*tail)->a);
        } else {
            r = parse_expression(parser, tail);
        }
        if (r != 0)
            return r;
        tail = &(*tail)->next;
        call->n_items++;
        if (!parser_takes_operator(parser, ","))
            return parser_expects(parser, JINJA_OPERATOR, ")");
    }
    return 0;
}

static int parse_number(struct parser *parser, struct jinja_node **ret_node)
{
    const struct jinja_token *token = parser_token(parser);
    bool real = token->kind == JINJA_REAL;
    char digits[64];
    size_t n = 0;
    for (size_t i = 0; i < token->text.len && n < sizeof digits - 1; i++)
        if (((const char *)token->text.data)[i] != '_')
            digits[n++] = ((const char *)token->text.data)[i];
    digits[n] = '\0';
    int r = parser_node(parser, real ? JINJA_NODE_REAL : JINJA_NODE_INTEGER, ret_node);
    if (r != 0)
        return r;
    errno = 0;
    if (real)
        (*ret_node)->real = strtod(digits, NULL);
    else
        (*ret_node)->integer = strtoll(digits, NULL, 10);
    if (n == sizeof digits - 1 || (errno == ERANGE && !real))
        return error_set(parser->err, -EINVAL, "line %u: the number %s is too large", token->line, digits);
    parser->at++;
    return 0;
}

/* Strings that follow one another are one string. */
static int parse_string(struct parser *parser, struct jinja_node **ret_node)
{
    int r = parser_node(parser, JINJA_NODE_STRING, ret_node);
    if (r != 0)
        return r;
    size_t first = parser->at, len = 0;
    for (; parser_token(parser)->kind == JINJA_STRING; parser->at++)
        len += parser_token(parser)->text.len;
    if (parser->at == first + 1) {
        (*ret_node)->name = parser->tokens.items[first].text;
        return 0;
    }
    char *text = arena_take(parser->arena, 1, len + 1);
    if (!text)
        return error_set(parser->err, -ENOMEM, "not enough memory for the template");
    len = 0;
    for (size_t i = first; i < parser->at; i++) {
        struct bytes part = parser->tokens.items[i].text;
        memcpy(text + len, part.data, part.len);
        len += part.len;
    }
    (*ret_node)->name = (struct bytes){text, len};
    return 0;
}

static int parse_name(struct parser *parser, struct jinja_node **ret_node)
{
    static const struct {
        const char *name;
        enum jinja_node_kind kind;
        int value;
    } constants[] = {
        {"true", JINJA_NODE_BOOLEAN, 1},  {"True", JINJA_NODE_BOOLEAN, 1}, {"false", JINJA_NODE_BOOLEAN, 0},
        {"False", JINJA_NODE_BOOLEAN, 0}, {"none", JINJA_NODE_NONE, 0},    {"None", JINJA_NODE_NONE, 0},
    };
    struct bytes name = parser_token(parser)->text;
    enum jinja_node_kind kind = JINJA_NODE_VARIABLE;
    int value = 0;
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        if (bytes_equal(name, bytes_of_string(constants[i].name))) {
            kind = constants[i].kind;
            value = constants[i].value;
        }
    int r = parser_node(parser, kind, ret_node);
    if (r != 0)
        return r;
    if (kind == JINJA_NODE_BOOLEAN)
        (*ret_node)->integer = value;
    (*ret_node)->name = name;
    parser->at++;
    return 0;
}

/* (a), (a, b), (): behind the opening bracket. */
static int parse_bracket(struct parser *parser, struct jinja_node **ret_node)
{
    struct jinja_node *list = NULL;
    if (parser_takes_operator(parser, ")")) {
        int r = parser_node(parser, JINJA_NODE_LIST, ret_node);
        if (r == 0)
            (*ret_node)->integer = true;
        return r;
    }
    struct jinja_node *first;
    int r = parse_expression(parser, &first);
    if (r == 0 && parser_takes_operator(parser, ",")) {
        r = parser_node(parser, JINJA_NODE_LIST, &list);
        if (r == 0)
            r = parse_items(parser, ")", list);
        if (r != 0)
            return r;
        list->integer = true;
        first->next = list->items;
        list->items = first;
        list->n_items++;
        *ret_node = list;
        return 0;
    }
    if (r == 0)
        r = parser_expects(parser, JINJA_OPERATOR, ")");
    if (r == 0)
        *ret_node = first;
    return r;
}

int parse_primary(struct parser *parser, struct jinja_node **ret_node)
{
    switch (parser_token(parser)->kind) {
    case JINJA_NAME:
        return parse_name(parser, ret_node);
    case JINJA_STRING:
        return parse_string(parser, ret_node);
    case JINJA_INTEGER:
    case JINJA_REAL:
        return parse_number(parser, ret_node);
    default:
        break;
    }
    if (parser_sees_operator(parser, "[") || parser_sees_operator(parser, "{")) {
        bool list = parser_sees_operator(parser, "[");
        int r = parser_node(parser, list ? JINJA_NODE_LIST : JINJA_NODE_DICT, ret_node);
        parser->at++;
        if (r == 0)
            r = list ? parse_items(parser, "]", *ret_node) : parse_dict(parser, *ret_node);
        return r;
    }
    if (parser_takes_operator(parser, "("))
        return parse_bracket(parser, ret_node);
    return parser_fails(parser, "a value");
}

/* [index] or [from:to:step], behind the opening bracket. */
static int parse_subscript(struct parser *parser, struct jinja_node *value, struct jinja_node **ret_node)
{
    struct jinja_node *parts[3] = {NULL}, *node;
    int n = 0, r = parser_node(parser, JINJA_NODE_INDEX, &node);
    while (r == 0 && !parser_sees_operator(parser, "]")) {
        if (parser_takes_operator(parser, ":")) {
            if (++n > 2)
                return parser_fails(parser, "\"]\"");
        } else if (parts[n]) {
            return parser_fails(parser, "\"]\"");
        } else {
            r = parse_expression(parser, &parts[n]);
        }
    }
    if (r == 0)
        r = parser_expects(parser, JINJA_OPERATOR, "]");
    if (r != 0)
        return r;
    if (n == 0 && !parts[0])
        return parser_fails(parser, "an index");
    node->kind = n > 0 ? JINJA_NODE_SLICE : JINJA_NODE_INDEX;
    node->a = value;
    node->b = parts[0];
    node->c = parts[1];
    node->d = parts[2];
    *ret_node = node;
    return 0;
}

int parse_postfix(struct parser *parser, struct jinja_node *value, struct jinja_node **ret_node)
{
    for (;;) {
        struct jinja_node *node;
        int r = 0;
        if (parser_takes_operator(parser, ".")) {
            const struct jinja_token *name = parser_token(parser);
            if (name->kind != JINJA_NAME && name->kind != JINJA_INTEGER)
                return parser_fails(parser, "a name after the point");
            r = parser_node(parser, JINJA_NODE_ATTRIBUTE, &node);
            if (r != 0)
                return r;
            if (name->kind == JINJA_INTEGER) {
                node->kind = JINJA_NODE_INDEX;
                r = parse_number(parser, &node->b);
            } else {
                node->name = name->text;
                parser->at++;
            }
            node->a = value;
        } else if (parser_takes_operator(parser, "[")) {
            r = parse_subscript(parser, value, &node);
        } else if (parser_takes_operator(parser, "(")) {
            r = parser_node(parser, JINJA_NODE_CALL, &node);
            if (r == 0) {
                node->a = value;
                r = parse_arguments(parser, node);
            }
        } else {
            *ret_node = value;
            return 0;
        }
        if (r != 0)
            return r;
        value = node;
    }
}

int parse_filter(struct parser *parser, struct jinja_node *value, struct jinja_node **ret_node)
{
    if (parser_token(parser)->kind != JINJA_NAME)
        return parser_fails(parser, "the name of a filter");
    struct jinja_node *node;
    int r = parser_node(parser, JINJA_NODE_FILTER, &node);
    if (r != 0)
        return r;
    node->a = value;
    node->name = parser_token(parser)->text;
    parser->at++;
    if (parser_takes_operator(parser, "("))
        r = parse_arguments(parser, node);
    if (r == 0)
        *ret_node = node;
    return r;
}

/* Does an argument without brackets stand behind the name of a test: `is divisibleby 3`? */
static bool sees_test_argument(const struct parser *parser)
{
    static const char *const ends[] = {"else", "or", "and", "if", "is", "not", "in"};
    const struct jinja_token *token = parser_token(parser);
    if (token->kind == JINJA_NAME) {
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
            if (bytes_equal(token->text, bytes_of_string(ends[i])))
                return false;
        return true;
    }
    return token->kind == JINJA_STRING || token->kind == JINJA_INTEGER || token->kind == JINJA_REAL ||
           parser_sees_operator(parser, "[") || parser_sees_operator(parser, "{");
}

/* Behind `is`. */
static int parse_test(struct parser *parser, struct jinja_node *value, struct jinja_node **ret_node)
{
    struct jinja_node *negation = NULL, *node;
    int r = 0;
    if (parser_sees(parser, JINJA_NAME, "not")) {
        r = parser_node(parser, JINJA_NODE_UNARY, &negation);
        parser->at++;
    }
    if (r == 0)
        r = parser_node(parser, JINJA_NODE_TEST, &node);
    if (r != 0)
        return r;
    if (parser_token(parser)->kind != JINJA_NAME)
        return parser_fails(parser, "the name of a test");
    node->a = value;
    node->name = parser_token(parser)->text;
    parser->at++;
    if (parser_takes_operator(parser, "(")) {
        r = parse_arguments(parser, node);
    } else if (sees_test_argument(parser)) {
        struct jinja_node *argument;
        r = parser_descend(parser);
        if (r != 0)
            return r;
        r = parse_primary(parser, &argument);
        parser->depth--;
        if (r == 0)
            r = parse_postfix(parser, argument, &node->items);
        node->n_items = 1;
    }
    if (r != 0)
        return r;
    if (negation) {
        negation->op = JINJA_NOT;
        negation->a = node;
        node = negation;
    }
    *ret_node = node;
    return 0;
}

int parse_filters(struct parser *parser, struct jinja_node *value, struct jinja_node **ret_node)
{
    for (;;) {
        int r;
        if (parser_takes_operator(parser, "|"))
            r = parse_filter(parser, value, &value);
        else if (value && parser_takes(parser, JINJA_NAME, "is"))
            r = parse_test(parser, value, &value);
        else if (value && parser_sees_operator(parser, "("))
            r = parse_postfix(parser, value, &value);
        else
            break;
        if (r != 0)
            return r;
    }
    *ret_node = value;
    return 0;
}
