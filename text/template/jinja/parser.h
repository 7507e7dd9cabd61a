/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_PARSER_H
#define TEXT_TEMPLATE_JINJA_PARSER_H

/* Private to the parts of the parser: tokens and nodes (parser_tokens.c), expressions (parse_expression.c),
 * the values in them (parse_value.c), and statements (parser.c). */

#include <stdbool.h>

#include "text/template/jinja/syntax.h"

struct parser {
    struct jinja_tokens tokens;
    size_t at;
    unsigned depth; /* of nesting; bounds the use of the C stack */
    unsigned loops; /* enclosing ones that a break could leave */
    struct arena *arena;
    struct error *err;
};

enum { PARSER_MAX_DEPTH = 200 };

static inline const struct jinja_token *parser_token(const struct parser *parser)
{
    return &parser->tokens.items[parser->at];
}

/* Whether the next token is this operator or this name. */
bool parser_sees(const struct parser *parser, enum jinja_token_kind kind, const char *text);
/* The same; skips it if so. */
bool parser_takes(struct parser *parser, enum jinja_token_kind kind, const char *text);
/* The same; if not, -EINVAL with a reason. */
int parser_expects(struct parser *parser, enum jinja_token_kind kind, const char *text);
/* "line N: expected WHAT before …" */
int parser_fails(struct parser *parser, const char *expected);

static inline bool parser_sees_operator(const struct parser *parser, const char *text)
{
    return parser_sees(parser, JINJA_OPERATOR, text);
}

static inline bool parser_takes_operator(struct parser *parser, const char *text)
{
    return parser_takes(parser, JINJA_OPERATOR, text);
}

/* Creates a node at the next token. 0 or -ENOMEM. */
int parser_node(struct parser *parser, enum jinja_node_kind kind, struct jinja_node **ret_node);

/* Enters a level (0, or -EINVAL if too deep); the caller leaves it with depth--. */
int parser_descend(struct parser *parser);

/* A whole expression, `a, b` not included. */
int parse_expression(struct parser *parser, struct jinja_node **ret_node);
/* An expression without `x if y`, as after the `in` of a for with a filter. */
int parse_unconditional(struct parser *parser, struct jinja_node **ret_node);
/* Filters after a value (`| name(…) | …`), applied to `value`, which may be NULL in a filter block. */
int parse_filters(struct parser *parser, struct jinja_node *value, struct jinja_node **ret_node);
/* A literal, a name, or a bracketed expression; then what follows a value: .name [index] (arguments). */
int parse_primary(struct parser *parser, struct jinja_node **ret_node);
int parse_postfix(struct parser *parser, struct jinja_node *value, struct jinja_node **ret_node);
/* One filter, without its bar. */
int parse_filter(struct parser *parser, struct jinja_node *value, struct jinja_node **ret_node);

#endif
