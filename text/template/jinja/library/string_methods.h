/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_LIBRARY_STRING_METHODS_H
#define TEXT_TEMPLATE_JINJA_LIBRARY_STRING_METHODS_H

/* The methods that split a string (string_split.c), for string_methods.c. */

#include "text/template/jinja/value.h"

jinja_function jinja_split, jinja_split_right, jinja_split_lines;
jinja_function jinja_partition, jinja_partition_right;

/* The last position of `part` in the first `len` bytes, or SIZE_MAX. Charges for each stretch before
 * searching it. */
int jinja_find_last(struct jinja_run *run, const struct jinja_string *string, size_t len,
                    const struct jinja_string *part, size_t *ret_at);

#endif
