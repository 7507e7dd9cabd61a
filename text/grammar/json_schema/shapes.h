/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_SHAPES_H
#define TEXT_GRAMMAR_JSON_SCHEMA_SHAPES_H

/* The normal form of a schema: a list of *shapes*; a value must have one of them. A shape has the types that
 * a value may have, and for each type the conditions that hold together. allOf, $ref and siblings are
 * products of such lists, anyOf is their union, and `not` turns a shape into those that violate one of its
 * conditions (negate.c). Conditions on items and members remain claims about schemas, which are read when a
 * grammar needs them, so recursion ends.
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

/* The claim that a value satisfies a schema, or does not. */
struct claim {
    const json_t *schema;
    bool negated;
};

struct link { /* of a list: every kind of node begins with it */
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
    ATOM_AMONG /* for both: one of `value`, an array */
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
    bool marks; /* the items count as evaluated */
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

struct name { /* a required one */
    struct link link;
    const char *name;
};

struct names { /* a claim that all names, as strings, satisfy */
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
    const struct shape **items; /* [n]; n = 0: no value is possible */
    uint32_t n, cap;
};

struct schema_memo {
    bool reading;
    const struct shapes *shapes; /* NULL: unknown */
};

/* ---- shapes.c ---- */

/* The shape of every value. */
struct shape shape_any(void);
/* A copy in the arena. */
const struct shape *shape_keep(struct schema_reader *reader, const struct shape *shape);
/* Prepends a copy of a node to a list, whose head is at `list`. False: rejected. */
bool shape_push(struct schema_reader *reader, const void *list, const void *node, size_t size);

/* The values with both shapes; false: none, as far as this function detects, or rejected. */
bool shape_both(struct schema_reader *reader, const struct shape *a, const struct shape *b,
                struct shape *ret_shape);

struct shapes *shapes_new(struct schema_reader *reader);
bool shapes_add(struct schema_reader *reader, struct shapes *shapes, const struct shape *shape);
bool shapes_add_all(struct schema_reader *reader, struct shapes *shapes, const struct shapes *more);
/* All pairs. NULL: rejected, or an argument was NULL. */
struct shapes *shapes_product(struct schema_reader *reader, const struct shapes *a, const struct shapes *b);

/* ---- assertions.c ---- */

/* The shape of a schema's assertions alone. False: rejected. */
bool schema_assertions(struct schema_reader *reader, const json_t *schema, struct shape *ret_shape);

/* ---- combine.c ---- */

/* The shapes of a schema, or of its negation. NULL: rejected. */
const struct shapes *schema_shapes(struct schema_reader *reader, struct claim claim);

/* ---- negate.c ---- */

/* The shapes of all values with none of these shapes. NULL: rejected. */
const struct shapes *shapes_negate(struct schema_reader *reader, const struct shapes *shapes);

/* ---- values.c ---- */

bool json_values_equal(const json_t *a, const json_t *b); /* 1 is 1.0 */

/* A schema that only this array or object satisfies, by its items or members. NULL: rejected. */
const json_t *schema_of_value(struct schema_reader *reader, const json_t *value);

/* ---- possible.c ---- */

/* Whether a value satisfies it. Also false if it is rejected. */
bool claim_holds(struct schema_reader *reader, struct claim claim, const json_t *value);
bool shape_holds(struct schema_reader *reader, const struct shape *shape, const json_t *value);
/* The listed values that have the shape. NULL: rejected. */
const json_t *shape_values(struct schema_reader *reader, const struct shape *shape);
/* Whether no value can have the shape; true is certain. */
bool shape_is_impossible(struct schema_reader *reader, const struct shape *shape, uint32_t depth);

/* The claims about one item, or about the member with a name, each once. False: rejected. */
struct demand {
    struct claim *claims; /* [n] */
    uint32_t n, cap;
};
bool demand_add(struct schema_reader *reader, struct demand *demand, struct claim claim);
bool shape_item(struct schema_reader *reader, const struct shape *shape, uint32_t index,
                struct demand *ret_demand);
bool shape_member(struct schema_reader *reader, const struct shape *shape, const char *name,
                  struct demand *ret_demand);
/* Whether all claims about names allow this name. */
bool shape_allows_name(struct schema_reader *reader, const struct shape *shape, const char *name);

/* ---- strings.c, numbers.c ---- */

/* The texts of strings or numbers of this shape. NULL: rejected. */
const struct automaton *shape_strings(struct schema_reader *reader, const struct shape *shape);
const struct automaton *shape_numbers(struct schema_reader *reader, const struct shape *shape);

/* Strings that contain a match of the pattern. NULL: rejected. */
const struct automaton *schema_pattern(struct schema_reader *reader, const char *pattern);

/* Whether the shape's numbers are integers. */
bool shape_is_integer(const struct shape *shape);

/* Whether the atom, negated or not, holds for a number. */
bool number_has_atom(const struct atom *atom, const json_t *value);

#endif
