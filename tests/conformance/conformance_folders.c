/* SPDX-License-Identifier: MIT */
/* Folders with SafeTensors are the models that their twins in GGUF are, tensor by tensor and byte by byte.
 *
 * A NAME.case.json whose model is a folder has the name of its twin. Rows of queries and keys that stand by
 * halves in the folder are compared where they stand. Norms that are published without their 1, and decays as
 * logarithms, may differ by the last bit: their numbers cannot all be undone. */

#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "model/hyperparameters.h"
#include "model/model.h"
#include "tests/conformance/reference.h"

static bool ends_with(struct bytes name, const char *end)
{
    const size_t n = strlen(end);
    return name.len >= n && memcmp((const char *)name.data + name.len - n, end, n) == 0;
}

/* Where row r of the twin stands in a folder whose heads of `dim` rows stand by halves; 0: there. */
static uint64_t row_by_halves(uint32_t dim, uint64_t r)
{
    return dim == 0 ? r : r - r % dim + r % 2 * (dim / 2) + r % dim / 2;
}

static bool is_near(const struct gguf_tensor *a, const struct gguf_tensor *b)
{
    const float *x = a->data, *y = b->data;
    bool near = a->format == FORMAT_F32;
    for (uint64_t i = 0; near && i < a->dims[0]; i++)
        near = fabsf(x[i] - y[i]) <= 1e-7f * fmaxf(1, fabsf(y[i]));
    return near;
}

static bool is_same(const struct gguf_tensor *a, const struct gguf_tensor *b, uint32_t halves)
{
    const bool turned = ends_with(a->name, ".attn_q.weight") || ends_with(a->name, ".attn_k.weight");
    if (a->format != b->format || a->n_dims != b->n_dims || memcmp(a->dims, b->dims, sizeof a->dims) != 0)
        return false;
    const uint64_t rows = a->size / format_bytes(a->format, a->dims[0]);
    const size_t bytes = a->size / rows;
    for (uint64_t r = 0; r < rows; r++) {
        const uint64_t there = row_by_halves(turned ? halves : 0, r);
        if (memcmp((const char *)a->data + there * bytes, (const char *)b->data + r * bytes, bytes) == 0)
            continue;
        const bool undone = ends_with(a->name, "norm.weight") || ends_with(a->name, ".ssm_a");
        return undone && is_near(a, b);
    }
    return true;
}

/* Tensors that a file has and nobody reads: keys and values of layers that attend to those of others. */
static bool is_unused(const struct model *model, uint32_t layer, const char *name)
{
    return model->layers[layer].traits.borrows_kv && (strstr(name, ".attn_k") || strstr(name, ".attn_v"));
}

static bool compare(const char *folder, const char *twin)
{
    struct model *a = NULL, *b = NULL;
    struct error err = {0};
    int wrong = 0;
    if (model_open(folder, true, &a, &err) < 0 || model_open(twin, false, &b, &err) < 0) {
        printf("%s   FAILED\n", err.text);
        model_free(a);
        return false;
    }
    for (size_t i = 0; i < gguf_n_tensors(a->gguf); i++)
        if (gguf_make_tensor(gguf_tensor_at(a->gguf, i), 2, &err) < 0) {
            printf("%s   FAILED\n", err.text);
            wrong++;
        }
    const uint32_t halves = hyperparameters_halves(a->gguf);
    for (size_t i = 0; i < gguf_n_tensors(b->gguf) && wrong == 0; i++) {
        const struct gguf_tensor *theirs = gguf_tensor_at(b->gguf, i);
        char name[TENSOR_NAME_SIZE];
        uint32_t layer;
        snprintf(name, sizeof name, "%.*s", (int)theirs->name.len, (const char *)theirs->name.data);
        const bool of_layer = tensor_layer_of(theirs->name, &layer);
        if (of_layer && layer >= b->params.n_layers)
            continue; /* a draft layer's, which are not published in these names */
        if (of_layer && is_unused(b, layer, name))
            continue;
        const struct gguf_tensor *ours = gguf_find_tensor(a->gguf, name);
        if (ours && is_same(ours, theirs, halves))
            continue;
        /* The two newer layouts of one tensor are told apart by conformance_logits. */
        if (!ours && (strstr(name, "attn_qkv") || strstr(name, "attn_gate")) &&
            gguf_find_tensor(a->gguf, "blk.0.ssm_in.weight"))
            continue;
        if (!ours && strstr(name, "attn_qkv") && gguf_find_tensor(a->gguf, "blk.0.attn_q.weight"))
            continue;
        printf("%s: tensor %s %s   FAILED\n", folder, name, ours ? "differs" : "is missing");
        wrong++;
    }
    if (wrong == 0)
        printf("%s: %zu tensors   passed\n", folder, gguf_n_tensors(a->gguf));
    model_free(a);
    model_free(b);
    return wrong == 0;
}

int main(int argc, char **argv)
{
    const char *models = reference_folder(argc, argv, "models");
    char pattern[4200], folder[4200], twin[4200];
    glob_t cases;
    int failed = 0, n = 0;
    snprintf(pattern, sizeof pattern, "%s/folder-*.case.json", models);
    if (glob(pattern, 0, NULL, &cases) != 0)
        return 1;
    for (size_t i = 0; i < cases.gl_pathc; i++) {
        json_t *test = json_load_file(cases.gl_pathv[i], 0, NULL);
        snprintf(folder, sizeof folder, "%s/%s", models, json_string_value(json_object_get(test, "model")));
        snprintf(twin, sizeof twin, "%s/%s", models, json_string_value(json_object_get(test, "twin")));
        failed += !compare(folder, twin);
        n++;
        json_decref(test);
    }
    globfree(&cases);
    return failed != 0 || n == 0;
}
