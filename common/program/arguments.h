/* SPDX-License-Identifier: MIT */
#ifndef COMMON_PROGRAM_ARGUMENTS_H
#define COMMON_PROGRAM_ARGUMENTS_H

/* Command lines: argp(3), with a table of the options that only set a member of a struct. The program's own
 * argp parser handles the others. */

#include <argp.h>
#include <stddef.h>
#include <stdint.h>

enum argument_kind {
    ARGUMENT_NUMBER, /* a uint32_t, or an int if the bounds fit; strict, and checked against the bounds */
    ARGUMENT_TEXT,   /* a const char *, which borrows from argv */
    ARGUMENT_FLAG    /* a bool, set to true */
};

struct argument {
    int key; /* of the option; 0 ends the table */
    enum argument_kind kind;
    size_t offset;        /* of the member */
    uint32_t least, most; /* of a number */
};

/* Sets the member of `into` that belongs to the key: 0. ARGP_ERR_UNKNOWN: the table has no such key. A
 * malformed or out-of-bounds number ends the program as argp_error does, with a reason that names the option
 * as in `known`, the options of argp. */
error_t arguments_take(const struct argument *arguments, const struct argp_option *known, int key,
                       const char *text, const struct argp_state *state, void *into);

/* Parses a command line as argp_parse does without flags; also accepts -h for --help, like -?, unless the
 * argp has its own -h. */
void arguments_parse(const struct argp *argp, int argc, char **argv, void *input);

#endif
