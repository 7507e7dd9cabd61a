/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_PRINT_H
#define TEXT_TEMPLATE_JINJA_PRINT_H

/* Values as text: as {{ }} prints them, and as JSON. */

#include "text/template/jinja/value.h"

/* Appends the output of {{ value }}. */
int jinja_append_value(struct jinja_run *run, struct jinja_builder *builder, struct jinja_value value);
struct jinja_json_style {
    int indent; /* < 0: on one line */
    bool ascii, sorted;
    struct jinja_string item_separator, key_separator;
};
int jinja_append_json(struct jinja_run *run, struct jinja_builder *builder, struct jinja_value value,
                      const struct jinja_json_style *style, unsigned depth);
/* The value as text: a string itself, anything else as {{ }} prints it. */
int jinja_text_of(struct jinja_run *run, struct jinja_value value, const struct jinja_string **ret_string);
/* The value as printed inside a list: strings in quotes. */
int jinja_repr_of(struct jinja_run *run, struct jinja_value value, struct jinja_value *ret_value);

#endif
