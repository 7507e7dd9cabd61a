/* SPDX-License-Identifier: MIT */
/* Expressions, by recursive descent, one function for each level of binding:
 *
 *   conditional  or  and  not  comparison  sum  ~  product  power  unary  postfix  primary
 *
 * with filters and tests (`| name`, `is name`) bound to a unary expression, as Jinja does it. Chains of one
 * level are loops, so depth grows only with brackets and prefixes; the limit on it keeps a hostile template
 * from ending the C stack. */

#include "worker/model/jinja/parser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int parse_unary(struct parser *parser, bool with_filters, struct jinja_node **ret_node);

static bool sees_operator(const struct parser *parser, const char *text)
{
    return parser_sees(parser, JINJA_OPERATOR, text);
}

static bool takes_operator(struct parser *parser, const char *text)
{
    return parser_takes(parser, JINJA_OPERATOR, text);
}

/* Appends expressions up to a closing bracket, which is stepped over; a comma may stand before it. */
static int parse_items(struct parser *parser, const char *close, struct jinja_node *parent)
{
    struct jinja_node **tail = &parent->items;
    while (!takes_operator(parser, close)) {
        int r = parse_expression(parser, tail);
        if (r != 0)
            return r;
        tail = &(*tail)->next;
        parent->n_items++;
        if (!takes_operator(parser, ","))
            return parser_expects(parser, JINJA_OPERATOR, close);
    }
    return 0;
}

/* {key: value, …}, behind the opening brace. */
static int parse_dict(struct parser *parser, struct jinja_node *dict)
{
    struct jinja_node **tail = &dict->items;
    while (!takes_operator(parser, "}")) {
        int r = parse_expression(parser, tail);
        if (r == 0)
            r = parser_expects(parser, JINJA_OPERATOR, ":");
        if (r == 0)
            r = parse_expression(parser, &(*tail)->next);
        if (r != 0)
            return r;
        tail = &(*tail)->next->next;
        dict->n_items += 2;
        if (!takes_operator(parser, ","))
            return parser_expects(parser, JINJA_OPERATOR, "}");
    }
    return 0;
}

/* (a, b, name=c) behind the opening bracket: arguments of a call, filter or test. */
static int parse_arguments(struct parser *parser, struct jinja_node *call)
{
    struct jinja_node **tail = &call->items;
    while (!takes_operator(parser, ")")) {
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
        if (!takes_operator(parser, ","))
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
    char *text = jinja_arena_alloc(parser->arena, len + 1);
    if (!text)
        return error_set(parser->err, -ENOMEM, "no memory for the template");
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
    if (takes_operator(parser, ")"))
        return parser_node(parser, JINJA_NODE_LIST, ret_node);
    struct jinja_node *first;
    int r = parse_expression(parser, &first);
    if (r == 0 && takes_operator(parser, ",")) {
        r = parser_node(parser, JINJA_NODE_LIST, &list);
        if (r == 0)
            r = parse_items(parser, ")", list);
        if (r != 0)
            return r;
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

static int parse_primary(struct parser *parser, struct jinja_node **ret_node)
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
    if (sees_operator(parser, "[") || sees_operator(parser, "{")) {
        bool list = sees_operator(parser, "[");
        int r = parser_node(parser, list ? JINJA_NODE_LIST : JINJA_NODE_DICT, ret_node);
        parser->at++;
        if (r == 0)
            r = list ? parse_items(parser, "]", *ret_node) : parse_dict(parser, *ret_node);
        return r;
    }
    if (takes_operator(parser, "("))
        return parse_bracket(parser, ret_node);
    return parser_fails(parser, "a value");
}

/* [index] or [from:to:step], behind the opening bracket. */
static int parse_subscript(struct parser *parser, struct jinja_node *value, struct jinja_node **ret_node)
{
    struct jinja_node *parts[3] = {NULL}, *node;
    int n = 0, r = parser_node(parser, JINJA_NODE_INDEX, &node);
    while (r == 0 && !sees_operator(parser, "]")) {
        if (takes_operator(parser, ":")) {
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

static int parse_postfix(struct parser *parser, struct jinja_node *value, struct jinja_node **ret_node)
{
    for (;;) {
        struct jinja_node *node;
        int r = 0;
        if (takes_operator(parser, ".")) {
            const struct jinja_token *name = parser_token(parser);
            if (name->kind != JINJA_NAME && name->kind != JINJA_INTEGER)
                return parser_fails(parser, "a name behind the point");
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
        } else if (takes_operator(parser, "[")) {
            r = parse_subscript(parser, value, &node);
        } else if (takes_operator(parser, "(")) {
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
    if (takes_operator(parser, "("))
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
           sees_operator(parser, "[") || sees_operator(parser, "{");
}

/* Behind `is`. */
static int parse_test(struct parser *parser, struct jinja_node *value, struct jinja_node **ret_node)
{
    struct jinja_node *not = NULL, *node;
    int r = 0;
    if (parser_sees(parser, JINJA_NAME, "not")) {
        r = parser_node(parser, JINJA_NODE_UNARY, &not );
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
    if (takes_operator(parser, "(")) {
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
    if (not ) {
        not ->op = JINJA_NOT;
        not ->a = node;
        node = not ;
    }
    *ret_node = node;
    return 0;
}

int parse_filters(struct parser *parser, struct jinja_node *value, struct jinja_node **ret_node)
{
    for (;;) {
        int r;
        if (takes_operator(parser, "|"))
            r = parse_filter(parser, value, &value);
        else if (value && parser_takes(parser, JINJA_NAME, "is"))
            r = parse_test(parser, value, &value);
        else if (value && sees_operator(parser, "("))
            r = parse_postfix(parser, value, &value);
        else
            break;
        if (r != 0)
            return r;
    }
    *ret_node = value;
    return 0;
}

static int parse_unary(struct parser *parser, bool with_filters, struct jinja_node **ret_node)
{
    int r = parser_descend(parser);
    if (r != 0)
        return r;
    struct jinja_node *node;
    if (sees_operator(parser, "-") || sees_operator(parser, "+")) {
        r = parser_node(parser, JINJA_NODE_UNARY, &node);
        if (r == 0) {
            node->op = sees_operator(parser, "-") ? JINJA_NEGATE : JINJA_PLUS;
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

/* ---- binary operators, loosest last ---- */

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
        while (i < 4 && levels[level].symbols[i] && !sees_operator(parser, levels[level].symbols[i]))
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
        if (takes_operator(parser, symbols[i].symbol)) {
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
