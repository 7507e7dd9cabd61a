/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_SYNTAX_H
#define TEXT_TEMPLATE_JINJA_SYNTAX_H

/* Source of a template: its tokens and its syntax tree.
 *
 * The language is the part of Jinja 2 that chat templates use, with trim_blocks and lstrip_blocks on, as
 * Hugging Face renders them: set, if, for (with a filter, else, break and continue), macro, call, with,
 * block and filter, raw, comments, and all expressions but `*args`, lambda and await. import, include and
 * extends are rejected with an error that names them. */

#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/arena.h"

/* ---- tokens ---- */

enum jinja_token_kind {
    JINJA_TEXT,         /* outside of tags */
    JINJA_OUTPUT_BEGIN, /* {{ */
    JINJA_OUTPUT_END,
    JINJA_TAG_BEGIN, /* {% */
    JINJA_TAG_END,
    JINJA_NAME,
    JINJA_STRING, /* without quotes, escapes replaced */
    JINJA_INTEGER,
    JINJA_REAL,
    JINJA_OPERATOR,
    JINJA_END
};

struct jinja_token {
    enum jinja_token_kind kind;
    uint32_t line; /* from 1 */
    struct bytes text;
};

struct jinja_tokens {
    struct jinja_token *items; /* ended by JINJA_END */
    size_t n, cap;
};

/* Splits the source; tokens and their texts lie in the arena. 0; -EINVAL with line and reason; -ENOMEM. */
int jinja_lex(struct bytes source, struct arena *arena, struct jinja_tokens *ret_tokens, struct error *err);

/* ---- the tree ---- */

enum jinja_operator {
    JINJA_ADD,
    JINJA_SUBTRACT,
    JINJA_MULTIPLY,
    JINJA_DIVIDE,
    JINJA_FLOOR_DIVIDE,
    JINJA_MODULO,
    JINJA_POWER,
    JINJA_CONCAT,
    JINJA_AND,
    JINJA_OR,
    JINJA_EQUAL,
    JINJA_NOT_EQUAL,
    JINJA_LESS,
    JINJA_LESS_EQUAL,
    JINJA_GREATER,
    JINJA_GREATER_EQUAL,
    JINJA_IN,
    JINJA_NOT_IN,
    JINJA_NEGATE,
    JINJA_PLUS,
    JINJA_NOT
};

enum jinja_node_kind {
    /* expressions */
    JINJA_NODE_STRING,      /* name: the text */
    JINJA_NODE_INTEGER,     /* integer */
    JINJA_NODE_REAL,        /* real */
    JINJA_NODE_BOOLEAN,     /* integer */
    JINJA_NODE_NONE,        /* – */
    JINJA_NODE_VARIABLE,    /* name */
    JINJA_NODE_LIST,        /* items; integer: 1 for a tuple */
    JINJA_NODE_DICT,        /* items: key, value, key, value … */
    JINJA_NODE_ATTRIBUTE,   /* a . name */
    JINJA_NODE_INDEX,       /* a [b] */
    JINJA_NODE_SLICE,       /* a [b : c : d], each of b c d may be NULL */
    JINJA_NODE_CALL,        /* a (items, named) */
    JINJA_NODE_FILTER,      /* a | name (items, named); a is NULL in a filter block */
    JINJA_NODE_TEST,        /* a is name (items) */
    JINJA_NODE_UNARY,       /* op a */
    JINJA_NODE_BINARY,      /* a op b, and comparisons */
    JINJA_NODE_CONDITIONAL, /* a if b else c; c may be NULL */
    JINJA_NODE_NAMED,       /* name = a, in an argument list */
    /* statements */
    JINJA_NODE_TEXT,         /* name: the text */
    JINJA_NODE_OUTPUT,       /* a */
    JINJA_NODE_IF,           /* if a: body, else: otherwise */
    JINJA_NODE_FOR,          /* for items in a if b: body, else: otherwise */
    JINJA_NODE_SET,          /* items (targets) = a */
    JINJA_NODE_SET_BLOCK,    /* items (one target) = body through filters a (or NULL) */
    JINJA_NODE_MACRO,        /* name (items: NAMED with a = default or NULL): body */
    JINJA_NODE_CALL_BLOCK,   /* a (a CALL), with `caller` = a macro (items): body */
    JINJA_NODE_WITH,         /* items (NAMED): body, in its own scope; a block has no items */
    JINJA_NODE_FILTER_BLOCK, /* body through filters a */
    JINJA_NODE_GROUP,        /* body */
    JINJA_NODE_BREAK,
    JINJA_NODE_CONTINUE
};

struct jinja_node {
    enum jinja_node_kind kind;
    enum jinja_operator op;
    uint32_t line;
    uint32_t n_items;
    struct bytes name;
    union {
        int64_t integer;
        double real;
    };
    struct jinja_node *a, *b, *c, *d; /* depends on the kind */
    struct jinja_node *items;         /* a chain along `next` */
    struct jinja_node *body, *otherwise;
    struct jinja_node *next; /* in a chain */
};

/* Parses a whole template; the tree (a chain of statements, NULL if empty) is in the arena. 0; -EINVAL with
 * line and reason; -ENOMEM. */
int jinja_parse(struct bytes source, struct arena *arena, struct jinja_node **ret_tree, struct error *err);

#endif
