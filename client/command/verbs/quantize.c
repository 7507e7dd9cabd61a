/* SPDX-License-Identifier: MIT */
/* quern quantize: a model in F32, F16 or BF16 to a smaller one. The work is model/convert/quantize.c. */

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/command/arguments.h"
#include "client/command/verbs.h"
#include "common/program/arguments.h"
#include "common/clock.h"
#include "common/utf8.h"
#include "model/convert/quantize.h"

struct options {
    const char *words[3]; /* IN TYPE OUT */
    const struct mixture *mixture;
    struct quantize_options quantize;
};

struct totals {
    size_t from, to;
    size_t other, other_bytes; /* matrices in another format than the type has for them */
};

static int parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 't':
        options->quantize.n_threads = (unsigned)argument_number(state, "--threads", arg, 1, 64);
        return 0;
    case 'r':
        options->quantize.requantize = true;
        return 0;
    case ARGP_KEY_SUCCESS:
        options->mixture = mixture_by_name(options->words[1]);
        if (!options->mixture)
            argp_error(state, "unknown type \"%s\"", options->words[1]);
        return 0;
    default:
        return argument_words(key, arg, state, options->words, 3);
    }
}

static void show(void *arg, const struct quantize_step *step)
{
    struct totals *totals = arg;
    char name[48];
    utf8_printable(step->from->name, sizeof name, name);
    fprintf(stderr, "[%3zu/%zu] %-32s %6" PRIu64 " x %-6" PRIu64 " %4s -> %-4s %8.2f MB", step->i + 1,
            step->n, name, step->from->dims[0], step->from->dims[1], format_traits(step->from->format)->name,
            format_traits(step->format)->name, (double)step->size / 1e6);
    if (step->format != step->wanted) {
        fprintf(stderr, ", not %s: rows of %" PRIu64 " are not a multiple of %u",
                format_traits(step->wanted)->name, step->from->dims[0],
                (unsigned)format_traits(step->wanted)->block_elements);
        totals->other++;
        totals->other_bytes += step->size;
    }
    fputc('\n', stderr);
    totals->from += step->from->size;
    totals->to += step->size;
}

/* Ends the help with the types that there are. */
static char *help(int key, const char *text, void *input)
{
    char *list;
    size_t len;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    FILE *out = open_memstream(&list, &len);
    if (!out)
        return NULL;
    fputs("_M uses more bits for the tensors that matter most.\nTYPE:", out);
    for (const struct mixture *mixture = mixtures; mixture->name; mixture++)
        fprintf(out, " %s", mixture->name);
    fclose(out);
    return list;
}

int verb_quantize(int argc, char **argv)
{
    static const struct argp_option known[] = {
        {"threads", 't', "N", 0, "Threads (default: one for each core)", 0},
        {"requantize", 'r', NULL, 0, "Accept a file that is already quantized; the losses accumulate", 0},
        {0}};
    static const struct argp argp = {.options = known,
                                     .parser = parse,
                                     .args_doc = "IN TYPE OUT.gguf",
                                     .doc = "Quantizes a model in F32, F16 or BF16: a GGUF file or a folder "
                                            "with SafeTensors.\v",
                                     .help_filter = help};
    struct options options = {0};
    struct totals totals = {0};
    struct error err = {0};
    arguments_parse(&argp, argc, argv, &options);
    uint64_t start = clock_ns();
    int r = quantize_file(options.words[0], options.mixture, options.words[2], &options.quantize, show,
                          &totals, &err);
    if (r < 0)
        return verb_fail(r, &err);
    double seconds = (double)(clock_ns() - start) / (double)CLOCK_NS_PER_S;
    fprintf(stderr, "%s: %.1f MB -> %.1f MB in %.1f s\n", options.words[2], (double)totals.from / 1e6,
            (double)totals.to / 1e6, seconds);
    if (totals.other > 0)
        fprintf(stderr,
                "%s: %zu matrices, %.0f %% of the bytes, have a larger format than %s, because their rows "
                "are not a multiple of its blocks\n",
                options.words[2], totals.other, 100 * (double)totals.other_bytes / (double)totals.to,
                options.mixture->name);
    return EXIT_SUCCESS;
}
