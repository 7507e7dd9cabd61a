/* SPDX-License-Identifier: MIT */
/* Loading: first the memory of every matrix is taken, then all threads pack them, matrix by matrix.
 *
 * The packed copy is all that serving reads, but for the embedding: a token needs one row of it, which is
 * converted from the file's mapping on the fly. */

#include "worker/cpu/weights.h"

#include <errno.h>
#include <stdlib.h>

static int take_floats(const struct gguf_tensor *tensor, struct memory *memory, const float **ret_floats)
{
    size_t n = tensor->dims[0];
    void *floats;
    int r = memory_take(memory, (n + 7) / 8 * 8 * sizeof(float), &floats);
    if (r < 0)
        return r;
    format_traits(tensor->format)->to_float(tensor->data, floats, n);
    *ret_floats = floats;
    return 0;
}

static int describe(struct matrix *matrix, struct weights *weights, struct memory *memory,
                    const struct gguf_tensor *tensor, const struct gguf_tensor *bias, struct error *err)
{
    int r = matrix_init(matrix, memory, tensor, bias, err);
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
    const struct {
        struct matrix *matrix;
        const struct gguf_tensor *tensor, *bias;
    } all[] = {
        {&layer->q, from->attn_q, from->attn_q_bias},
        {&layer->k, from->attn_k, from->attn_k_bias},
        {&layer->v, from->attn_v, from->attn_v_bias},
        {&layer->output, from->attn_output, from->attn_output_bias},
        {&layer->gate, from->ffn_gate, from->ffn_gate_bias},
        {&layer->up, from->ffn_up, from->ffn_up_bias},
        {&layer->down, from->ffn_down, from->ffn_down_bias},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int r = describe(all[i].matrix, weights, memory, all[i].tensor, all[i].bias, err);
        if (r < 0)
            return r;
    }
    int r = take_floats(from->attn_norm, memory, &layer->attn_norm);
    if (r == 0)
        r = take_floats(from->ffn_norm, memory, &layer->ffn_norm);
    return r < 0 ? error_set(err, r, "no memory for the norms") : 0;
}

struct packing_job {
    struct threads *threads;
    struct weights *weights;
    uint32_t n_layers;
    const uint8_t *zeros;
};

static void pack_share(const struct packing_job *job, struct matrix *matrix)
{
    uint32_t first, end;
    while (threads_claim(job->threads, matrix->n_groups, 16, &first, &end))
        matrix_pack(matrix, first, end, job->zeros);
    threads_barrier(job->threads);
}

static void pack_all(void *arg, uint32_t index)
{
    const struct packing_job *job = arg;
    for (uint32_t l = 0; l < job->n_layers; l++) {
        struct weights_layer *layer = &job->weights->layers[l];
        struct matrix *all[] = {&layer->q,    &layer->k,  &layer->v,   &layer->output,
                                &layer->gate, &layer->up, &layer->down};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            pack_share(job, all[i]);
    }
    pack_share(job, &job->weights->output);
}

int weights_init(struct weights *weights, const struct model *model, struct memory *memory,
                 struct threads *threads, struct error *err)
{
    *weights = (struct weights){0};
    uint32_t n_layers = model->params.n_layers;
    weights->layers = calloc(n_layers, sizeof *weights->layers);
    int r = weights->layers ? 0 : error_set(err, -ENOMEM, "no memory for %u layers", n_layers);
    for (uint32_t l = 0; l < n_layers && r == 0; l++)
        r = describe_layer(&weights->layers[l], &model->layers[l], weights, memory, err);
    if (r == 0)
        r = describe(&weights->output, weights, memory, model->output, NULL, err);
    if (r == 0 && (r = take_floats(model->output_norm, memory, &weights->output_norm)) < 0)
        error_set(err, r, "no memory for the norms");
    /* Eight bytes a column are more than any format needs for a row of zeros. */
    uint8_t *zeros = r == 0 ? calloc(weights->max_columns, 8) : NULL;
    if (r == 0 && !zeros)
        r = error_set(err, -ENOMEM, "no memory for a row of weights");
    if (r == 0) {
        struct packing_job job = {threads, weights, n_layers, zeros};
        threads_run(threads, pack_all, &job);
    } else {
        weights_deinit(weights);
    }
    free(zeros);
    return r;
}

void weights_deinit(struct weights *weights)
{
    free(weights->layers);
    weights->layers = NULL;
}
