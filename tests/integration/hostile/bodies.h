/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_BODIES_H
#define TESTS_INTEGRATION_HOSTILE_BODIES_H

/* Requests that cost more than they should: heads, and megabytes of JSON. They live as long as the process,
 * an attacker, which needs them until its end. */

#include <stddef.h>

#include "tests/integration/hostile/crowd.h"

struct body {
    char *text; /* [len], and a terminating zero if made by body_repeat */
    size_t len;
};

/* JSON of `size` bytes that is answered with 400. */
enum body_kind {
    BODY_BROKEN,     /* valid except for the last byte */
    BODY_TYPES,      /* true where an id belongs */
    BODY_OBJECTS,    /* {},{},{},… */
    BODY_UNKNOWN,    /* unknown members, each with a different name */
    BODY_DUPLICATES, /* the same member repeated */
    BODY_NESTING,    /* [[[[… */
    BODY_ESCAPES,    /* one string of escapes */
    BODY_NUMBERS,    /* integers of nineteen digits, and reals */
    BODY_DIGITS,     /* one number */
    BODY_KINDS
};
struct body body_bad(enum body_kind kind, size_t size);

/* `before`, then `unit` `n` times, separated by commas if `comma`, then `after`. */
struct body body_repeat(const char *before, const char *unit, size_t n, bool comma, const char *after);

/* A POST whose connection ends with its answer. `key` NULL: without a key. */
struct crowd_request request_post(const char *path, const char *key, struct body body);

/* A head from a format, without a body. */
struct crowd_request request_head(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
