/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_EMIT_H
#define TEXT_GRAMMAR_JSON_SCHEMA_EMIT_H

/* From shapes to expressions. A function gives NULL when the schema is refused, and &schema_nothing where no
 * text can be: the caller leaves that out. */

#include "text/grammar/json_schema/shapes.h"

extern const struct expression schema_nothing;

struct schema_entry {    /* what a demand became */
    bool reading, named; /* it is being made; and a rule was made for it, because it stands in itself */
    uint32_t rule;
    const struct expression *expression; /* NULL: not known */
    const struct expression *apart;      /* the same as a frame of its own; NULL: not made */
};

/* JSON that all these claims are true of. Equal demands are made once; what stands in itself is a rule. */
const struct expression *emit_demand(struct schema_reader *reader, const struct demand *demand);

/* The same as a frame of its own, or short: for what stands beside members in any order, so that what may
 * follow does not depend on which came (mask.c). */
const struct expression *emit_demand_apart(struct schema_reader *reader, const struct demand *demand);

/* Whether no text can come to an end that this is about. */
bool emit_is_endless(struct schema_reader *reader, const struct expression *expression);

/* The name of a member, or a string: "…". */
const struct expression *emit_name(struct schema_reader *reader, const char *name);

/* One type of a shape. */
const struct expression *emit_string(struct schema_reader *reader, const struct shape *shape);
const struct expression *emit_array(struct schema_reader *reader, const struct shape *shape);
const struct expression *emit_object(struct schema_reader *reader, const struct shape *shape);

/* The values that a demand allows if they are listed, booleans or null. False: there are others too, or it is
 * refused. */
bool demand_values(struct schema_reader *reader, const struct demand *demand, json_t *ret_values);

#endif
