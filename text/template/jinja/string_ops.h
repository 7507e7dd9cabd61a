/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_STRING_OPS_H
#define TEXT_TEMPLATE_JINJA_STRING_OPS_H

/* Common parts of string filters and methods. Marks stay with their bytes. */

#include "text/template/jinja/value.h"

enum jinja_side { JINJA_LEFT = 1, JINJA_RIGHT = 2 };

/* HTML escapes for & < > and quotes; a string that is already html is unchanged. The result is html. */
int jinja_escape(struct jinja_run *run, const struct jinja_string *string, struct jinja_value *ret_value);

/* Fills the places of a format with values. jinja_format: "{} {name:>5}", the arguments from `skip` on.
 * jinja_format_percent: "%s %5.2f %(name)s", for one value, a tuple of them, or a mapping. If the format is
 * html, strings are escaped. */
int jinja_format(struct jinja_run *run, const struct jinja_string *format,
                 const struct jinja_arguments *arguments, size_t skip, struct jinja_value *ret_value);
int jinja_format_percent(struct jinja_run *run, const struct jinja_string *format, struct jinja_value values,
                         struct jinja_value *ret_value);

/* Bytes of the white space character at `at` < len, or of the one that ends at `end` > 0; 0 if there is
 * none. */
size_t jinja_white_len(const struct jinja_string *string, size_t at);
size_t jinja_white_len_before(const struct jinja_string *string, size_t end);

/* Strips white space, or any of the characters in `set` (NULL: white space), from the sides. */
int jinja_strip(struct jinja_run *run, const struct jinja_string *string, int sides,
                const struct jinja_string *set, struct jinja_value *ret_value);

/* Pads to `width` characters with `fill` (one character; NULL: a blank) at the sides given. */
int jinja_pad(struct jinja_run *run, const struct jinja_string *string, int sides, int64_t width,
              const struct jinja_string *fill, struct jinja_value *ret_value);

enum jinja_case {
    JINJA_LOWER,
    JINJA_UPPER,
    JINJA_CAPITAL,    /* the first character upper, the rest lower */
    JINJA_TITLE,      /* the same for every run of letters: the method */
    JINJA_TITLE_WORDS /* the same after white space, hyphens and opening brackets: the filter */
};
int jinja_change_case(struct jinja_run *run, const struct jinja_string *string, enum jinja_case change,
                      struct jinja_value *ret_value);

/* Whether there are cased letters, all in this case (JINJA_LOWER or JINJA_UPPER). */
int jinja_is_in_case(struct jinja_run *run, const struct jinja_string *string, enum jinja_case wanted,
                     struct jinja_value *ret_value);

enum jinja_characters { JINJA_LETTERS = 1, JINJA_DIGITS = 2, JINJA_BLANKS = 4 };
/* Whether there are characters, all of these kinds. */
int jinja_is_all(struct jinja_run *run, const struct jinja_string *string, unsigned kinds,
                 struct jinja_value *ret_value);

/* At most `times` replacements; < 0: all. */
int jinja_replace(struct jinja_run *run, const struct jinja_string *string, const struct jinja_string *from,
                  const struct jinja_string *to, int64_t times, struct jinja_value *ret_value);

/* Items as text with the separator between them; escaped, if the separator is html. */
int jinja_join(struct jinja_run *run, const struct jinja_list *list, const struct jinja_string *separator,
               struct jinja_value *ret_value);

/* Pairs of a dictionary as a list of tuples. */
int jinja_pairs(struct jinja_run *run, const struct jinja_dict *dict, struct jinja_value *ret_value);

/* The argument as a string; NULL if it is missing or none. Fails for any other value. */
int jinja_string_argument(struct jinja_run *run, const struct jinja_arguments *arguments, size_t i,
                          const char *name, const struct jinja_string **ret_string);
/* The argument as a whole number, or `otherwise`. */
int jinja_int_argument(struct jinja_run *run, const struct jinja_arguments *arguments, size_t i,
                       const char *name, int64_t otherwise, int64_t *ret_value);

#endif
