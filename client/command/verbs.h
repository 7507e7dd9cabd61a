/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_VERBS_H
#define CLIENT_COMMAND_VERBS_H

/* The verbs of the quern command: a file each, verb_NAME.c.
 *
 * A verb gets its own arguments, argv[0] being "quern NAME", parses them with argp(3), and returns the exit
 * status: 0 success, 1 failure, 2 usage. Data goes to stdout, everything else to stderr. */

enum { EXIT_USAGE = 2 };

typedef int verb_main(int argc, char **argv);

struct verb {
    const char *name;
    const char *summary; /* one line of `quern --help` */
    verb_main *main;
};

/* The table, ended by a NULL name. */
extern const struct verb verbs[];

#endif
