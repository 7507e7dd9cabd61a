/* SPDX-License-Identifier: MIT */
/* Logits against float64 references computed from the same files by another program.
 *
 * Each NAME.case.json of the reference's models/ names a model file, three prompts, and for each its greedy
 * continuation with the margins of its steps in standard deviations of the logits; NAME.logits.f32 holds the
 * logits after each prompt. A case passes when
 *   1. the NMSE of every prompt's logits is within the bound of the file's formats;
 *   2. greedy ids agree up to the first step whose margin is too small to tell, given the NMSE;
 *   3. with float activations quantized files reach 2e-5, so that no error of a format hides in rounding.
 *
 * $1 is the folder; $2 a device ("emu"), which is then asked 1 and 2. Else it is the CPU, with every build of
 * its kernels. A case that is refused has failed, but for those that are listed as unsupported below.
 *
 * With $3, a type of keys and values ("q8_0"), the reference is the CPU that keeps them in that type: the
 * device's logits are within the bound of the file's formats of its, and they are not those of f16, but near.
 */

#include <errno.h>
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "client/command/lone_sequence.h"
#include "tests/conformance/reference.h"
#include "cpu/kernels/kernels.h"
#include "engine/backend/backends.h"
#include "engine/backend/kv_type.h"
#include "model/model.h"

#define PLAIN_BOUND  2e-5
#define CHUNK        64
#define KV_TIPPED    1e-4 /* numbers between two quants may become either */
#define KV_BOUND     5e-2 /* of what a type of keys and values makes of logits */
#define KV_TIPPED_Q4 1e-3 /* the same of 4 bits, whose steps are longer */
#define KV_BOUND_Q4  1

struct prompt {
    int32_t *ids;
    uint32_t n_ids;
    const float *expected; /* [n_vocab] */
    json_t *greedy, *margins;
};

struct verdict {
    double nmse, second; /* the worst prompt's, and the next one's */
    int agreed;          /* greedy steps that agree */
    int wrong;           /* steps that differ and should not */
};

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static double bound_of(const char *name)
{
    if (ends_with(name, "-F32"))
        return 1e-5;
    if (strncmp(name, "gemma2", strlen("gemma2")) == 0) /* 26 layers of rounding to 8 bits */
        return 1.5e-2;
    return ends_with(name, "-F16") || ends_with(name, "-BF16") ? 3e-4 : 5e-3;
}

static void note(struct verdict *verdict, double nmse)
{
    if (!(nmse <= verdict->nmse)) { /* NaN is the worst */
        verdict->second = verdict->nmse;
        verdict->nmse = nmse;
    } else if (!(nmse <= verdict->second)) {
        verdict->second = nmse;
    }
}

/* The NMSE that is judged. Rounding to 8 bits can tip the choice of an expert, and then all else differs: of
 * quantized mixtures one prompt does not count. */
static double judged(const char *name, const struct model *model, const struct verdict *verdict)
{
    const bool quantized = bound_of(name) == 5e-3;
    return quantized && model->params.n_experts > 0 ? verdict->second : verdict->nmse;
}

static double nmse_of(const float *logits, const float *expected, uint32_t n)
{
    double mean = 0, error = 0, spread = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += expected[i] / (double)n;
    for (uint32_t i = 0; i < n; i++) {
        error += ((double)logits[i] - expected[i]) * ((double)logits[i] - expected[i]);
        spread += (expected[i] - mean) * (expected[i] - mean);
    }
    return error / spread;
}

static int32_t best_of(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

/* Runs one prompt and its continuation; adds to the verdict. */
static int check_prompt(struct lone_sequence *sequence, const struct prompt *prompt, uint32_t n_vocab,
                        float *logits, struct verdict *verdict, struct error *err)
{
    lone_sequence_rewind(sequence, 0);
    int r = lone_sequence_feed(sequence, prompt->ids, prompt->n_ids, false, logits, err);
    if (r < 0)
        return r;
    double nmse = nmse_of(logits, prompt->expected, n_vocab);
    note(verdict, nmse);
    for (size_t i = 0; i < json_array_size(prompt->greedy); i++) {
        double margin = json_number_value(json_array_get(prompt->margins, i));
        if (margin < fmax(0.05, 4 * sqrt(2 * nmse)))
            break;
        if (i > 0) { /* logits that nobody would judge are not computed */
            int32_t before = (int32_t)json_integer_value(json_array_get(prompt->greedy, i - 1));
            r = lone_sequence_feed(sequence, &before, 1, false, logits, err);
            if (r < 0)
                return r;
        }
        if (best_of(logits, n_vocab) != json_integer_value(json_array_get(prompt->greedy, i))) {
            verdict->wrong++;
            break;
        }
        verdict->agreed++;
    }
    return r;
}

static struct lone_sequence_config config_of(const struct backend_ops *backend, const struct model *model)
{
    const uint32_t most = model->params.n_context;
    return (struct lone_sequence_config){
        .model = model, .backend = {.ops = backend}, .n_context = most < 512 ? most : 512, .chunk = CHUNK};
}

static int check_model(const struct backend_ops *backend, const struct model *model,
                       const struct prompt *prompts, size_t n_prompts, bool float_activations,
                       struct verdict *ret_verdict, struct error *err)
{
    struct lone_sequence_config config = config_of(backend, model);
    config.float_activations = float_activations;
    struct lone_sequence *sequence = NULL;
    float *logits = calloc(model->params.n_vocab, sizeof *logits);
    int r = logits ? lone_sequence_new(&config, &sequence, err) : -ENOMEM;
    struct verdict verdict = {0};
    for (size_t i = 0; i < n_prompts && r == 0; i++)
        r = check_prompt(sequence, &prompts[i], model->params.n_vocab, logits, &verdict, err);
    lone_sequence_free(sequence);
    free(logits);
    if (r == 0)
        *ret_verdict = verdict;
    return r;
}

static float *read_floats(const char *path, size_t n)
{
    float *floats = calloc(n, sizeof *floats);
    FILE *file = fopen(path, "rb");
    bool complete = floats && file && fread(floats, sizeof *floats, n, file) == n;
    if (file)
        fclose(file);
    if (!complete) {
        free(floats);
        return NULL;
    }
    return floats;
}

static size_t read_prompts(json_t *test, const float *expected, uint32_t n_vocab, struct prompt prompts[8])
{
    json_t *all = json_object_get(test, "prompts");
    size_t n = json_array_size(all) < 8 ? json_array_size(all) : 8;
    for (size_t i = 0; i < n; i++) {
        json_t *ids = json_array_get(all, i), *greedy = json_array_get(json_object_get(test, "greedy"), i);
        struct prompt *prompt = &prompts[i];
        *prompt = (struct prompt){.n_ids = (uint32_t)json_array_size(ids),
                                  .expected = expected + i * n_vocab,
                                  .greedy = json_object_get(greedy, "ids"),
                                  .margins = json_object_get(greedy, "margin_in_std")};
        prompt->ids = calloc(prompt->n_ids, sizeof *prompt->ids);
        for (size_t j = 0; prompt->ids && j < prompt->n_ids; j++)
            prompt->ids[j] = (int32_t)json_integer_value(json_array_get(ids, j));
    }
    return n;
}

/* One case on a device. True when it passes. */
static bool check_on_device(const struct backend_ops *backend, const char *name, const struct model *model,
                            const struct prompt *prompts, size_t n_prompts)
{
    struct verdict rounded;
    struct error err = {0};
    if (check_model(backend, model, prompts, n_prompts, false, &rounded, &err) < 0) {
        printf("%-24s refused: %s   FAILED\n", name, err.text);
        return false;
    }
    const double bound = bound_of(name);
    const double nmse = judged(name, model, &rounded);
    const bool ok = nmse <= bound && rounded.wrong == 0;
    printf("%-24s %-9s NMSE %.1e (≤ %.0e)  greedy %2d agree, %d wrong   %s\n", name, backend->name, nmse,
           bound, rounded.agreed, rounded.wrong, ok ? "passed" : "FAILED");
    return ok;
}

/* The logits of the prompts' last ids, [n_prompts][n_vocab]. */
static int compute(const struct backend_ops *backend, const struct model *model, enum backend_kv_type kv_type,
                   const struct prompt *prompts, size_t n_prompts, float *ret_logits, struct error *err)
{
    struct lone_sequence_config config = config_of(backend, model);
    config.kv_type = kv_type;
    struct lone_sequence *sequence = NULL;
    int r = lone_sequence_new(&config, &sequence, err);
    for (size_t i = 0; i < n_prompts && r == 0; i++) {
        lone_sequence_rewind(sequence, 0);
        r = lone_sequence_feed(sequence, prompts[i].ids, prompts[i].n_ids, false,
                               ret_logits + i * model->params.n_vocab, err);
    }
    lone_sequence_free(sequence);
    return r;
}

/* One case with keys and values in another type. True when it passes. */
static bool check_kept_in(const struct backend_ops *backend, enum backend_kv_type kv_type, const char *name,
                          const struct model *model, const struct prompt *prompts, size_t n_prompts)
{
    const uint32_t n_vocab = model->params.n_vocab;
    float *logits = calloc(3 * n_prompts * n_vocab, sizeof *logits);
    float *ours = logits, *f16 = ours + n_prompts * n_vocab, *cpu = f16 + n_prompts * n_vocab;
    struct error err = {0};
    int r = logits ? compute(backend, model, kv_type, prompts, n_prompts, ours, &err) : -ENOMEM;
    if (r == 0)
        r = compute(backend, model, BACKEND_KV_F16, prompts, n_prompts, f16, &err);
    if (r == 0)
        r = compute(&backend_cpu, model, kv_type, prompts, n_prompts, cpu, &err);
    struct verdict off = {0}, changed = {0};
    for (size_t i = 0; i < n_prompts && r == 0; i++) {
        note(&off, nmse_of(ours + i * n_vocab, cpu + i * n_vocab, n_vocab));
        note(&changed, nmse_of(ours + i * n_vocab, f16 + i * n_vocab, n_vocab));
    }
    free(logits);
    if (r < 0) {
        printf("%-24s refused: %s   FAILED\n", name, err.text);
        return false;
    }
    const bool q4 = kv_type == BACKEND_KV_Q4;
    const double kv_bound = q4 ? KV_BOUND_Q4 : KV_BOUND;
    const double bound = fmax(bound_of(name), q4 ? KV_TIPPED_Q4 : KV_TIPPED),
                 nmse = judged(name, model, &off), from_f16 = judged(name, model, &changed);
    const bool ok = nmse <= bound && from_f16 > 0 && from_f16 <= kv_bound;
    printf("%-24s %-9s NMSE against the CPU %.1e (≤ %.0e), against f16 %.1e (≤ %.0e)   %s\n", name,
           backend->name, nmse, bound, from_f16, kv_bound, ok ? "passed" : "FAILED");
    return ok;
}

/* One case on every build of the kernels that this machine runs, and the plain path of each. True when it
 * passes. */
static bool check_case(const char *name, const struct model *model, const struct prompt *prompts,
                       size_t n_prompts)
{
    bool passed = true;
    const struct kernels *kernels;
    for (uint32_t i = 0; (kernels = kernels_at(i)); i++) {
        setenv("QUERN_KERNELS", kernels->name, 1);
        struct verdict rounded, plain;
        struct error err = {0};
        if (check_model(&backend_cpu, model, prompts, n_prompts, false, &rounded, &err) < 0 ||
            check_model(&backend_cpu, model, prompts, n_prompts, true, &plain, &err) < 0) {
            printf("%-24s refused: %s   FAILED\n", name, err.text);
            return false;
        }
        double nmse = judged(name, model, &rounded), bound = bound_of(name),
               plain_bound = bound < PLAIN_BOUND || bound == 3e-4 ? bound : PLAIN_BOUND;
        bool ok = nmse <= bound && plain.nmse <= plain_bound && rounded.wrong + plain.wrong == 0;
        printf(
            "%-24s %-9s NMSE %.1e (≤ %.0e)  greedy %2d agree, %d wrong   float activations %.1e (≤ %.0e), %d "
            "wrong   %s\n",
            name, kernels->name, nmse, bound, rounded.agreed, rounded.wrong, plain.nmse, plain_bound,
            plain.wrong, ok ? "passed" : "FAILED");
        passed &= ok;
    }
    return passed;
}

/* What is asked. */
struct question {
    struct backend_choice device; /* ops NULL: the CPU */
    enum backend_kv_type kv_type; /* BACKEND_KV_DEFAULT: the references are those of the files */
};

static bool check_prompts(const struct question *question, const char *name, const struct model *model,
                          const struct prompt *prompts, size_t n_prompts)
{
    const struct backend_ops *device = question->device.ops;
    if (question->kv_type != BACKEND_KV_DEFAULT)
        return check_kept_in(device, question->kv_type, name, model, prompts, n_prompts);
    return device ? check_on_device(device, name, model, prompts, n_prompts)
                  : check_case(name, model, prompts, n_prompts);
}

/* Cases of what is not supported: they must be refused, and by the name of what is missing. */
static const struct unsupported {
    const char *name, *reason;
} unsupported[] = {
    {"bert-", "architecture \"bert\""},
    {"deepseek2-", "architecture \"deepseek2\""},
    {"glm4moe-", "architecture \"glm4moe\""},
    {"jina-bert-v2-", "architecture \"jina-bert-v2\""},
    {"lfm2-", "architecture \"lfm2\""},
    {"llama-IQ1_", "IQ1_"},
    {"llama-IQ2_", "IQ2_"},
    {"llama-IQ3_", "IQ3_"},
    {"llama-NVFP4", "NVFP4"},
    {"llama-TQ", "TQ"},
    {"mamba2-", "architecture \"mamba2\""},
    {"minimax-m2-", "architecture \"minimax-m2\""},
    {"nemotron_h", "architecture \"nemotron_h"},
    {"nomic-bert-", "architecture \"nomic-bert\""},
    {"qwen3-rerank-", "tensor cls.output.weight"},
    {"xlmr-rerank-", "architecture \"bert\""},
};

static const struct unsupported *find_unsupported(const char *name)
{
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (strncmp(name, unsupported[i].name, strlen(unsupported[i].name)) == 0)
            return &unsupported[i];
    return NULL;
}

static bool check_refusal(const char *name, const char *reason, const char *said)
{
    const bool ok = strstr(said, reason) != NULL;
    printf("%-24s refused: %s   %s\n", name, said, ok ? "as it should be" : "FAILED");
    return ok;
}

static bool check_file(const struct question *question, const char *folder, const char *case_path)
{
    char name[256], path[4400];
    const char *base = strrchr(case_path, '/') + 1;
    snprintf(name, sizeof name, "%.*s", (int)(strlen(base) - strlen(".case.json")), base);
    json_error_t json_err;
    json_t *test = json_load_file(case_path, 0, &json_err);
    struct model *model = NULL;
    float *expected = NULL;
    struct prompt prompts[8] = {0};
    struct error err = {0};
    bool passed = false;
    snprintf(path, sizeof path, "%s/%s", folder,
             test ? json_string_value(json_object_get(test, "model")) : "");
    if (!test) {
        printf("%s: %s\n", case_path, json_err.text);
        goto out;
    }
    const struct unsupported *missing = find_unsupported(name);
    if (model_open(path, false, &model, &err) < 0 && missing) {
        passed = check_refusal(name, missing->reason, err.text);
        goto out;
    }
    if (json_object_get(test, "pooling")) { /* conformance_embeddings judges it */
        passed = true;
        goto out;
    }
    if (missing) {
        printf("%-24s is supported, though listed as not   FAILED\n", name);
        goto out;
    }
    if (!model) {
        printf("%-24s refused: %s   FAILED\n", name, err.text); /* no device has been asked yet */
        goto out;
    }
    size_t n_prompts = json_array_size(json_object_get(test, "prompts"));
    snprintf(path, sizeof path, "%s/%s.logits.f32", folder, name);
    expected = read_floats(path, n_prompts * model->params.n_vocab);
    if (!expected) {
        printf("%s: not %zu rows of logits\n", path, n_prompts);
        goto out;
    }
    n_prompts = read_prompts(test, expected, model->params.n_vocab, prompts);
    passed = n_prompts > 0 && check_prompts(question, name, model, prompts, n_prompts);
out:
    for (size_t i = 0; i < 8; i++)
        free(prompts[i].ids);
    free(expected);
    model_free(model);
    json_decref(test);
    return passed;
}

int main(int argc, char **argv)
{
    const char *folder = reference_folder(argc, argv, "models");
    char pattern[4200];
    snprintf(pattern, sizeof pattern, "%s/*.case.json", folder);
    glob_t files;
    if (glob(pattern, 0, NULL, &files) != 0) {
        printf("%s holds no cases: skipped\n", folder);
        return REFERENCE_ABSENT;
    }
    struct question question = {.kv_type = BACKEND_KV_DEFAULT};
    struct error err = {0};
    if ((argc > 2 && backend_choose(argv[2], NULL, &question.device, &err) < 0) ||
        (argc > 3 && kv_type_by_name(argv[3], &question.kv_type, &err) < 0)) {
        printf("%s\n", err.text);
        globfree(&files);
        return 1;
    }
    int failed = 0;
    for (size_t i = 0; i < files.gl_pathc; i++)
        failed += !check_file(&question, folder, files.gl_pathv[i]);
    printf("%d of %zu cases failed\n", failed, files.gl_pathc);
    globfree(&files);
    return failed != 0;
}
