/* SPDX-License-Identifier: MIT */
/* Embeddings against float64 references computed from the same files by another program.
 *
 * NAME.embeddings.f32 holds, for each prompt of NAME.case.json, the mean of the final states, or what else
 * the file says to pool, of length one. NAME.pooled.f32 has the same before it gets that length. In a folder
 * with such files cases without one are passed over, and so are models of architectures that are not
 * supported. Of a model that ranks NAME.pooled.f32 has the scores, whose differences count.
 * A case passes when the square of the distance between that and ours is within the bound of the file's
 * formats for every prompt, on every build of the kernels; with float activations the bound is that of the
 * arithmetic alone. Of quantized mixtures the worst prompt does not count: rounding to 8 bits can tip the
 * choice of an expert. $1 is the folder. */

#include <errno.h>
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/reference.h"
#include "cpu/kernels/kernels.h"
#include "engine/backend/backend.h"
#include "engine/embedding.h"
#include "engine/ranking.h"
#include "model/model.h"

#define MOST_PROMPTS 8
#define MOST_IDS     512
#define CHUNK        7 /* ids of a step: prompts are cut in the middle of blocks */
#define PLAIN_BOUND  2e-5

struct prompt {
    int32_t ids[MOST_IDS];
    uint32_t n_ids;
};

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Of scores: of probabilities, or of what a head gives as it is. Half precision of keys and values alone
 * moves probabilities by 3e-4, so models that rank keep them as floats. */
static double bound_of_scores(const char *name, const struct ranking *ranking)
{
    return ends_with(name, "-F32") && ranking->shares ? 1e-5 : 5e-3;
}

static double bound_of(const char *name, bool float_activations)
{
    if (ends_with(name, "-F32"))
        return 1e-5;
    if (ends_with(name, "-F16") || ends_with(name, "-BF16"))
        return 3e-4;
    return float_activations ? PLAIN_BOUND : 5e-3;
}

/* Feeds a prompt to a slot that embeds; the vector, or the scores. 0 or -errno. */
static int compute(struct backend *backend, const struct ranking *ranking, const struct prompt *prompt,
                   uint32_t n, float *ret_vector, struct error *err)
{
    static const uint32_t blocks[MOST_IDS / BACKEND_BLOCK_TOKENS] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                                     8, 9, 10, 11, 12, 13, 14, 15};
    const struct backend_slot slot = {
        .sampling = SAMPLING_GREEDY, .end_position = UINT32_MAX, .embeds = true};
    const struct backend_result *result = NULL;
    struct backend_info info;
    uint32_t told = 0;
    backend_cpu.info(backend, &info);
    int r = backend_cpu.slot_open(backend, 0, &slot);
    for (uint32_t at = 0; at < prompt->n_ids && r == 0; at += CHUNK) {
        const uint32_t rows = prompt->n_ids - at < CHUNK ? prompt->n_ids - at : CHUNK;
        const uint32_t need = backend_blocks_for(at + rows);
        struct backend_row_set set = {.ids = prompt->ids + at, .n_ids = rows, .position = at};
        uint64_t ticket;
        set.output = at + rows < prompt->n_ids ? BACKEND_OUTPUT_NONE : BACKEND_SUM_LAST;
        for (uint32_t g = 0; g < info.n_groups; g++)
            set.blocks[g] = (struct backend_blocks){blocks + told, need - told, told};
        told = need;
        r = backend_cpu.submit(backend, &(struct backend_step){&set, 1}, &ticket);
        if (r == 0)
            r = backend_cpu.poll(backend, ticket, 0, &result, err);
    }
    if (r == 0 && !(ranking->n_labels > 0 ? ranking_of_state(ranking, result->sums, ret_vector)
                                          : embedding_of_sums(result->sums, n, ret_vector)))
        r = error_set(err, -1, "the sums have no direction");
    backend_cpu.slot_close(backend, 0);
    return r;
}

static double distance(const float *a, const float *b, uint32_t n)
{
    double squares = 0;
    for (uint32_t i = 0; i < n; i++)
        squares += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return squares;
}

static double largest_difference(const float *a, const float *b, uint32_t n)
{
    double largest = 0;
    for (uint32_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)a[i] - (double)b[i]));
    return largest;
}

/* One case on one build of the kernels. True when it passes. */
static bool check_model(const char *name, const char *kernels, bool float_activations,
                        const struct model *model, const struct ranking *ranking,
                        const struct prompt *prompts, size_t n_prompts, const float *expected)
{
    const bool ranks = ranking->n_labels > 0;
    const uint32_t n = ranks ? ranking->n_labels : model->params.n_embd, context = model->params.n_context;
    const struct backend_config config = {.model = model,
                                          .n_slots = 1,
                                          .n_context = context < MOST_IDS ? context : MOST_IDS,
                                          .n_blocks = MOST_IDS / BACKEND_BLOCK_TOKENS,
                                          .cpu = {.float_activations = float_activations}};
    struct backend *backend = NULL;
    struct error err = {0};
    double worst = 0, second = 0;
    float *vector = calloc(n, sizeof *vector);
    setenv("QUERN_KERNELS", kernels, 1);
    int r = vector ? backend_cpu.open(&config, &backend, &err) : -1;
    for (size_t i = 0; i < n_prompts && r == 0; i++) {
        r = compute(backend, ranking, &prompts[i], n, vector, &err);
        const double off = r != 0  ? 0
                           : ranks ? largest_difference(vector, expected + i * n, n)
                                   : distance(vector, expected + i * n, n);
        second = off > worst ? worst : off > second ? off : second;
        worst = off > worst ? off : worst;
    }
    if (backend)
        backend_cpu.close(backend);
    free(vector);
    const double bound = ranks ? bound_of_scores(name, ranking) : bound_of(name, float_activations);
    const bool mixture = model->layers[0].traits.experts.n > 0 && bound == 5e-3;
    const bool ok = r == 0 && (mixture ? second : worst) <= bound;
    printf("%-24s %-9s %s %s %.1e (≤ %.0e)   %s\n", name, kernels,
           float_activations ? "float activations" : "as it is",
           ranks ? "largest difference of scores" : "squared distance", mixture ? second : worst, bound,
           ok            ? "passed"
           : err.text[0] ? err.text
                         : "FAILED");
    return ok;
}

static size_t read_prompts(const json_t *test, struct prompt prompts[MOST_PROMPTS])
{
    const json_t *all = json_object_get(test, "prompts");
    const size_t n = json_array_size(all);
    for (size_t i = 0; i < n && i < MOST_PROMPTS; i++) {
        const json_t *ids = json_array_get(all, i);
        for (size_t j = 0; j < json_array_size(ids) && j < MOST_IDS; j++)
            prompts[i].ids[prompts[i].n_ids++] = (int32_t)json_integer_value(json_array_get(ids, j));
    }
    return n < MOST_PROMPTS ? n : MOST_PROMPTS;
}

/* A file of `n` floats: of length one, or to be brought to it in rows of `width`; 0: as they are. */
static bool read_expected(const char *folder, const char *name, size_t n, uint32_t width, float *ret_rows)
{
    char path[4400];
    bool pooled = false;
    snprintf(path, sizeof path, "%s/%s.embeddings.f32", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        pooled = true;
        snprintf(path, sizeof path, "%s/%s.pooled.f32", folder, name);
        file = fopen(path, "rb");
    }
    const bool whole = file && fread(ret_rows, sizeof *ret_rows, n, file) == n && fgetc(file) == EOF;
    if (!whole)
        printf("%s: not %zu numbers   FAILED\n", path, n);
    if (file)
        fclose(file);
    for (size_t at = 0; whole && pooled && width > 0 && at < n; at += width) {
        double squares = 0;
        for (uint32_t i = 0; i < width; i++)
            squares += (double)ret_rows[at + i] * (double)ret_rows[at + i];
        for (uint32_t i = 0; i < width; i++)
            ret_rows[at + i] = (float)((double)ret_rows[at + i] / sqrt(squares));
    }
    return whole;
}

static bool is_there(const char *folder, const char *name, const char *end)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, end);
    return access(path, R_OK) == 0;
}

/* A folder with *.pooled.f32 has cases that are about something else, or are of other architectures. */
static bool is_passed_over(const char *folder, const char *name, const char *reason)
{
    if (!is_there(folder, name, ".embeddings.f32") && !is_there(folder, name, ".pooled.f32"))
        return true;
    if (!reason || !strstr(reason, "is not supported (these are:"))
        return false;
    printf("%-24s passed over: %s\n", name, reason);
    return true;
}

static bool check_file(const char *folder, const char *case_path)
{
    static struct prompt prompts[MOST_PROMPTS];
    char name[256], path[4400];
    const char *base = strrchr(case_path, '/') + 1;
    struct model *model = NULL;
    struct error err = {0};
    bool passed = false;
    memset(prompts, 0, sizeof prompts);
    snprintf(name, sizeof name, "%.*s", (int)(strlen(base) - strlen(".case.json")), base);
    if (is_passed_over(folder, name, NULL))
        return true;
    json_t *test = json_load_file(case_path, 0, NULL);
    const size_t n_prompts = read_prompts(test, prompts);
    snprintf(path, sizeof path, "%s/%s", folder, json_string_value(json_object_get(test, "model")));
    const char *pooling = json_string_value(json_object_get(test, "pooling"));
    const bool ranks = pooling && strcmp(pooling, "rank") == 0;
    json_decref(test);
    if (model_open(path, false, &model, &err) < 0) {
        if (ranks)
            printf("%-24s ranks, and rejected: %s\n", name, err.text);
        if (ranks || is_passed_over(folder, name, err.text))
            return true;
        printf("%-24s refused: %s   FAILED\n", name, err.text);
        return false;
    }
    struct ranking ranking;
    if (ranking_init(&ranking, model) < 0 || (ranking.n_labels > 0) != ranks) {
        printf("%-24s %s   FAILED\n", name,
               ranks ? "ranks, but has no head" : "has a head, but does not rank");
        model_free(model);
        return false;
    }
    const uint32_t width = ranks ? ranking.n_labels : model->params.n_embd;
    float *expected = calloc(n_prompts * width, sizeof *expected);
    if (expected && read_expected(folder, name, n_prompts * width, ranks ? 0 : width, expected)) {
        const struct kernels *kernels;
        passed = true;
        for (uint32_t i = 0; (kernels = kernels_at(i)); i++)
            for (int plain = 0; plain < 2; plain++)
                passed &=
                    check_model(name, kernels->name, plain, model, &ranking, prompts, n_prompts, expected);
    }
    ranking_deinit(&ranking);
    free(expected);
    model_free(model);
    return passed;
}

int main(int argc, char **argv)
{
    const char *folder = reference_folder(argc, argv, "models");
    char pattern[4400];
    glob_t cases;
    size_t failed = 0;
    snprintf(pattern, sizeof pattern, "%s/*.case.json", folder);
    if (glob(pattern, 0, NULL, &cases) != 0 || cases.gl_pathc == 0) {
        printf("%s: no cases\n", folder);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < cases.gl_pathc; i++)
        failed += !check_file(folder, cases.gl_pathv[i]);
    printf("%zu cases, %zu failed\n", cases.gl_pathc, failed);
    globfree(&cases);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
