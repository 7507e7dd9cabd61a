/* SPDX-License-Identifier: MIT */
/* Logits thousands of ids behind the context that a model was made for, with the options of a pool that
 * stretch it: --rope-scaling, --rope-scale, --rope-freq-base, --yarn-*.
 *
 * long/qwen3.case.json has options, a generator of ids, and after how many of them logits are compared;
 * qwen3.logits.f32 has those logits for each set of options, in float64 by another program (make_long.py).
 * Weights, keys and values are floats here, so that the bound is one of arithmetic. Each set of options is
 * also far from what the others make: a test with a wrong scaling fails. */

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/lone_sequence.h"
#include "common/program/overrides.h"
#include "model/model.h"
#include "tests/conformance/reference.h"

#define BOUND   1e-9 /* seen: 6e-12 */
#define FAR     1e-6
#define CHUNK   256
#define MOST    4 /* ends, and sets of options */
#define N_VOCAB 48

struct reading {
    char model[4200];
    uint32_t n_ends, n_options;
    uint32_t ends[MOST];
    char options[MOST][OVERRIDES_TEXT];
    int32_t *ids; /* as many as the last end says */
    float expected[MOST][MOST][N_VOCAB];
};

static double nmse_of(const float *logits, const float *expected)
{
    double mean = 0, error = 0, spread = 0;
    for (uint32_t i = 0; i < N_VOCAB; i++)
        mean += expected[i] / (double)N_VOCAB;
    for (uint32_t i = 0; i < N_VOCAB; i++) {
        error += ((double)logits[i] - expected[i]) * ((double)logits[i] - expected[i]);
        spread += (expected[i] - mean) * (expected[i] - mean);
    }
    return error / spread;
}

static int32_t *make_ids(json_t *generator, uint32_t n)
{
    int32_t *ids = calloc(n, sizeof *ids);
    uint64_t multiplier, increment, state, shift;
    if (!ids || json_unpack(generator, "{s:I, s:I, s:I, s:I}", "multiplier", &multiplier, "increment",
                            &increment, "first", &state, "shift", &shift) < 0) {
        free(ids);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        state = state * multiplier + increment;
        ids[i] = (int32_t)((state >> shift) % N_VOCAB);
    }
    return ids;
}

static bool read_options(json_t *sets, struct reading *reading)
{
    size_t i;
    json_t *set, *value;
    const char *name;
    struct error err;
    json_array_foreach(sets, i, set) json_object_foreach(set, name, value)
    {
        if (i >= MOST || overrides_add(reading->options[i], name, json_string_value(value), &err) < 0)
            return false;
    }
    reading->n_options = (uint32_t)json_array_size(sets);
    return reading->n_options > 0;
}

static bool read_case(const char *folder, struct reading *ret_reading)
{
    char path[4300];
    json_error_t why;
    struct reading *reading = ret_reading;
    snprintf(reading->model, sizeof reading->model, "%s/qwen3.gguf", folder);
    snprintf(path, sizeof path, "%s/qwen3.case.json", folder);
    json_t *test = json_load_file(path, 0, &why), *ends = json_object_get(test, "ends");
    reading->n_ends = (uint32_t)json_array_size(ends);
    for (uint32_t i = 0; i < reading->n_ends && i < MOST; i++)
        reading->ends[i] = (uint32_t)json_integer_value(json_array_get(ends, i));
    bool good = reading->n_ends > 0 && reading->n_ends <= MOST &&
                read_options(json_object_get(test, "options"), reading);
    if (good)
        reading->ids = make_ids(json_object_get(test, "generator"), reading->ends[reading->n_ends - 1]);
    json_decref(test);
    snprintf(path, sizeof path, "%s/qwen3.logits.f32", folder);
    FILE *file = fopen(path, "rb");
    for (uint32_t o = 0; file && o < reading->n_options; o++)
        for (uint32_t e = 0; e < reading->n_ends; e++)
            good &= fread(reading->expected[o][e], sizeof(float), N_VOCAB, file) == N_VOCAB;
    if (file)
        fclose(file);
    return good && file && reading->ids;
}

/* The logits at each end, with a set of options. */
static int compute(const struct reading *reading, uint32_t o, float ret_logits[MOST][N_VOCAB],
                   struct error *err)
{
    struct model *model = NULL;
    struct lone_sequence *sequence = NULL;
    int r = model_open_overridden(reading->model, reading->options[o], false, &model, err);
    if (r < 0)
        return r;
    const struct lone_sequence_config config = {.model = model,
                                                .backend = {.ops = &backend_cpu},
                                                .n_context = model->params.n_context,
                                                .chunk = CHUNK,
                                                .kv_type = BACKEND_KV_F32,
                                                .float_activations = true};
    r = model->params.n_vocab == N_VOCAB ? lone_sequence_new(&config, &sequence, err)
                                         : error_set(err, -EINVAL, "another vocabulary");
    for (uint32_t e = 0, at = 0; e < reading->n_ends && r == 0; at = reading->ends[e++])
        r = lone_sequence_feed(sequence, reading->ids + at, reading->ends[e] - at, false, ret_logits[e], err);
    lone_sequence_free(sequence);
    model_free(model);
    return r;
}

static bool check(const struct reading *reading, uint32_t o)
{
    static float logits[MOST][N_VOCAB];
    struct error err = {{0}};
    bool passed = true;
    if (compute(reading, o, logits, &err) < 0) {
        printf("set %u: refused: %s   FAILED\n", o, err.text);
        return false;
    }
    for (uint32_t e = 0; e < reading->n_ends; e++) {
        const uint32_t other = (o + 1) % reading->n_options;
        const double nmse = nmse_of(logits[e], reading->expected[o][e]),
                     off = nmse_of(logits[e], reading->expected[other][e]);
        const bool ok = nmse <= BOUND && off >= FAR;
        printf("set %u after %4u ids: NMSE %.1e (≤ %.0e), of another scaling %.1e (≥ %.0e)   %s\n", o,
               reading->ends[e], nmse, BOUND, off, FAR, ok ? "passed" : "FAILED");
        passed &= ok;
    }
    return passed;
}

int main(int argc, char **argv)
{
    static struct reading reading;
    bool passed = true;
    if (!read_case(reference_folder(argc, argv, "long"), &reading)) {
        printf("the case cannot be read   FAILED\n");
        return 1;
    }
    for (uint32_t o = 0; o < reading.n_options; o++)
        passed &= check(&reading, o);
    free(reading.ids);
    return !passed;
}
