/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TEXT_TEMPLATE_FAILING_CALLS_H
#define TESTS_UNIT_TEXT_TEMPLATE_FAILING_CALLS_H

/* Calls that may fail while a template is compiled and rendered: memory, the charge for work, what values are
 * made with. Programs that are linked so (meson.build) count them, and have one fail. */

#include <stddef.h>

struct failing_calls {
    size_t n;    /* calls so far */
    size_t fail; /* the one that fails, from 1; 0: none does */
    int code;    /* with which it failed; 0: it has not */
    size_t work; /* what the last call found charged */
};

extern struct failing_calls failing_calls;

#endif
