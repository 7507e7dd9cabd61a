/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_VERBS_H
#define CLIENT_COMMAND_VERBS_H

/* The verbs of the quern command: a file each, verb_NAME.c.
 *
 * A verb gets its own arguments, argv[0] being "quern NAME", parses them with argp(3), and returns the exit
 * status: 0 success, 1 failure, 2 usage. Data goes to stdout, everything else to stderr. */

#include "common/error.h"

/* Tells on stderr why a call failed: its reason, or else what the code says. Returns EXIT_FAILURE. */
int verb_fail(int code, const struct error *err);

typedef int verb_main(int argc, char **argv);

struct verb {
    const char *name;
    const char *summary; /* one line of `quern --help` */
    verb_main *main;
};

/* The table, ended by a NULL name. */
extern const struct verb verbs[];

verb_main verb_bench, verb_chat, verb_inspect, verb_logits, verb_quantize, verb_run, verb_serve, verb_status,
    verb_synth, verb_tokenize, verb_top;

#endif
