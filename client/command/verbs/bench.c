/* SPDX-License-Identifier: MIT */
/* quern bench: a table of benchmarks, each with its own arguments and --help. */

#include "client/command/bench/bench.h"
#include "client/command/verbs.h"

int verb_bench(int argc, char **argv)
{
    static const struct verb benchmarks[] = {
        {"decode", "ids per second of one sequence, and its share of memory bandwidth", bench_decode},
        {"prefill", "ids per second of a prompt", bench_prefill},
        {"batch", "ids per second of several sequences at once", bench_batch},
        {"draft", "ids per second of one sequence with drafts and without", bench_draft},
        {"pool", "tokens per second and latency of the pool with a null backend", bench_pool},
        {"gateway", "the cost of HTTP: tokens per second, first token, memory", bench_gateway},
        {"prefix", "the savings of the prefix cache", bench_prefix},
        {0},
    };
    static const struct verb_table table = {"quern bench", "benchmark", "NAME", benchmarks};
    return verb_dispatch(&table, argc, argv);
}
