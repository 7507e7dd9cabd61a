/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_LIBRARY_LIBRARY_H
#define TEXT_TEMPLATE_JINJA_LIBRARY_LIBRARY_H

/* Finds filters, tests, methods and functions by name. Each returns NULL for an unknown name.
 *
 * A filter's first argument is the value before the bar. A test's is the value tested, and its result is a
 * boolean. A method's is the object. */

#include "text/template/jinja/value.h"

jinja_function *jinja_find_filter(struct bytes name);
jinja_function *jinja_find_test(struct bytes name);
jinja_function *jinja_find_method(struct jinja_value object, struct bytes name);
jinja_function *jinja_find_global(struct bytes name);

/* The parts of jinja_find_filter and jinja_find_method. */
jinja_function *jinja_find_value_filter(struct bytes name);
jinja_function *jinja_find_list_filter(struct bytes name);
jinja_function *jinja_find_string_method(struct bytes name);

#endif
