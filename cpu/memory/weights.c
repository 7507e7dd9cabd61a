/* SPDX-License-Identifier: MIT */
/* Loading: every piece is described and takes its place in one arena, then all threads get memory for it and
 * pack into it, matrix by matrix. An arena of the same layout that another worker has packed takes the place
 * of all that.
 *
 * The packed copy is all that serving reads: embeddings too, of which a token needs one row, where the head
 * is tied to them; else they are copied as they are. So the mapping's pages are given back behind the
 * packing, a model is in memory once and not twice, and what becomes of its file later is no matter. Rows
 * that no file has in this form are made by the thread that packs them, just before, and given back just
 * after. */

#include "cpu/memory/weights.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/amount.h"
#include "cpu/memory/states.h"
#include "engine/backend/weight_store.h"

/* ---- describing ---- */

/* `n_used` of its count are read for one token. */
static int describe(struct matrix *matrix, struct weights *weights, const struct model_tensor *from,
                    uint32_t n_used, struct error *err)
{
    int r = matrix_describe(matrix, from, err);
    if (r < 0)
        return r;
    if (matrix->n_columns > weights->max_columns)
        weights->max_columns = matrix->n_columns;
    weights->bytes += n_used * matrix->n_groups * matrix->group_bytes;
    weights->any_quantized |= matrix->packing->quantized;
    return 0;
}

static int describe_all(struct weights *weights, const struct model *model, struct error *err)
{
    int r = 0;
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES && r == 0; role++) {
            const struct model_tensor *tensor = &model->layers[l].tensors[role];
            uint32_t n_used = tensor->count > 1 ? model->layers[l].traits.experts.n_used : 1;
            if (tensor->weight && !tensor_is_plain(role))
                r = describe(&weights->layers[l].matrices[role], weights, tensor, n_used, err);
        }
    if (r == 0)
        r = describe(&weights->output, weights, &model->tensors[TENSOR_OUTPUT], 1, err);
    if (r == 0 && model->tensors[TENSOR_LAYER_PROJECTION].weight)
        r = describe(&weights->layer_projection, weights, &model->tensors[TENSOR_LAYER_PROJECTION], 1, err);
    weights->layer_embedding.tensor = model->tensors[TENSOR_LAYER_EMBEDDING].weight;
    weights->embedding.tensor = model->tensors[TENSOR_EMBEDDING].weight;
    weights->embedding.packed = model_head_is_tied(model) ? &weights->output : NULL;
    weights->positions.tensor = model->tensors[TENSOR_POSITIONS].weight;
    return r;
}

/* ---- placing ---- */

static float *place_floats(size_t n, float offset, struct placement *placement)
{
    uint32_t added;
    memcpy(&added, &offset, sizeof added);
    return placement_take(placement, (n + 7) / 8 * 8 * sizeof(float), (uint64_t)added << 32 | FORMAT_F32);
}

/* What is added to the elements of a vector: those of norms may have an offset. */
static float offset_of(enum tensor_role role, const struct norm *norm)
{
    return tensor_is_norm(role) ? norm->offset : 0;
}

static void place_vector(struct vector *vector, const struct model_tensor *from, float offset,
                         struct placement *placement)
{
    vector->weight = place_floats(from->weight->dims[0], offset, placement);
    vector->bias = from->bias ? place_floats(from->bias->dims[0], 0, placement) : NULL;
}

/* As the convolution reads them, [n_taps][a row of the tail]. */
static void place_taps(struct vector *vector, const struct delta_net *net, struct placement *placement)
{
    vector->weight = place_floats((size_t)net->n_taps * delta_widths_of(net).row, 0, placement);
}

static void place_table(struct table *table, struct placement *placement)
{
    if (table->tensor && !table->packed)
        table->rows = placement_take(placement, table->tensor->size, (uint64_t)table->tensor->format);
}

static void place_all(struct weights *weights, const struct model *model, struct placement *placement)
{
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES; role++) {
            const struct model_layer *layer = &model->layers[l];
            const struct model_tensor *tensor = &layer->tensors[role];
            if (tensor->weight && role == TENSOR_TAPS)
                place_taps(&weights->layers[l].vectors[role], &layer->traits.delta, placement);
            else if (tensor->weight && tensor_is_vector(role))
                place_vector(&weights->layers[l].vectors[role], tensor, offset_of(role, &layer->traits.norm),
                             placement);
            else if (tensor->weight)
                matrix_place(&weights->layers[l].matrices[role], tensor, placement);
        }
    matrix_place(&weights->output, &model->tensors[TENSOR_OUTPUT], placement);
    place_table(&weights->embedding, placement);
    place_table(&weights->positions, placement);
    place_table(&weights->layer_embedding, placement);
    if (model->tensors[TENSOR_LAYER_PROJECTION].weight) {
        matrix_place(&weights->layer_projection, &model->tensors[TENSOR_LAYER_PROJECTION], placement);
        place_vector(&weights->layer_projection_norm, &model->tensors[TENSOR_LAYER_PROJECTION_NORM],
                     model->output_norm.offset, placement);
    }
    place_vector(&weights->output_norm, &model->tensors[TENSOR_OUTPUT_NORM], model->output_norm.offset,
                 placement);
}

/* ---- packing ---- */

struct packing_job {
    const struct model *model;
    struct threads *threads;
    struct weights *weights;
    const struct backend_config *config;
    const uint8_t *zeros;
    uint64_t done, total; /* bytes of the file; `done` is the caller's alone */
    atomic_int result;    /* of the first row that could not be made, with the reason */
    struct error *err;
};

/* These bytes of a tensor are where they belong. */
static void done_with(struct packing_job *job, const struct gguf_tensor *tensor, const void *data,
                      size_t size)
{
    if (tensor->maker)
        gguf_give_back_tensor(job->model->gguf, tensor);
    else
        gguf_give_back(job->model->gguf, data, size);
    job->done += size;
    if (job->config->progress)
        job->config->progress(job->config->progress_arg); /* proof that loading goes on */
    if (job->config->loaded)
        job->config->loaded(job->config->loaded_arg, job->done, job->total);
}

/* Makes rows of a tensor that has a maker. False: that failed, now or before. */
static bool make_rows(struct packing_job *job, const struct gguf_tensor *tensor, uint64_t first, uint64_t n)
{
    struct error err;
    int none = 0, r = atomic_load(&job->result);
    if (r == 0 && tensor->maker)
        r = gguf_make_rows(tensor, first, n, 1, &err);
    if (r < 0 && atomic_compare_exchange_strong(&job->result, &none, r) && job->err)
        *job->err = err;
    return r == 0;
}

/* The rows that were made are packed. */
static void give_back_rows(const struct packing_job *job, const struct gguf_tensor *tensor, uint64_t first,
                           uint64_t n)
{
    const size_t row_bytes = matrix_row_bytes(tensor);
    if (tensor->maker)
        gguf_give_back(job->model->gguf, (const uint8_t *)tensor->data + first * row_bytes, n * row_bytes);
}

static size_t bytes_in_file(const struct matrix *matrix)
{
    return (size_t)matrix->count * matrix->n_rows * matrix_row_bytes(matrix->tensor);
}

/* All threads are through with a matrix or table. Rows of the tensor's next role are made in the same pages,
 * so nobody begins with them before these were given back. */
static void finish_share(struct packing_job *job, uint32_t index, const struct gguf_tensor *tensor,
                         const void *data, size_t size)
{
    threads_barrier(job->threads);
    if (index == 0)
        done_with(job, tensor, data, size);
    if (tensor->maker)
        threads_barrier(job->threads);
}

static void pack_share(struct packing_job *job, struct matrix *matrix, uint32_t index)
{
    uint32_t first, end;
    while (threads_claim(job->threads, matrix->count * matrix->n_groups, 16, &first, &end)) {
        uint64_t row, n;
        matrix_rows_of(matrix, first, end, &row, &n);
        if (!make_rows(job, matrix->tensor, row, n))
            continue; /* all pieces are claimed, by whomever */
        matrix_pack(matrix, first, end, job->zeros);
        give_back_rows(job, matrix->tensor, row, n);
    }
    finish_share(job, index, matrix->tensor, matrix_rows(matrix), bytes_in_file(matrix));
}

static void copy_share(struct packing_job *job, const struct table *table, uint32_t index)
{
    if (!table->rows)
        return;
    const struct gguf_tensor *tensor = table->tensor;
    size_t row_bytes = matrix_row_bytes(tensor);
    uint32_t first, end;
    while (threads_claim(job->threads, (uint32_t)tensor->dims[1], 256, &first, &end)) {
        if (!make_rows(job, tensor, first, end - first))
            continue;
        memcpy(table->rows + first * row_bytes, (const uint8_t *)tensor->data + first * row_bytes,
               (end - first) * row_bytes);
        give_back_rows(job, tensor, first, end - first);
    }
    finish_share(job, index, tensor, tensor->data, tensor->size);
}

static void pack_all(void *arg, uint32_t index)
{
    struct packing_job *job = arg;
    for (uint32_t l = 0; l < job->model->params.n_layers; l++) {
        struct weights_layer *layer = &job->weights->layers[l];
        for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES; role++)
            if (layer->matrices[role].n_rows > 0)
                pack_share(job, &layer->matrices[role], index);
    }
    pack_share(job, &job->weights->output, index);
    copy_share(job, &job->weights->embedding, index);
    copy_share(job, &job->weights->positions, index);
    copy_share(job, &job->weights->layer_embedding, index);
    if (job->weights->layer_projection.n_rows > 0)
        pack_share(job, &job->weights->layer_projection, index);
}

/* What the threads have to do, in bytes of the file. */
static uint64_t count_all(const struct weights *weights, uint32_t n_layers)
{
    const struct table *const tables[] = {&weights->embedding, &weights->positions,
                                          &weights->layer_embedding};
    uint64_t bytes = bytes_in_file(&weights->output);
    if (weights->layer_projection.n_rows > 0)
        bytes += bytes_in_file(&weights->layer_projection);
    for (uint32_t l = 0; l < n_layers; l++)
        for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES; role++)
            if (weights->layers[l].matrices[role].n_rows > 0)
                bytes += bytes_in_file(&weights->layers[l].matrices[role]);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tables[i]->rows)
            bytes += tables[i]->tensor->size;
    return bytes;
}

static int convert(const struct gguf_tensor *tensor, float offset, const float *to, struct error *err)
{
    float *floats = (float *)to; /* ours to fill until it is whole */
    int r = gguf_make_tensor(tensor, 1, err);
    if (r < 0)
        return r;
    format_traits(tensor->format)->to_float(tensor->data, floats, tensor->dims[0]);
    for (size_t i = 0; i < tensor->dims[0]; i++)
        floats[i] += offset;
    return 0;
}

static int convert_vector(const struct vector *vector, const struct model_tensor *from, float offset,
                          struct error *err)
{
    int r = convert(from->weight, offset, vector->weight, err);
    return r == 0 && from->bias ? convert(from->bias, 0, vector->bias, err) : r;
}

/* The file has the taps of each channel together, queries, keys and values one after the other. */
static int convert_taps(const struct vector *vector, const struct delta_net *net,
                        const struct gguf_tensor *tensor, struct error *err)
{
    const struct delta_widths w = delta_widths_of(net);
    const uint32_t keys = net->n_key_heads * net->key_dim, values = net->n_value_heads * net->value_dim;
    const uint32_t widths[] = {keys, keys, values}, offsets[] = {0, w.queries, w.queries + w.keys};
    const float *from = tensor->data;
    float *to = (float *)vector->weight; /* ours to fill until it is whole */
    int r = gguf_make_tensor(tensor, 1, err);
    for (uint32_t part = 0; part < 3 && r == 0; part++)
        for (uint32_t i = 0; i < widths[part]; i++)
            for (uint32_t t = 0; t < net->n_taps; t++)
                to[(size_t)t * w.row + offsets[part] + i] = *from++;
    return r;
}

static int copy_bias(struct matrix *matrix, const struct model_tensor *from, struct error *err)
{
    int r = from->bias ? gguf_make_tensor(from->bias, 1, err) : 0;
    if (r == 0)
        matrix_copy_bias(matrix, from);
    return r;
}

static int convert_role(struct weights_layer *to, const struct model_layer *layer, enum tensor_role role,
                        struct error *err)
{
    const struct model_tensor *tensor = &layer->tensors[role];
    if (!tensor->weight)
        return 0;
    if (role == TENSOR_TAPS)
        return convert_taps(&to->vectors[role], &layer->traits.delta, tensor->weight, err);
    if (tensor_is_vector(role))
        return convert_vector(&to->vectors[role], tensor, offset_of(role, &layer->traits.norm), err);
    return copy_bias(&to->matrices[role], tensor, err);
}

/* All that is small. */
static int convert_all(struct weights *weights, const struct model *model, struct error *err)
{
    int r = 0;
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES && r == 0; role++)
            r = convert_role(&weights->layers[l], &model->layers[l], role, err);
    if (r == 0)
        r = copy_bias(&weights->output, &model->tensors[TENSOR_OUTPUT], err);
    if (r == 0 && model->tensors[TENSOR_LAYER_PROJECTION].weight)
        r = convert_vector(&weights->layer_projection_norm, &model->tensors[TENSOR_LAYER_PROJECTION_NORM],
                           model->output_norm.offset, err);
    return r == 0 ? convert_vector(&weights->output_norm, &model->tensors[TENSOR_OUTPUT_NORM],
                                   model->output_norm.offset, err)
                  : r;
}

static int pack(struct weights *weights, const struct model *model, struct threads *threads,
                const struct backend_config *config, struct error *err)
{
    /* Eight bytes a column are more than any format needs for a row of zeros. */
    uint8_t *zeros = calloc(weights->max_columns, 8);
    if (!zeros)
        return error_set(err, -ENOMEM, "not enough memory for a row of weights");
    struct packing_job job = {.model = model,
                              .threads = threads,
                              .weights = weights,
                              .config = config,
                              .zeros = zeros,
                              .total = count_all(weights, model->params.n_layers),
                              .err = err};
    int r = convert_all(weights, model, err);
    if (r == 0) {
        threads_run(threads, pack_all, &job);
        r = atomic_load(&job.result);
    }
    free(zeros);
    return r;
}

/* What can never fit is refused by its numbers, and not found out by a kill. */
static int check_size(size_t bytes, const struct memory *memory, struct error *err)
{
    struct available available;
    if (available_read("", &available) < 0 || bytes <= memory_divided(memory, &available))
        return 0;
    return error_set(
        err, -ENOMEM,
        "%s of weights do not fit: %s has %s, of which the prefix store and other workers' weights use %s",
        amount_of_bytes(bytes).text, available.by, amount_of_bytes(available.total).text,
        amount_of_bytes(memory->reserved).text);
}

/* What the store has to do, for every member of the team. */
struct shared_work {
    void (*work)(void *arg);
    void *arg;
};

static void do_work(void *arg, uint32_t index)
{
    const struct shared_work *shared = arg;
    shared->work(shared->arg);
}

struct team {
    struct threads *threads;
    const struct backend_config *config;
};

static void run_together(void *arg, void (*work)(void *arg), void *work_arg)
{
    const struct team *team = arg;
    threads_run(team->threads, do_work, &(struct shared_work){work, work_arg});
    if (team->config->progress)
        team->config->progress(team->config->progress_arg); /* proof that loading goes on */
}

/* Memory for the arena, shared if it can be. *ret_packed: another worker has filled it already. */
static int take_arena(const struct backend_config *config, const struct placement *wanted,
                      struct memory *memory, struct threads *threads, uint8_t **ret_base, bool *ret_packed,
                      struct error *err)
{
    struct weight_store *store = config->weights;
    const void *found = store ? weight_store_find(store, wanted->layout, wanted->size) : NULL;
    void *base = (void *)found; /* nothing is written to it */
    int r = found ? 0 : check_size(wanted->size, memory, err);
    if (r < 0)
        return r;
    if (!found)
        r = store ? weight_store_make(store, wanted->layout, wanted->size, run_together,
                                      &(struct team){threads, config}, &base)
                  : -ENOTSUP;
    if (r < 0 && r != -ENOMEM)
        r = memory_take(memory, wanted->size, &base);
    else if (r == 0)
        memory->shared += wanted->size;
    if (r < 0)
        return error_set(err, r, "not enough memory for %s of weights", amount_of_bytes(wanted->size).text);
    *ret_base = base;
    *ret_packed = found;
    return 0;
}

int weights_init(struct weights *weights, const struct model *model, struct memory *memory,
                 struct threads *threads, const struct backend_config *config, struct error *err)
{
    struct placement counted = {.layout = weights_packing}, placement = counted;
    bool packed = false;
    *weights = (struct weights){0};
    weights->layers = calloc(model->params.n_layers, sizeof *weights->layers);
    int r = weights->layers
                ? describe_all(weights, model, err)
                : error_set(err, -ENOMEM, "not enough memory for %u layers", model->params.n_layers);
    if (r == 0) {
        place_all(weights, model, &counted);
        r = take_arena(config, &counted, memory, threads, &placement.base, &packed, err);
    }
    if (r == 0) {
        place_all(weights, model, &placement);
        weights->layout = placement.layout;
        r = packed ? 0 : pack(weights, model, threads, config, err);
    }
    if (r < 0)
        weights_deinit(weights);
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
