/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_LIBRARY_LIST_FILTERS_H
#define TEXT_TEMPLATE_JINJA_LIBRARY_LIST_FILTERS_H

/* Common parts of list filters. */

#include "text/template/jinja/value.h"

/* The member `path` ("function.name") of an item. */
int jinja_member_by_path(struct jinja_run *run, struct jinja_value item, struct jinja_value path,
                         struct jinja_value *ret_value);

/* A list as a generator. jinja2 makes its items on demand, so such a value supports fewer operations. */
struct jinja_value jinja_generator_of(struct jinja_value list);

#endif
