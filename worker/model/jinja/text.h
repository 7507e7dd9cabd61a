/* SPDX-License-Identifier: MIT */
#ifndef WORKER_MODEL_JINJA_TEXT_H
#define WORKER_MODEL_JINJA_TEXT_H

/* What filters and methods of strings have in common. Marks stay with their bytes. */

#include "worker/model/jinja/value.h"

enum jinja_side { JINJA_LEFT = 1, JINJA_RIGHT = 2 };

/* Strips white space, or any of the characters in `set` (NULL: white space), from the sides. */
int jinja_strip(struct jinja_run *run, const struct jinja_string *string, int sides,
                const struct jinja_string *set, struct jinja_value *ret_value);

enum jinja_case {
    JINJA_LOWER,
    JINJA_UPPER,
    JINJA_CAPITAL,    /* the first character upper, the rest lower */
    JINJA_TITLE,      /* so for every run of letters: the method */
    JINJA_TITLE_WORDS /* so behind white space, hyphens and opening brackets: the filter */
};
int jinja_change_case(struct jinja_run *run, const struct jinja_string *string, enum jinja_case change,
                      struct jinja_value *ret_value);

/* At most `times` replacements; < 0: all. */
int jinja_replace(struct jinja_run *run, const struct jinja_string *string, const struct jinja_string *from,
                  const struct jinja_string *to, int64_t times, struct jinja_value *ret_value);

/* Items as text with the separator between them. */
int jinja_join(struct jinja_run *run, const struct jinja_list *list, const struct jinja_string *separator,
               struct jinja_value *ret_value);

/* Pairs of a dictionary as a list of lists. */
int jinja_pairs(struct jinja_run *run, const struct jinja_dict *dict, struct jinja_value *ret_value);

/* The argument as text: fails when it is there and no string; NULL when it is not there or none. */
int jinja_string_argument(struct jinja_run *run, const struct jinja_arguments *arguments, size_t i,
                          const char *name, const struct jinja_string **ret_string);
/* The argument as a whole number, or `otherwise`. */
int jinja_int_argument(struct jinja_run *run, const struct jinja_arguments *arguments, size_t i,
                       const char *name, int64_t otherwise, int64_t *ret_value);

#endif
