/* SPDX-License-Identifier: MIT */
/* quern bench: a table of benchmarks, each with its own arguments and --help. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/bench.h"
#include "client/command/verbs.h"
#include "common/program.h"

/* The benchmarks, ended by a NULL name. */
static const struct verb benches[] = {
    {"decode", "ids per second of one sequence, and the share of the memory's bandwidth", bench_decode},
    {"prefill", "ids per second of a prompt", bench_prefill},
    {"pool", "tokens per second and latency of the pool itself, with tokens for free", bench_pool},
    {NULL, NULL, NULL},
};

static void print_benches(FILE *out)
{
    fputs("usage: quern bench NAME [ARGUMENT…]      quern bench NAME --help tells more\n\n", out);
    for (const struct verb *bench = benches; bench->name; bench++)
        fprintf(out, "  %-10s %s\n", bench->name, bench->summary);
}

int verb_bench(int argc, char **argv)
{
    if (argc < 2) {
        print_benches(stderr);
        return PROGRAM_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0) {
        print_benches(stdout);
        return EXIT_SUCCESS;
    }
    for (const struct verb *bench = benches; bench->name; bench++) {
        if (strcmp(argv[1], bench->name) != 0)
            continue;
        char name[64];
        snprintf(name, sizeof name, "quern bench %s", bench->name);
        argv[1] = name;
        return bench->main(argc - 1, argv + 1);
    }
    fprintf(stderr, "quern bench: there is no benchmark \"%s\"\n", argv[1]);
    print_benches(stderr);
    return PROGRAM_EXIT_USAGE;
}
