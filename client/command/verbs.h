/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_VERBS_H
#define CLIENT_COMMAND_VERBS_H

/* The verbs of the quern command, each in its own file verb_NAME.c.
 *
 * A verb gets its own arguments, argv[0] being "quern NAME", parses them with argp(3), and returns the exit
 * status: 0 success, 1 failure, 2 usage; 128 + a signal that ended it. Data goes to stdout, everything else
 * to stderr. */

#include "common/error.h"

/* Prints on stderr why a call failed: its reason, or else the code's text. Returns EXIT_FAILURE. */
int verb_fail(int code, const struct error *err);

typedef int verb_main(int argc, char **argv);

struct verb {
    const char *name;
    const char *summary; /* one line of the list */
    verb_main *main;
};

struct verb_table {
    const char *program;      /* "quern bench" */
    const char *noun;         /* what an entry of the table is: "benchmark" */
    const char *placeholder;  /* its placeholder in the usage: "NAME" */
    const struct verb *verbs; /* ended by a NULL name */
};

/* Finds the verb named by argv[1], runs it and returns its exit status. --help, -h, -? and `help` list the
 * table; `help NAME` is `NAME --help`; an unknown name is a usage error that suggests the closest one. */
int verb_dispatch(const struct verb_table *table, int argc, char **argv);

verb_main verb_bench, verb_chat, verb_detokenize, verb_drain, verb_embed, verb_grammar, verb_inspect,
    verb_keys, verb_logits, verb_profile, verb_quantize, verb_rank, verb_reload, verb_run, verb_scale,
    verb_serve, verb_status, verb_synth, verb_tokenize, verb_top, verb_trace, verb_trim, verb_undrain;

#endif
