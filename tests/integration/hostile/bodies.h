/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_BODIES_H
#define TESTS_INTEGRATION_HOSTILE_BODIES_H

/* Requests that cost more than they should: heads, and JSON by the megabyte. What is made lives as long as
 * the process, an attacker, which needs it until its end. */

#include <stddef.h>

#include "tests/integration/hostile/crowd.h"

struct body {
    char *text; /* [len] and a zero where body_repeat made it */
    size_t len;
};

/* JSON that ends in 400, of `size` bytes. */
enum body_kind {
    BODY_BROKEN,     /* well but for its last byte */
    BODY_TYPES,      /* true where an id belongs */
    BODY_OBJECTS,    /* {},{},{},… */
    BODY_UNKNOWN,    /* members that nobody knows, all of another name */
    BODY_DUPLICATES, /* one member over and over */
    BODY_NESTING,    /* [[[[… */
    BODY_ESCAPES,    /* one string of escapes */
    BODY_NUMBERS,    /* integers of nineteen digits, and reals */
    BODY_DIGITS,     /* one number */
    BODY_KINDS
};
struct body body_bad(enum body_kind kind, size_t size);

/* `before`, `n` times `unit`, separated by commas where `comma`, `after`. */
struct body body_repeat(const char *before, const char *unit, size_t n, bool comma, const char *after);

/* A POST whose connection ends with its answer. `key` NULL: without one. */
struct crowd_request request_post(const char *path, const char *key, struct body body);

/* Any head, printed; no body. */
struct crowd_request request_head(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
