/* SPDX-License-Identifier: MIT */
/* Loading: first the memory of every matrix is taken, then all threads pack them, matrix by matrix.
 *
 * The packed copy is all that serving reads: embeddings too, of which a token needs one row, where the head
 * is tied to them; else they are copied as they are. So the mapping's pages are given back behind the
 * packing, a model is in memory once and not twice, and what becomes of its file later is no matter. */

#include "worker/cpu/weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int take_floats(const struct gguf_tensor *tensor, float offset, struct memory *memory,
                       const float **ret_floats)
{
    size_t n = tensor->dims[0];
    void *piece;
    int r = memory_take(memory, (n + 7) / 8 * 8 * sizeof(float), &piece);
    if (r < 0)
        return r;
    float *floats = piece;
    format_traits(tensor->format)->to_float(tensor->data, floats, n);
    for (size_t i = 0; i < n; i++)
        floats[i] += offset;
    *ret_floats = floats;
    return 0;
}

static int take_vector(const struct model_tensor *from, const struct norm *norm, struct memory *memory,
                       struct vector *ret_vector, struct error *err)
{
    int r = take_floats(from->weight, norm->offset, memory, &ret_vector->weight);
    if (r == 0 && from->bias)
        r = take_floats(from->bias, 0, memory, &ret_vector->bias);
    return r < 0 ? error_set(err, r, "no memory for the norms") : 0;
}

static int describe(struct matrix *matrix, struct weights *weights, struct memory *memory,
                    const struct model_tensor *from, struct error *err)
{
    int r = matrix_init(matrix, memory, from, err);
    if (r < 0)
        return r;
    if (matrix->n_columns > weights->max_columns)
        weights->max_columns = matrix->n_columns;
    weights->bytes += matrix->n_groups * matrix->group_bytes;
    weights->any_quantized |= matrix->packing->quantized;
    return 0;
}

static int describe_layer(struct weights_layer *layer, const struct model_layer *from,
                          struct weights *weights, struct memory *memory, struct error *err)
{
    int r = 0;
    for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES && r == 0; role++) {
        const struct model_tensor *tensor = &from->tensors[role];
        if (!tensor->weight)
            continue;
        r = tensor_is_vector(role)
                ? take_vector(tensor, &from->traits.norm, memory, &layer->vectors[role], err)
                : describe(&layer->matrices[role], weights, memory, tensor, err);
    }
    return r;
}

static int describe_table(struct table *table, struct memory *memory, const struct gguf_tensor *tensor,
                          const struct matrix *packed, struct error *err)
{
    void *rows = NULL;
    int r = tensor && !packed ? memory_take(memory, tensor->size, &rows) : 0;
    if (r < 0)
        return error_set(err, r, "no memory for %zu bytes of weights", tensor->size);
    *table = (struct table){tensor, packed, rows};
    return 0;
}

struct packing_job {
    const struct model *model;
    struct threads *threads;
    struct weights *weights;
    const struct backend_config *config;
    const uint8_t *zeros;
};

/* These bytes of the file are where they belong. */
static void done_with(const struct packing_job *job, const void *data, size_t size)
{
    gguf_give_back(job->model->gguf, data, size);
    if (job->config->progress)
        job->config->progress(job->config->progress_arg); /* proof that loading goes on */
}

static void pack_share(const struct packing_job *job, struct matrix *matrix, uint32_t index)
{
    uint32_t first, end;
    while (threads_claim(job->threads, matrix->n_groups, 16, &first, &end))
        matrix_pack(matrix, first, end, job->zeros);
    threads_barrier(job->threads);
    if (index == 0)
        done_with(job, matrix_rows(matrix), matrix->n_rows * matrix_row_bytes(matrix->tensor));
}

static void copy_share(const struct packing_job *job, const struct table *table, uint32_t index)
{
    if (!table->rows)
        return;
    const struct gguf_tensor *tensor = table->tensor;
    size_t row_bytes = matrix_row_bytes(tensor);
    uint32_t first, end;
    while (threads_claim(job->threads, (uint32_t)tensor->dims[1], 256, &first, &end))
        memcpy(table->rows + first * row_bytes, (const uint8_t *)tensor->data + first * row_bytes,
               (end - first) * row_bytes);
    threads_barrier(job->threads);
    if (index == 0)
        done_with(job, tensor->data, tensor->size);
}

static void pack_all(void *arg, uint32_t index)
{
    const struct packing_job *job = arg;
    for (uint32_t l = 0; l < job->model->params.n_layers; l++) {
        struct weights_layer *layer = &job->weights->layers[l];
        for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES; role++)
            if (layer->matrices[role].n_rows > 0)
                pack_share(job, &layer->matrices[role], index);
    }
    pack_share(job, &job->weights->output, index);
    copy_share(job, &job->weights->embedding, index);
    copy_share(job, &job->weights->positions, index);
}

int weights_init(struct weights *weights, const struct model *model, struct memory *memory,
                 struct threads *threads, const struct backend_config *config, struct error *err)
{
    *weights = (struct weights){0};
    uint32_t n_layers = model->params.n_layers;
    weights->layers = calloc(n_layers, sizeof *weights->layers);
    int r = weights->layers ? 0 : error_set(err, -ENOMEM, "no memory for %u layers", n_layers);
    for (uint32_t l = 0; l < n_layers && r == 0; l++)
        r = describe_layer(&weights->layers[l], &model->layers[l], weights, memory, err);
    if (r == 0)
        r = describe(&weights->output, weights, memory, &model->tensors[TENSOR_OUTPUT], err);
    if (r == 0)
        r = describe_table(&weights->embedding, memory, model->tensors[TENSOR_EMBEDDING].weight,
                           model_head_is_tied(model) ? &weights->output : NULL, err);
    if (r == 0)
        r = describe_table(&weights->positions, memory, model->tensors[TENSOR_POSITIONS].weight, NULL, err);
    if (r == 0)
        r = take_vector(&model->tensors[TENSOR_OUTPUT_NORM], &model->output_norm, memory,
                        &weights->output_norm, err);
    /* Eight bytes a column are more than any format needs for a row of zeros. */
    uint8_t *zeros = r == 0 ? calloc(weights->max_columns, 8) : NULL;
    if (r == 0 && !zeros)
        r = error_set(err, -ENOMEM, "no memory for a row of weights");
    if (r == 0) {
        struct packing_job job = {model, threads, weights, config, zeros};
        threads_run(threads, pack_all, &job);
    } else {
        weights_deinit(weights);
    }
    free(zeros);
    return r;
}

void table_read(const struct table *table, uint32_t row, float *ret_row)
{
    const struct gguf_tensor *tensor = table->tensor;
    if (table->packed)
        matrix_read_row(table->packed, row, ret_row);
    else
        format_traits(tensor->format)
            ->to_float(table->rows + row * matrix_row_bytes(tensor), ret_row, tensor->dims[0]);
}

void weights_deinit(struct weights *weights)
{
    free(weights->layers);
    weights->layers = NULL;
}
