/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_ARITHMETIC_H
#define TEXT_TEMPLATE_JINJA_ARITHMETIC_H

/* Arithmetic, and + * ~ % of strings and lists. */

#include "text/template/jinja/value.h"

/* a op b for arithmetic. */
int jinja_calculate(struct jinja_run *run, enum jinja_operator op, struct jinja_value a, struct jinja_value b,
                    struct jinja_value *ret_value);

#endif
