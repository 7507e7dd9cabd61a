/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_BROKER_LOGGED_H
#define TESTS_UNIT_BROKER_LOGGED_H

/* Captures the log of a piece of code: between the two calls stderr is a pipe, whose 64 KiB must suffice. */

#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/run.h"

struct logged {
    int before, ends[2];
    char text[4096];
};

static inline void logged_begin(struct logged *logged)
{
    logged->before = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe2(logged->ends, O_NONBLOCK), 0);
    dup2(logged->ends[1], STDERR_FILENO);
}

/* Everything logged since, with times; "" if nothing. Valid until the next logged_begin. */
static inline const char *logged_end(struct logged *logged)
{
    dup2(logged->before, STDERR_FILENO);
    ssize_t n = read(logged->ends[0], logged->text, sizeof logged->text - 1);
    logged->text[n > 0 ? n : 0] = 0;
    close(logged->before);
    close(logged->ends[0]);
    close(logged->ends[1]);
    return logged->text;
}

#endif
