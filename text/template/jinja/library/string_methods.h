/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_LIBRARY_STRING_METHODS_H
#define TEXT_TEMPLATE_JINJA_LIBRARY_STRING_METHODS_H

/* What string_split.c has for string_methods.c: the methods that cut a string into parts. */

#include "text/template/jinja/value.h"

jinja_function jinja_split, jinja_split_right, jinja_split_lines;
jinja_function jinja_partition, jinja_partition_right;

/* Where `part` begins for the last time in the first `len` bytes, or SIZE_MAX. Charges for a stretch before
 * it is looked through. */
int jinja_find_last(struct jinja_run *run, const struct jinja_string *string, size_t len,
                    const struct jinja_string *part, size_t *ret_at);

#endif
