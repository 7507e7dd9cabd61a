/* SPDX-License-Identifier: MIT */
/* The quern command: finds the verb and hands over. */

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/verbs.h"
#include "common/log.h"
#include "common/program.h"

static void print_verbs(FILE *out)
{
    fputs("usage: quern VERB [ARGUMENT…]      quern VERB --help tells more\n\n", out);
    for (const struct verb *v = verbs; v->name; v++)
        fprintf(out, "  %-10s %s\n", v->name, v->summary);
}

/* At the end of every way out: what stdio still holds may not fit, and nobody else would notice. */
static void check_stdout(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    log_error("stdout: %s", errno ? strerror(errno) : "not everything was written");
    _exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    program_hold_standard_files();
    log_init("quern");
    atexit(check_stdout);
    argp_err_exit_status = PROGRAM_EXIT_USAGE;
    if (argc < 2) {
        print_verbs(stderr);
        return PROGRAM_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_verbs(stdout);
        return EXIT_SUCCESS;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("quern " QUERN_VERSION);
        return EXIT_SUCCESS;
    }
    for (const struct verb *v = verbs; v->name; v++) {
        if (strcmp(argv[1], v->name) != 0)
            continue;
        char name[64];
        snprintf(name, sizeof name, "quern %s", v->name);
        argv[1] = name;
        return v->main(argc - 1, argv + 1);
    }
    fprintf(stderr, "quern: there is no verb \"%s\"\n", argv[1]);
    print_verbs(stderr);
    return PROGRAM_EXIT_USAGE;
}
