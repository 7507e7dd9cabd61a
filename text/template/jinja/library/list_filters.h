/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_LIBRARY_LIST_FILTERS_H
#define TEXT_TEMPLATE_JINJA_LIBRARY_LIST_FILTERS_H

/* What filters of lists share. */

#include "text/template/jinja/value.h"

/* The member `path` ("function.name") of an item. */
int jinja_member_by_path(struct jinja_run *run, struct jinja_value item, struct jinja_value path,
                         struct jinja_value *ret_value);

/* A list as a generator. jinja2 makes these items on demand, which shows in what such a value can do. */
struct jinja_value jinja_generator_of(struct jinja_value list);

#endif
