/* SPDX-License-Identifier: MIT */
/* The table of verbs, in the order of `quern --help`. */

#include "client/command/verbs.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"

const struct verb verbs[] = {
    {"serve", "serve a model with a pool of workers", verb_serve},
    {"run", "answer one prompt", verb_run},
    {"chat", "a conversation on the terminal", verb_chat},
    {"status", "the workers of a pool and its totals", verb_status},
    {"top", "the same, every second", verb_top},
    {"inspect", "metadata, hyperparameters and tensors of a model file", verb_inspect},
    {"tokenize", "text on stdin to token ids", verb_tokenize},
    {"logits", "the raw logits of given ids, to compare engines with", verb_logits},
    {"bench", "measure decoding, prefill, and more", verb_bench},
    {"synth", "write a random-weight model of a real shape", verb_synth},
    {"quantize", "make a model smaller", verb_quantize},
    {NULL, NULL, NULL},
};

int verb_fail(int code, const struct error *err)
{
    log_error("%s", err->text[0] ? err->text : strerror(-code));
    return EXIT_FAILURE;
}
