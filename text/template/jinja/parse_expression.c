/* SPDX-License-Identifier: MIT */
/* Expressions: operators, by recursive descent, one function for each level of binding:
 *
 *   conditional  or  and  not  comparison  sum  ~  product  power  unary
 *
 * and below them parse_value.c, with filters and tests (`| name`, `is name`) bound to a unary expression, as
 * Jinja does it. Chains of one level are loops, so depth grows only with brackets and prefixes; the limit on
 * it keeps a hostile template from ending the C stack. */

#include "text/template/jinja/parser.h"

static int parse_unary(struct parser *parser, bool with_filters, struct jinja_node **ret_node)
{
    int r = parser_descend(parser);
    if (r != 0)
        return r;
    struct jinja_node *node;
    if (parser_sees_operator(parser, "-") || parser_sees_operator(parser, "+")) {
        r = parser_node(parser, JINJA_NODE_UNARY, &node);
        if (r == 0) {
            node->op = parser_sees_operator(parser, "-") ? JINJA_NEGATE : JINJA_PLUS;
            parser->at++;
            r = parse_unary(parser, false, &node->a);
        }
    } else {
        r = parse_primary(parser, &node);
    }
    if (r == 0)
        r = parse_postfix(parser, node, &node);
    if (r == 0 && with_filters)
        r = parse_filters(parser, node, &node);
    parser->depth--;
    if (r == 0)
        *ret_node = node;
    return r;
}

struct level {
    const char *symbols[4];
    enum jinja_operator ops[4];
};

static const struct level levels[] = {
    {{"**"}, {JINJA_POWER}},
    {{"*", "/", "//", "%"}, {JINJA_MULTIPLY, JINJA_DIVIDE, JINJA_FLOOR_DIVIDE, JINJA_MODULO}},
    {{"~"}, {JINJA_CONCAT}},
    {{"+", "-"}, {JINJA_ADD, JINJA_SUBTRACT}},
};

enum { LEVEL_SUM = 3 };

static int make_binary(struct parser *parser, enum jinja_operator op, struct jinja_node *left,
                       int (*parse_right)(struct parser *, struct jinja_node **),
                       struct jinja_node **ret_node)
{
    struct jinja_node *node;
    int r = parser_node(parser, JINJA_NODE_BINARY, &node);
    if (r != 0)
        return r;
    node->op = op;
    node->a = left;
    r = parse_right(parser, &node->b);
    if (r == 0)
        *ret_node = node;
    return r;
}

static int parse_level(struct parser *parser, int level, struct jinja_node **ret_node)
{
    struct jinja_node *left;
    int r = level < 0 ? parse_unary(parser, true, &left) : parse_level(parser, level - 1, &left);
    while (r == 0 && level >= 0) {
        int i = 0;
        while (i < 4 && levels[level].symbols[i] && !parser_sees_operator(parser, levels[level].symbols[i]))
            i++;
        if (i == 4 || !levels[level].symbols[i])
            break;
        struct jinja_node *node;
        r = parser_node(parser, JINJA_NODE_BINARY, &node);
        parser->at++;
        if (r != 0)
            return r;
        node->op = levels[level].ops[i];
        node->a = left;
        r = parse_level(parser, level - 1, &node->b);
        left = node;
    }
    if (r == 0)
        *ret_node = left;
    return r;
}

static int parse_sum(struct parser *parser, struct jinja_node **ret_node)
{
    return parse_level(parser, LEVEL_SUM, ret_node);
}

/* The comparison that the next tokens are; steps over it. */
static bool takes_comparison(struct parser *parser, enum jinja_operator *ret_op)
{
    static const struct {
        const char *symbol;
        enum jinja_operator op;
    } symbols[] = {{"==", JINJA_EQUAL},         {"!=", JINJA_NOT_EQUAL}, {"<=", JINJA_LESS_EQUAL},
                   {">=", JINJA_GREATER_EQUAL}, {"<", JINJA_LESS},       {">", JINJA_GREATER}};
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        if (parser_takes_operator(parser, symbols[i].symbol)) {
            *ret_op = symbols[i].op;
            return true;
        }
    if (parser_takes(parser, JINJA_NAME, "in")) {
        *ret_op = JINJA_IN;
        return true;
    }
    const struct jinja_token *token = parser_token(parser);
    if (parser_sees(parser, JINJA_NAME, "not") && token[1].kind == JINJA_NAME &&
        bytes_equal(token[1].text, BYTES_LITERAL("in"))) {
        parser->at += 2;
        *ret_op = JINJA_NOT_IN;
        return true;
    }
    return false;
}

/* a < b < c is a < b and b < c. */
static int parse_comparison(struct parser *parser, struct jinja_node **ret_node)
{
    struct jinja_node *left, *all = NULL;
    enum jinja_operator op;
    int r = parse_sum(parser, &left);
    while (r == 0 && takes_comparison(parser, &op)) {
        struct jinja_node *one;
        r = make_binary(parser, op, left, parse_sum, &one);
        if (r != 0)
            break;
        left = one->b;
        if (!all) {
            all = one;
            continue;
        }
        struct jinja_node *both;
        r = parser_node(parser, JINJA_NODE_BINARY, &both);
        if (r != 0)
            break;
        both->op = JINJA_AND;
        both->a = all;
        both->b = one;
        all = both;
    }
    if (r == 0)
        *ret_node = all ? all : left;
    return r;
}

static int parse_not(struct parser *parser, struct jinja_node **ret_node)
{
    if (!parser_sees(parser, JINJA_NAME, "not"))
        return parse_comparison(parser, ret_node);
    struct jinja_node *node;
    int r = parser_descend(parser);
    if (r != 0)
        return r;
    r = parser_node(parser, JINJA_NODE_UNARY, &node);
    parser->at++;
    if (r == 0) {
        node->op = JINJA_NOT;
        r = parse_not(parser, &node->a);
    }
    parser->depth--;
    if (r == 0)
        *ret_node = node;
    return r;
}

static int parse_and(struct parser *parser, struct jinja_node **ret_node)
{
    int r = parse_not(parser, ret_node);
    while (r == 0 && parser_takes(parser, JINJA_NAME, "and"))
        r = make_binary(parser, JINJA_AND, *ret_node, parse_not, ret_node);
    return r;
}

int parse_unconditional(struct parser *parser, struct jinja_node **ret_node)
{
    int r = parse_and(parser, ret_node);
    while (r == 0 && parser_takes(parser, JINJA_NAME, "or"))
        r = make_binary(parser, JINJA_OR, *ret_node, parse_and, ret_node);
    return r;
}

int parse_expression(struct parser *parser, struct jinja_node **ret_node)
{
    int r = parser_descend(parser);
    if (r != 0)
        return r;
    struct jinja_node *value;
    r = parse_unconditional(parser, &value);
    while (r == 0 && parser_sees(parser, JINJA_NAME, "if")) {
        struct jinja_node *node;
        r = parser_node(parser, JINJA_NODE_CONDITIONAL, &node);
        parser->at++;
        if (r != 0)
            break;
        node->a = value;
        r = parse_unconditional(parser, &node->b);
        if (r == 0 && parser_takes(parser, JINJA_NAME, "else"))
            r = parse_expression(parser, &node->c);
        value = node;
    }
    parser->depth--;
    if (r == 0)
        *ret_node = value;
    return r;
}
