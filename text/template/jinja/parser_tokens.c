/* SPDX-License-Identifier: MIT */
/* How the parts of the parser look at tokens, report what they miss, and make nodes. */

#include "text/template/jinja/parser.h"

#include <errno.h>
#include <stdio.h>

bool parser_sees(const struct parser *parser, enum jinja_token_kind kind, const char *text)
{
    const struct jinja_token *token = parser_token(parser);
    return token->kind == kind && bytes_equal(token->text, bytes_of_string(text));
}

bool parser_takes(struct parser *parser, enum jinja_token_kind kind, const char *text)
{
    bool sees = parser_sees(parser, kind, text);
    parser->at += sees;
    return sees;
}

int parser_fails(struct parser *parser, const char *expected)
{
    const struct jinja_token *token = parser_token(parser);
    int shown = (int)(token->text.len < 40 ? token->text.len : 40);
    return error_set(parser->err, -EINVAL, "line %u: expected %s before \"%.*s\"", token->line, expected,
                     shown, (const char *)token->text.data);
}

int parser_expects(struct parser *parser, enum jinja_token_kind kind, const char *text)
{
    if (parser_takes(parser, kind, text))
        return 0;
    char expected[32];
    snprintf(expected, sizeof expected, "\"%s\"", text);
    return parser_fails(parser, expected);
}

int parser_node(struct parser *parser, enum jinja_node_kind kind, struct jinja_node **ret_node)
{
    struct jinja_node *node = arena_take(parser->arena, 1, sizeof *node);
    if (!node)
        return error_set(parser->err, -ENOMEM, "not enough memory for the template");
    node->kind = kind;
    node->line = parser_token(parser)->line;
    *ret_node = node;
    return 0;
}

int parser_descend(struct parser *parser)
{
    if (parser->depth >= PARSER_MAX_DEPTH)
        return error_set(parser->err, -EINVAL, "line %u: nested more than %d deep",
                         parser_token(parser)->line, PARSER_MAX_DEPTH);
    parser->depth++;
    return 0;
}
