/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TEXT_TEMPLATE_FAILING_CALLS_H
#define TESTS_UNIT_TEXT_TEMPLATE_FAILING_CALLS_H

/* Calls that may fail while a template is compiled and rendered: memory, the charge for work, and the making
 * of values. Programs linked this way (meson.build) count them and can make one fail. */

#include <stddef.h>

struct failing_calls {
    size_t n;    /* calls so far */
    size_t fail; /* the call that fails, from 1; 0: none */
    int code;    /* the code with which it failed; 0: it has not */
    size_t work; /* work charged at the last call */
};

extern struct failing_calls failing_calls;

#endif
