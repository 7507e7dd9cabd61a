/* SPDX-License-Identifier: MIT */
#ifndef COMMON_PROGRAM_ARGUMENTS_H
#define COMMON_PROGRAM_ARGUMENTS_H

/* Command lines: argp(3), and beside it what options set, as a table with a row for each whose value goes as
 * it is into a member of a struct. Whatever needs more than that is the parser's own. */

#include <argp.h>
#include <stddef.h>
#include <stdint.h>

enum argument_kind {
    ARGUMENT_NUMBER, /* a uint32_t, or an int where no bound is beyond it; strict, and within bounds */
    ARGUMENT_TEXT,   /* a const char *, which borrows from argv */
    ARGUMENT_FLAG    /* a bool, set to true */
};

struct argument {
    int key; /* of the option; 0 ends the table */
    enum argument_kind kind;
    size_t offset;        /* of the member */
    uint32_t least, most; /* of a number */
};

/* Sets the member of `into` that belongs to the key: 0. ARGP_ERR_UNKNOWN: the table has no such key. A number
 * that is none, or out of bounds, ends the program as argp_error does, with a reason that names the option as
 * it is called in `known`, the options of argp. */
error_t arguments_take(const struct argument *arguments, const struct argp_option *known, int key,
                       const char *text, const struct argp_state *state, void *into);

/* Parses a command line as argp_parse does without flags, and knows -h: it is --help, as -? is. An argp with
 * an -h of its own keeps it. */
void arguments_parse(const struct argp *argp, int argc, char **argv, void *input);

#endif
