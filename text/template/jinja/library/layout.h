/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_LIBRARY_LAYOUT_H
#define TEXT_TEMPLATE_JINJA_LIBRARY_LAYOUT_H

/* How a value is written in a format: the part after the colon in "{:>8.2f}", or between % and the letter. */

#include "text/template/jinja/value.h"

struct jinja_layout {
    struct jinja_string fill; /* one character; empty: a blank */
    char align;               /* < > ^ =, 0: numbers to the right, all else to the left */
    char sign;                /* + - or a blank, 0: - */
    bool zeros;               /* a 0 before the width, without an alignment: = for numbers */
    bool alternate;           /* 0x before hexadecimal numbers, and the like */
    char grouping;            /* , or _ between thousands, 0: none */
    char type;                /* d x X o b e E f F g G % s, 0: as the value is */
    int64_t width;
    int64_t precision; /* −1: none given */
};

/* Appends the formatted value, escaped if the builder is html and the value a string. Fails if the layout
 * does not fit the value or is too large. */
int jinja_lay_out(struct jinja_run *run, struct jinja_builder *builder, const struct jinja_layout *layout,
                  struct jinja_value value);

/* "the format 'd' does not fit a string": returns -EINVAL. */
int jinja_unfit(struct jinja_run *run, char type, struct jinja_value value);

#endif
