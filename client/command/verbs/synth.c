/* SPDX-License-Identifier: MIT */
/* quern synth: a random-weight model of a real shape. The work is model/convert/synth.c. */

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "client/command/arguments.h"
#include "client/command/verbs.h"
#include "common/program/arguments.h"
#include "common/clock.h"
#include "model/convert/synth.h"
#include "model/description.h"

struct options {
    const char *words[3]; /* SHAPE TYPE OUT */
    struct synth_shape shape;
    uint32_t layers; /* 0: as many as the shape has */
    const struct mixture *mixture;
    uint64_t seed;
};

static int parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    const struct synth_shape *shape;
    switch (key) {
    case 'l':
        options->layers = (uint32_t)argument_number(state, "--layers", arg, 1, MODEL_LISTED_LAYERS);
        return 0;
    case 's':
        options->seed = argument_number(state, "--seed", arg, 0, UINT64_MAX);
        return 0;
    case ARGP_KEY_SUCCESS:
        shape = synth_shape_by_name(options->words[0]);
        if (!shape)
            argp_error(state, "unknown shape \"%s\"", options->words[0]);
        options->shape = options->layers ? synth_shape_of_layers(shape, options->layers) : *shape;
        options->mixture = mixture_by_name(options->words[1]);
        if (!options->mixture)
            argp_error(state, "unknown type \"%s\"", options->words[1]);
        return 0;
    default:
        return argument_words(key, arg, state, options->words, 3);
    }
}

/* Ends the help with the shapes and types that there are. */
static char *help(int key, const char *text, void *input)
{
    char *list;
    size_t len;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    FILE *out = open_memstream(&list, &len);
    if (!out)
        return NULL;
    fputs("SHAPE:", out);
    for (const struct synth_shape *shape = synth_shapes; shape->name; shape++)
        fprintf(out, " %s", shape->name);
    fputs("\nTYPE:", out);
    for (const struct mixture *mixture = mixtures; mixture->name; mixture++)
        fprintf(out, " %s", mixture->name);
    fclose(out);
    return list;
}

int verb_synth(int argc, char **argv)
{
    static const struct argp_option known[] = {
        {"layers", 'l', "N", 0, "Number of layers, of the same widths (default: the shape's)", 0},
        {"seed", 's', "N", 0, "Seed of the weights (default 1)", 0},
        {0}};
    static const struct argp argp = {.options = known,
                                     .parser = parse,
                                     .args_doc = "SHAPE TYPE OUT.gguf",
                                     .doc = "Writes a model of a real shape with random weights, for "
                                            "benchmarks.\v",
                                     .help_filter = help};
    struct options options = {.seed = 1};
    struct error err = {0};
    struct stat st;
    arguments_parse(&argp, argc, argv, &options);
    uint64_t start = clock_ns();
    int r = synth_write(&options.shape, options.mixture, options.seed, options.words[2], &err);
    if (r < 0)
        return verb_fail(r, &err);
    double seconds = (double)(clock_ns() - start) / (double)CLOCK_NS_PER_S;
    if (stat(options.words[2], &st) == 0)
        fprintf(stderr, "%s: %.1f MB in %.1f s\n", options.words[2], (double)st.st_size / 1e6, seconds);
    return EXIT_SUCCESS;
}
