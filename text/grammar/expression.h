/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_EXPRESSION_H
#define TEXT_GRAMMAR_EXPRESSION_H

/* A context-free grammar as built by the readers of GBNF, regular expressions and JSON Schema: rules, each
 * with an expression over code points and other rules.
 *
 * Everything lives in the arena of its `struct rules`. Expressions are immutable and may be used in several
 * places. A builder returns NULL if a part is NULL or memory runs out, so a reader checks only once, at the
 * end. Nothing here knows a model or its tokens. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/bytes.h"
#include "common/error.h"

#define GRAMMAR_MOST_REPEATS 65536u     /* n of {m,n} */
#define GRAMMAR_UNBOUNDED    UINT32_MAX /* for n: unbounded */
#define GRAMMAR_MOST_RULES   8192u
#define GRAMMAR_MOST_POINT   0x10ffffu /* the last code point */

/* Positive codes of all readers of grammars. */
enum { GRAMMAR_E_INVALID = 1 /* the text is not a grammar, or not a supported one; err says why */ };

enum expression_kind {
    EXPRESSION_EMPTY,    /* the empty text */
    EXPRESSION_LITERAL,  /* exactly these bytes of UTF-8 */
    EXPRESSION_CHARS,    /* one code point of a set */
    EXPRESSION_SEQUENCE, /* its parts in order */
    EXPRESSION_CHOICE,   /* any one of its parts */
    EXPRESSION_REPEAT,   /* its part, least … most times */
    EXPRESSION_RULE,     /* a rule */
    EXPRESSION_GRAPH,    /* a path through a graph */
    EXPRESSION_MEMBERS   /* members in any order */
};

struct code_range {
    uint32_t first, last;
};

struct expression;

/* A way from one state of a graph to another, by a text of `by`. */
struct expression_edge {
    uint32_t from, to;
    const struct expression *by;
};

/* Paths from state 0 to any accepting one. */
struct expression_graph {
    uint32_t n_states, n_edges;
    const struct expression_edge *edges; /* [n_edges] ascending by `from` */
    const bool *accepting;               /* [n_states] */
};

/* A member is its head and then its tail; it counts as present after the head. */
struct expression_member {
    const struct expression *head, *tail;
    bool required;
};

/* Any sequence of least … most members with `between` from one to the next, in which each of the `named` ones
 * comes at most once, the required ones exactly once, and the others any number of times. */
struct expression_members {
    const struct expression *between;
    const struct expression_member *named, *others; /* [n_named], [n_others] */
    uint32_t n_named, n_others;
    uint32_t least, most; /* most: or GRAMMAR_UNBOUNDED */
};

struct expression {
    enum expression_kind kind;
    uint32_t n;           /* of ranges or parts */
    uint32_t least, most; /* of a repeat */
    uint32_t rule;        /* an index into the rules */
    bool shared;          /* used in many places with the same continuation: compiled once */
    struct bytes literal;
    const struct code_range *ranges;       /* [n] ascending, not adjacent, without surrogates */
    const struct expression *const *parts; /* [n]; a repeat has one */
    const struct expression_graph *graph;
    const struct expression_members *members;
};

struct rule {
    char name[64];                 /* truncated to fit; for error messages */
    const struct expression *body; /* NULL: referenced, but not defined yet */
    bool apart;                    /* always called with its own frame (program.h) */
    bool has_members;              /* its body is one EXPRESSION_MEMBERS, which its frame keeps track of */
};

struct rules {
    struct arena arena;
    struct rule *items; /* [n] */
    uint32_t n, cap;
    uint32_t root;
};

/* Memory is bounded by `limit` bytes. */
void rules_init(struct rules *rules, size_t limit);
void rules_deinit(struct rules *rules);

/* The rule with that name, created if there is none; UINT32_MAX: out of memory, or beyond GRAMMAR_MOST_RULES.
 */
uint32_t rules_named(struct rules *rules, struct bytes name);
/* Creates a rule; names need not be unique. UINT32_MAX as above. */
uint32_t rules_add(struct rules *rules, const char *name);

/* A growing list of parts. A zeroed one is empty. */
struct expression_list {
    const struct expression **items;
    uint32_t n, cap;
    bool failed;
};
void expression_push(struct rules *rules, struct expression_list *list, const struct expression *part);

const struct expression *expression_empty(struct rules *rules);
const struct expression *expression_literal(struct rules *rules, struct bytes text);
const struct expression *expression_text(struct rules *rules, const char *text);
const struct expression *expression_sequence(struct rules *rules, const struct expression_list *list);
const struct expression *expression_choice(struct rules *rules, const struct expression_list *list);
const struct expression *expression_then(struct rules *rules, const struct expression *a,
                                         const struct expression *b);
const struct expression *expression_or(struct rules *rules, const struct expression *a,
                                       const struct expression *b);
/* most: GRAMMAR_UNBOUNDED or ≥ least. */
const struct expression *expression_repeat(struct rules *rules, const struct expression *part, uint32_t least,
                                           uint32_t most);
const struct expression *expression_optional(struct rules *rules, const struct expression *part);
const struct expression *expression_rule(struct rules *rules, uint32_t rule);

/* Marks a part that many others end with, in the same position. */
const struct expression *expression_shared(struct rules *rules, const struct expression *part);

/* Copies the graph, which has at least one state, and sorts its edges. */
const struct expression *expression_graph(struct rules *rules, const struct expression_graph *graph);

/* A rule with this name for these members, which are copied. Also NULL for members that nothing can satisfy.
 */
const struct expression *expression_members(struct rules *rules, const char *name,
                                            const struct expression_members *members);

/* A rule with this body that always gets its own frame. */
const struct expression *expression_apart(struct rules *rules, const char *name,
                                          const struct expression *body);

/* The set of these ranges, which may overlap and have any order; with `negated`, of all other code points.
 * Surrogates are never included. An empty set matches nothing. */
const struct expression *expression_chars(struct rules *rules, const struct code_range *ranges, uint32_t n,
                                          bool negated);

#endif
