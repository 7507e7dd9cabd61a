/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_SHAPES_H
#define TEXT_GRAMMAR_JSON_SCHEMA_SHAPES_H

/* What a schema says, in one form: a list of *shapes*, of which a value has to have one. A shape is the types
 * that a value may be of, and for each type what holds together. allOf, $ref and siblings are products of
 * such lists, anyOf is their sum, `not` turns a shape into those that lack something of it (negate.c). What
 * is said of items and members stays a claim about schemas that are read when a grammar needs them: so
 * recursion ends.
 *
 * Everything is in the arena of the rules, and never changes once it is in a list. */

#include "text/grammar/json_schema/internal.h"

enum {
    TYPE_NULL = 1,
    TYPE_FALSE = 2,
    TYPE_TRUE = 4,
    TYPE_NUMBER = 8,
    TYPE_STRING = 16,
    TYPE_ARRAY = 32,
    TYPE_OBJECT = 64,
    TYPE_ALL = 127
};

/* That a value satisfies a schema, or does not. */
struct claim {
    const json_t *schema;
    bool negated;
};

struct link { /* lists: each kind of node begins with one */
    const struct link *next;
};

enum atom_kind {
    ATOM_MIN_LENGTH,
    ATOM_MAX_LENGTH,
    ATOM_PATTERN,
    ATOM_FORMAT,
    ATOM_INTEGER, /* numbers from here on */
    ATOM_MINIMUM,
    ATOM_MAXIMUM,
    ATOM_EXCLUSIVE_MINIMUM,
    ATOM_EXCLUSIVE_MAXIMUM,
    ATOM_MULTIPLE,
    ATOM_AMONG /* of both: one of `value`, an array */
};

struct atom { /* of strings or numbers */
    struct link link;
    enum atom_kind kind;
    bool negated;
    const json_t *value;
};

struct items { /* a claim about the items from `first` to `last`; UINT32_MAX: to the end */
    struct link link;
    uint32_t first, last;
    struct claim claim;
    bool marks; /* they count as evaluated */
};

struct contains { /* least … most of the items from `from` on satisfy it */
    struct link link;
    struct claim claim;
    uint32_t from, least, most; /* most: or GRAMMAR_UNBOUNDED */
    bool marks;
};

/* Claims about members: of one name; or of properties, of names that match patterns, and of all others. */
struct group {
    struct link link;
    const char *only; /* with `claim`; NULL: the rest */
    struct claim claim;
    const json_t *properties, *patterns, *additional; /* NULL: none */
    bool marks;
};

struct name { /* one that is required */
    struct link link;
    const char *name;
};

struct names { /* what all names satisfy, as strings */
    struct link link;
    struct claim claim;
};

struct shape {
    uint32_t types;
    const json_t *listed; /* an array: it is one of these; NULL: any */
    const struct atom *strings, *numbers;
    const struct items *items;
    const struct contains *contains;
    uint32_t min_items, max_items;
    bool unique;
    const struct group *groups;
    const struct name *required;
    const struct names *names;
    uint32_t min_members, max_members;
    bool strict; /* members come in the order of the groups: all are required, and no others allowed */
};

struct shapes {
    const struct shape **items; /* [n]; none: no value will do */
    uint32_t n, cap;
};

struct schema_memo {
    bool reading;
    const struct shapes *shapes; /* NULL: not known */
};

/* ---- shapes.c ---- */

/* One that every value has. */
struct shape shape_any(void);
/* A copy that stays. */
const struct shape *shape_keep(struct schema_reader *reader, const struct shape *shape);
/* Puts a copy of a node in front of a list, the first member of which `list` is. False: refused. */
bool shape_push(struct schema_reader *reader, const void *list, const void *node, size_t size);

/* The values that have both; false: none, as far as that is seen here, or refused. */
bool shape_both(struct schema_reader *reader, const struct shape *a, const struct shape *b,
                struct shape *ret_shape);

struct shapes *shapes_new(struct schema_reader *reader);
bool shapes_add(struct schema_reader *reader, struct shapes *shapes, const struct shape *shape);
bool shapes_add_all(struct schema_reader *reader, struct shapes *shapes, const struct shapes *more);
/* All pairs. NULL: refused, or an argument was NULL. */
struct shapes *shapes_product(struct schema_reader *reader, const struct shapes *a, const struct shapes *b);

/* ---- assertions.c ---- */

/* What the assertions of a schema say by themselves. False: refused. */
bool schema_assertions(struct schema_reader *reader, const json_t *schema, struct shape *ret_shape);

/* ---- combine.c ---- */

/* The shapes of a schema, or of what is not it. NULL: refused. */
const struct shapes *schema_shapes(struct schema_reader *reader, struct claim claim);

/* ---- negate.c ---- */

/* The shapes of all values that have none of these. NULL: refused. */
const struct shapes *shapes_negate(struct schema_reader *reader, const struct shapes *shapes);

/* ---- values.c ---- */

bool json_values_equal(const json_t *a, const json_t *b); /* 1 is 1.0 */

/* A schema that an array or object alone satisfies, by its items or members. NULL: refused. */
const json_t *schema_of_value(struct schema_reader *reader, const json_t *value);

/* ---- possible.c ---- */

/* Whether a value satisfies it. False too if that is refused. */
bool claim_holds(struct schema_reader *reader, struct claim claim, const json_t *value);
bool shape_holds(struct schema_reader *reader, const struct shape *shape, const json_t *value);
/* The values that are listed and have the shape. NULL: refused. */
const json_t *shape_values(struct schema_reader *reader, const struct shape *shape);
/* Whether no value can have the shape; true is certain. */
bool shape_is_impossible(struct schema_reader *reader, const struct shape *shape, uint32_t depth);

/* The claims about one item, or about the member of a name. Each once; false: refused. */
struct demand {
    struct claim *claims; /* [n] */
    uint32_t n, cap;
};
bool demand_add(struct schema_reader *reader, struct demand *demand, struct claim claim);
bool shape_item(struct schema_reader *reader, const struct shape *shape, uint32_t index,
                struct demand *ret_demand);
bool shape_member(struct schema_reader *reader, const struct shape *shape, const char *name,
                  struct demand *ret_demand);
/* Whether a name is one that all claims about names allow. */
bool shape_allows_name(struct schema_reader *reader, const struct shape *shape, const char *name);

/* ---- strings.c, numbers.c ---- */

/* The texts that strings or numbers of this shape have. NULL: refused. */
const struct automaton *shape_strings(struct schema_reader *reader, const struct shape *shape);
const struct automaton *shape_numbers(struct schema_reader *reader, const struct shape *shape);

/* Strings that match a pattern somewhere. NULL: refused. */
const struct automaton *schema_pattern(struct schema_reader *reader, const char *pattern);

/* Whether the numbers are whole because they have no point. */
bool shape_is_integer(const struct shape *shape);

/* Whether it holds for a number, negated or not. */
bool number_has_atom(const struct atom *atom, const json_t *value);

#endif
