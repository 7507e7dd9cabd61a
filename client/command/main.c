/* SPDX-License-Identifier: MIT */
/* The quern command: its verbs, and what holds for all of them. */

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/terminal/io.h"
#include "client/command/verbs.h"
#include "common/log.h"
#include "common/program/program.h"
#include "gguf/truncation.h"

/* What argp answers to --version, of every verb too. */
const char *argp_program_version = "quern " QUERN_VERSION;

static const struct verb verbs[] = {
    {"serve", "serve a model with a pool of workers", verb_serve},
    {"run", "answer one prompt", verb_run},
    {"chat", "hold a conversation on the terminal", verb_chat},
    {"embed", "compute the embedding of a text", verb_embed},
    {"rank", "rank texts by how well they answer a query", verb_rank},
    {"status", "show the workers of a pool and its totals", verb_status},
    {"top", "show the workers and totals every second", verb_top},
    {"trace", "show what workers do, step by step", verb_trace},
    {"profile", "measure the kernels of a serving worker", verb_profile},
    {"trim", "make workers release memory that they do not use", verb_trim},
    {"reload", "replace the processes of a running pool, which keeps serving", verb_reload},
    {"scale", "change the number of workers of a running pool", verb_scale},
    {"drain", "take a worker out of a running pool, which keeps serving", verb_drain},
    {"undrain", "start a drained worker again", verb_undrain},
    {"inspect", "show metadata, hyperparameters and tensors of a model file", verb_inspect},
    {"tokenize", "convert text on stdin to token ids", verb_tokenize},
    {"detokenize", "convert token ids on stdin to text", verb_detokenize},
    {"grammar", "read a grammar or JSON Schema and check texts against it", verb_grammar},
    {"logits", "write the raw logits of given ids, to compare engines", verb_logits},
    {"keys", "make CURVE keys for a pool or a client", verb_keys},
    {"bench", "measure decoding, prefill and the pool itself", verb_bench},
    {"synth", "write a random-weight model of a real shape", verb_synth},
    {"quantize", "quantize a model", verb_quantize},
    {NULL, NULL, NULL},
};

/* At the end of every way out: what stdio still holds may not fit, and nobody else would notice. A reader
 * that went away wants no more and no word about it. */
static void check_stdout(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    if (errno == EPIPE)
        _exit(IO_EXIT_PIPE);
    program_error("stdout: %s", errno ? strerror(errno) : "not everything was written");
    _exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    static const struct verb_table table = {"quern", "verb", "VERB", verbs};
    program_hold_standard_files();
    program_forgo_core_dumps();
    program_survive_file_limits();
    log_init("quern");
    truncation_catch("quern", EXIT_FAILURE);
    atexit(check_stdout);
    argp_err_exit_status = PROGRAM_EXIT_USAGE;
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        puts(argp_program_version);
        return EXIT_SUCCESS;
    }
    return verb_dispatch(&table, argc, argv);
}
