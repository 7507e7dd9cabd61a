/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_OPERATORS_H
#define TEXT_TEMPLATE_JINJA_OPERATORS_H

/* Operators on values, as Python defines them. `depth` counts nesting; callers begin with 0. */

#include "text/template/jinja/value.h"

/* Sets a member; a key that is there keeps its place. */
int jinja_dict_set(struct jinja_run *run, struct jinja_dict *dict, struct jinja_value key,
                   struct jinja_value value);

int jinja_equal(struct jinja_run *run, struct jinja_value a, struct jinja_value b, unsigned depth,
                bool *ret_equal);
/* −1, 0, 1; fails for values that have no order. */
int jinja_compare(struct jinja_run *run, struct jinja_value a, struct jinja_value b, int *ret_order);
int jinja_contains(struct jinja_run *run, struct jinja_value whole, struct jinja_value part,
                   bool *ret_contains);
/* Items of a list, keys of a dictionary, characters of a string, nothing for an undefined value, and the
 * rest of a generator, which is empty afterwards. */
int jinja_items_of(struct jinja_run *run, struct jinja_value value, const struct jinja_list **ret_list);
/* Characters of a string; items of a list or dictionary. */
int jinja_length(struct jinja_run *run, struct jinja_value value, int64_t *ret_length);
/* The member, or undefined. */
int jinja_member_of(struct jinja_run *run, struct jinja_value object, struct jinja_value key,
                    struct jinja_value *ret_value);
/* A member by the name in the template; an undefined object fails. */
int jinja_attribute(struct jinja_run *run, struct jinja_value object, struct bytes name,
                    const struct jinja_node *node, struct jinja_value *ret_value);
int jinja_slice(struct jinja_run *run, struct jinja_value value, const struct jinja_value *from,
                const struct jinja_value *to, int64_t step, struct jinja_value *ret_value);

#endif
