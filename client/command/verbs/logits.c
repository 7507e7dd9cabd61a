/* SPDX-License-Identifier: MIT */
/* quern logits: what the model says about each next id, as raw float32.
 *
 * Drives a backend directly, without engine or pool, so that another program's logits can be compared with
 * the bytes that the kernels made. */

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/arguments.h"
#include "client/command/lone_sequence.h"
#include "client/command/terminal/progress.h"
#include "client/command/verbs.h"
#include "common/program/arguments.h"
#include "common/bytes.h"
#include "common/files/output_file.h"
#include "engine/backend/kv_type.h"
#include "proto/launch.h"
#include "model/model.h"

struct options {
    const char *path, *out, *device;
    struct ids ids;
    uint32_t n_threads, chunk;
    bool all, float_activations, portable;
    enum backend_kv_type kv_type;
    uint32_t library_rows;
};

static const struct argp_option known[] = {
    {"tokens", 't', "ID,ID,...", 0, "The input ids; none are added", 0},
    {"out", 'o', "FILE", 0, "Output file for little-endian float32; - is stdout", 0},
    {"all", 'a', NULL, 0, "Write the logits after every id, not only after the last", 0},
    {"device", 'd', "NAME", 0, QUERN_DEVICES " (default auto)", 0},
    {"float-activations", 'f', NULL, 0, "Do not round activations to 8 bits", 0},
    {"kv-type", 'k', "TYPE", 0,
     "Type of keys and values: " KV_TYPE_NAMES "; also prints the error against f16", 0},
    {"cublas", 'b', "ROWS", 0,
     "Use cuBLASLt for prompt steps of ROWS rows or more: off, auto or a number (default off)", 0},
    {"portable", 'p', NULL, 0, "Use the plain C kernels", 0},
    {"threads", 'j', "N", 0, "Threads (default: all cores)", 0},
    {"chunk", 'c', "N", 0, "Maximum ids of one step (512)", 0},
    {0}};

static const struct argument arguments[] = {
    {'a', ARGUMENT_FLAG, offsetof(struct options, all), 0, 0},
    {'d', ARGUMENT_TEXT, offsetof(struct options, device), 0, 0},
    {'f', ARGUMENT_FLAG, offsetof(struct options, float_activations), 0, 0},
    {'p', ARGUMENT_FLAG, offsetof(struct options, portable), 0, 0},
    {'j', ARGUMENT_NUMBER, offsetof(struct options, n_threads), 1, LAUNCH_MAX_THREADS},
    {'c', ARGUMENT_NUMBER, offsetof(struct options, chunk), 1, 4096},
    {'o', ARGUMENT_TEXT, offsetof(struct options, out), 0, 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    if (key == 't')
        argument_ids(state, arg, &options->ids);
    else if (key == 'k')
        options->kv_type = argument_kv_type(state, arg);
    else if (key == 'b')
        options->library_rows = argument_library_rows(state, arg);
    else if (key == ARGP_KEY_END && (!options->path || !options->out || options->ids.len == 0))
        argp_error(state, "a model, --tokens and --out are required");
    else if (arguments_take(arguments, known, key, arg, state, options) != 0)
        return argument_model(key, arg, state, &options->path);
    return 0;
}

/* The logits of one pass over the ids. */
static int compute(const struct options *options, struct lone_sequence_config config, float *logits,
                   struct error *err)
{
    struct lone_sequence *sequence = NULL;
    struct progress progress;
    config.loaded = progress_loaded;
    config.loaded_arg = &progress;
    progress_start(&progress);
    int r = lone_sequence_new(&config, &sequence, err);
    progress_end(&progress);
    if (r == 0)
        r = lone_sequence_feed(sequence, options->ids.data, (uint32_t)options->ids.len, options->all, logits,
                               err);
    lone_sequence_free(sequence);
    return r;
}

/* −log of the probability of one id. */
static double surprise(const float *logits, uint32_t n_vocab, int32_t id)
{
    double largest = (double)logits[0], sum = 0;
    for (uint32_t i = 1; i < n_vocab; i++)
        largest = fmax(largest, (double)logits[i]);
    for (uint32_t i = 0; i < n_vocab; i++)
        sum += exp((double)logits[i] - largest);
    return log(sum) + largest - (double)logits[id];
}

/* Of every id but the first, given those before it. */
static double perplexity(const struct ids *ids, const float *logits, uint32_t n_vocab)
{
    double sum = 0;
    for (size_t i = 1; i < ids->len; i++)
        sum += surprise(logits + (i - 1) * n_vocab, n_vocab, ids->data[i]);
    return exp(sum / (double)(ids->len - 1));
}

/* How far the logits are from those with keys and values in f16. */
static int compare(const struct options *options, const struct lone_sequence_config *config,
                   const float *logits, size_t n_floats, struct error *err)
{
    struct lone_sequence_config plain = *config;
    uint32_t n_vocab = config->model->params.n_vocab;
    plain.kv_type = BACKEND_KV_F16;
    float *wanted = calloc(n_floats, sizeof *wanted);
    if (!wanted)
        return error_set(err, -ENOMEM, "not enough memory for %zu logits", n_floats);
    int r = compute(options, plain, wanted, err);
    double error = 0, power = 0;
    for (size_t i = 0; i < n_floats && r == 0; i++) {
        double difference = (double)logits[i] - (double)wanted[i];
        error += difference * difference;
        power += (double)wanted[i] * (double)wanted[i];
    }
    if (r == 0)
        fprintf(stderr, "NMSE against keys and values in f16: %.3g\n", power > 0 ? error / power : 0);
    if (r == 0 && options->all && options->ids.len > 1)
        fprintf(stderr, "perplexity of %zu ids: %.6g, in f16 %.6g\n", options->ids.len - 1,
                perplexity(&options->ids, logits, n_vocab), perplexity(&options->ids, wanted, n_vocab));
    free(wanted);
    return r;
}

static int run(const struct options *options, const struct model *model, const struct backend_choice *backend,
               struct output_file *out, struct error *err)
{
    uint32_t n = (uint32_t)options->ids.len, n_vocab = model->params.n_vocab;
    for (uint32_t i = 0; i < n; i++)
        if ((uint32_t)options->ids.data[i] >= n_vocab)
            return error_set(err, -EINVAL, "id %d is outside the vocabulary of %u", options->ids.data[i],
                             n_vocab);
    struct lone_sequence_config config = {.model = model,
                                          .backend = *backend,
                                          .n_context = n,
                                          .chunk = options->chunk < n ? options->chunk : n,
                                          .n_threads = options->n_threads,
                                          .float_activations = options->float_activations,
                                          .kv_type = options->kv_type,
                                          .library_rows = options->library_rows,
                                          .portable = options->portable};
    size_t n_floats = (size_t)n_vocab * (options->all ? n : 1);
    float *logits = calloc(n_floats, sizeof *logits);
    if (!logits)
        return error_set(err, -ENOMEM, "not enough memory for %zu logits", n_floats);
    int r = compute(options, config, logits, err);
    if (r == 0 && options->kv_type != BACKEND_KV_DEFAULT && options->kv_type != BACKEND_KV_F16)
        r = compare(options, &config, logits, n_floats, err);
    if (r == 0)
        r = gguf_check_unchanged(model->gguf, err);
    if (r == 0)
        r = output_file_write(out, logits, n_floats * sizeof *logits, err);
    free(logits);
    return r;
}

int verb_logits(int argc, char **argv)
{
    static const struct argp argp = {
        .options = known,
        .parser = parse,
        .args_doc = "MODEL",
        .doc = "Writes the logits that follow the given ids, as the device's kernels compute them. The "
               "output file appears only when it is complete."};
    struct options options = {.device = "auto", .chunk = 512};
    arguments_parse(&argp, argc, argv, &options);
    struct error err = {0};
    struct model *model = NULL;
    struct backend_choice backend;
    struct output_file out;
    int r = lone_sequence_open_model(options.path, options.device, &model, &backend, &err);
    if (r == 0)
        r = gguf_check_output(model->gguf, options.out, &err);
    /* Before the work, so that a name that cannot be written is not found out at its end. */
    if (r == 0)
        r = output_file_open(&out, strcmp(options.out, "-") == 0 ? "/dev/stdout" : options.out, &err);
    if (r == 0) {
        r = run(&options, model, &backend, &out, &err);
        r = r == 0 ? output_file_commit(&out, &err) : output_file_discard(&out, r);
    }
    model_free(model);
    ids_deinit(&options.ids);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
