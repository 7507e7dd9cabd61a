/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_EMIT_H
#define TEXT_GRAMMAR_JSON_SCHEMA_EMIT_H

/* Converts shapes to expressions. Functions return NULL if the schema is rejected, and &schema_nothing if no
 * text is possible: the caller then omits that alternative. */

#include "text/grammar/json_schema/shapes.h"

extern const struct expression schema_nothing;

struct schema_entry {    /* the expression of a demand */
    bool reading, named; /* it is being built; it has a rule, because it contains itself */
    uint32_t rule;
    const struct expression *expression; /* NULL: unknown */
    const struct expression *apart;      /* the same with its own frame; NULL: not built */
};

/* JSON that satisfies all these claims. Equal demands are built once; one that contains itself becomes a
 * rule. */
const struct expression *emit_demand(struct schema_reader *reader, const struct demand *demand);

/* The same with its own frame, unless it is short: for values of members in any order, so that what may
 * follow does not depend on the members so far (mask.c). */
const struct expression *emit_demand_apart(struct schema_reader *reader, const struct demand *demand);

/* Whether no text of this expression is finite. */
bool emit_is_endless(struct schema_reader *reader, const struct expression *expression);

/* The name of a member, or a string: "…". */
const struct expression *emit_name(struct schema_reader *reader, const char *name);

/* One type of a shape. */
const struct expression *emit_string(struct schema_reader *reader, const struct shape *shape);
const struct expression *emit_array(struct schema_reader *reader, const struct shape *shape);
const struct expression *emit_object(struct schema_reader *reader, const struct shape *shape);

/* The values that a demand allows, if they are listed, booleans or null. False: there are others too, or it
 * is rejected. */
bool demand_values(struct schema_reader *reader, const struct demand *demand, json_t *ret_values);

#endif
