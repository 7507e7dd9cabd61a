/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_EVALUATE_H
#define TEXT_TEMPLATE_JINJA_EVALUATE_H

/* Running a template: statements (run.c) and expressions (evaluate.c). */

#include "text/template/jinja/value.h"

int jinja_run_body(struct jinja_run *run, const struct jinja_node *chain);
int jinja_evaluate(struct jinja_run *run, const struct jinja_node *node, struct jinja_value *ret_value);
int jinja_call(struct jinja_run *run, struct jinja_value callee, const struct jinja_arguments *arguments,
               struct jinja_value *ret_value);
/* Evaluates a CALL node with `caller` as one more named argument. */
int jinja_call_with(struct jinja_run *run, const struct jinja_node *node, struct jinja_value caller,
                    struct jinja_value *ret_value);
int jinja_call_macro(struct jinja_run *run, const struct jinja_macro *macro,
                     const struct jinja_arguments *arguments, struct jinja_value *ret_value);
/* Applies the filters of a filter block or set block to a text. */
int jinja_filter_text(struct jinja_run *run, const struct jinja_node *filters, struct jinja_value text,
                      struct jinja_value *ret_value);

#endif
