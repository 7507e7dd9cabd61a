/* SPDX-License-Identifier: MIT */
/* Plans and products of cuBLASLt. It counts columns first: a row of ours is a column of its, so
 *
 *   out [rows of x][out_stride]      is its D, n_outputs × rows, of leading dimension out_stride
 *   weights [n_outputs][n_columns]   is its A, n_columns × n_outputs, and is transposed
 *   x [rows of x][x_stride]          is its B, n_columns × rows
 *
 * Columns are the padded ones, whose weights are zeros, so that every row of A and B is aligned. */

#include "cuda/host/library_products.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/kernels/layout.h"

#define BUCKET_ROWS   128
#define SCRATCH_BYTES ((size_t)32 << 20) /* what the library's guide names for Hopper */

static const enum tensor_role roles[] = {TENSOR_Q,
                                         TENSOR_K,
                                         TENSOR_V,
                                         TENSOR_OUTPUT_GATE,
                                         TENSOR_DELTA_OUTPUT,
                                         TENSOR_ATTENTION_OUTPUT,
                                         TENSOR_GATE,
                                         TENSOR_UP,
                                         TENSOR_DOWN,
                                         TENSOR_SHARED_GATE,
                                         TENSOR_SHARED_UP,
                                         TENSOR_SHARED_DOWN,
                                         TENSOR_INPUT_GATE,
                                         TENSOR_INPUT_PROJECTION};
#define N_ROLES (sizeof roles / sizeof *roles)

/* What is planned at the moment. */
struct planning {
    struct library_products *large;
    struct device_stream *queue;
    const struct backend_config *config;
};

/* ---- errors ---- */

/* The last call that was made, and what it gave. */
struct outcome {
    const char *call;
    cublas_lt_status status;
};

static bool went_well(struct outcome *outcome, const char *call, cublas_lt_status status)
{
    *outcome = (struct outcome){call, status};
    return status == CUBLAS_LT_SUCCESS;
}

static int blame(const struct library_products *large, struct device_stream *queue,
                 const struct outcome *outcome, const struct library_shape *shape, uint32_t n_rows)
{
    return device_blame(queue, "%s of %u × %u by %u rows: %s", outcome->call, shape->n_outputs,
                        shape->n_columns, n_rows, large->calls.status_name(outcome->status));
}

/* ---- life ---- */

static int open_version(struct library_products *large, uint32_t version, struct error *err)
{
    int r = cublas_lt_find(version, &large->calls, err);
    if (r < 0)
        return r;
    const cublas_lt_status status = large->calls.create(&large->handle);
    if (status == CUBLAS_LT_SUCCESS)
        return 0;
    large->handle = NULL;
    return error_set(err, -ENODEV, "cublasLtCreate of version %u: %s", version,
                     large->calls.status_name(status));
}

int library_products_open(struct library_products *large, struct error *err)
{
    struct error reasons = {0};
    int r = -ENOENT;
    for (uint32_t version = CUBLAS_LT_NEWEST; version >= CUBLAS_LT_OLDEST && r < 0; version--) {
        struct error reason, before = reasons;
        *large = (struct library_products){0};
        r = open_version(large, version, &reason);
        error_set(&reasons, r, "%s%s%s", before.text, before.text[0] ? "; " : "", reason.text);
    }
    return r < 0 ? error_set(err, r, "%s", reasons.text) : 0;
}

static void close_shape(const struct library_products *large, struct library_shape *shape)
{
    for (uint32_t i = 0; shape->buckets && i < large->n_buckets; i++) {
        if (shape->buckets[i].x)
            large->calls.layout_destroy(shape->buckets[i].x);
        if (shape->buckets[i].out)
            large->calls.layout_destroy(shape->buckets[i].out);
    }
    if (shape->weights)
        large->calls.layout_destroy(shape->weights);
    if (shape->desc)
        large->calls.desc_destroy(shape->desc);
    free(shape->buckets);
    *shape = (struct library_shape){0};
}

void library_products_close(struct library_products *large)
{
    for (uint32_t i = 0; i < large->n_shapes; i++)
        close_shape(large, &large->shapes[i]);
    large->n_shapes = 0;
    if (large->handle)
        large->calls.destroy(large->handle);
    large->handle = NULL;
}

/* ---- buckets ---- */

static uint32_t rounded_up(uint32_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

static uint32_t bucket_of(const struct library_products *large, uint32_t n_rows)
{
    return n_rows <= large->first_rows ? 0 : (n_rows - large->first_rows + BUCKET_ROWS - 1) / BUCKET_ROWS;
}

static uint32_t bucket_rows(const struct library_products *large, uint32_t bucket)
{
    const uint32_t rows = large->first_rows + bucket * BUCKET_ROWS;
    return rows < large->most_rows ? rows : large->most_rows;
}

/* ---- memory ---- */

static bool takes_format(enum format format)
{
    return format != FORMAT_F32;
}

/* Bytes of a matrix that is not read where it is. */
static size_t panel_bytes(const struct model_tensor *tensor)
{
    if (!tensor->weight || tensor->weight->format == FORMAT_BF16 || tensor->weight->format == FORMAT_F32)
        return 0;
    return (size_t)tensor->rows * layout_padded(tensor->columns) * sizeof(uint16_t);
}

bool library_products_wants(const struct model *model)
{
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        for (size_t i = 0; i < N_ROLES; i++) {
            const struct model_tensor *tensor = &model->layers[l].tensors[roles[i]];
            if (tensor->weight && takes_format(tensor->weight->format))
                return true;
        }
    return false;
}

static void take_panels(struct library_products *large, struct device_memory *memory)
{
    large->weights = device_memory_take(memory, large->weight_bytes);
    large->x = device_memory_take(memory, large->x_bytes);
    large->scratch = device_memory_take(memory, SCRATCH_BYTES);
}

/* They hold zeros at first. */
static int clear_panels(const struct library_products *large, struct device_stream *stream)
{
    int r = device_fill(stream, large->weights, 0, large->weight_bytes);
    if (r == 0)
        r = device_fill(stream, large->x, 0, large->x_bytes);
    return r < 0 ? r : device_fill(stream, large->scratch, 0, SCRATCH_BYTES);
}

void library_products_take(struct library_products *large, struct device_memory *memory,
                           const struct model *model, uint32_t least_rows, uint32_t most_rows)
{
    size_t most = 0;
    uint32_t columns = 0;
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        for (size_t i = 0; i < N_ROLES; i++) {
            const struct model_tensor *tensor = &model->layers[l].tensors[roles[i]];
            const size_t bytes = panel_bytes(tensor);
            most = bytes > most ? bytes : most;
            if (tensor->weight && layout_padded(tensor->columns) > columns)
                columns = layout_padded(tensor->columns);
        }
    large->most_rows = most_rows;
    large->first_rows = rounded_up(least_rows, BUCKET_ROWS);
    large->first_rows = large->first_rows < most_rows ? large->first_rows : most_rows;
    large->n_buckets = bucket_of(large, most_rows) + 1;
    large->weight_bytes = most;
    large->x_bytes = (size_t)most_rows * columns * sizeof *large->x;
    take_panels(large, memory);
    if (memory->device && !memory->lacking && clear_panels(large, device_stream(memory->device)) < 0)
        memory->lacking = true; /* the device has failed, and says so itself */
}

size_t library_products_give_back(struct library_products *large, struct device *device)
{
    const bool had = large->scratch != NULL;
    device_free(device, large->weights);
    device_free(device, large->x);
    device_free(device, large->scratch);
    large->weights = large->x = NULL;
    large->scratch = NULL;
    return had ? device_taken(large->weight_bytes) + device_taken(large->x_bytes) +
                     device_taken(SCRATCH_BYTES)
               : 0;
}

size_t library_products_take_again(struct library_products *large, struct device *device)
{
    struct device_memory memory = {.device = device};
    struct device_stream *stream = device_stream(device);
    take_panels(large, &memory);
    if (memory.lacking) {
        library_products_give_back(large, device);
        return 0;
    }
    return clear_panels(large, stream) == 0 ? memory.bytes : 0; /* else the device has failed, and says so */
}

/* ---- plans ---- */

static const struct library_shape *shape_of(const struct library_products *large,
                                            const struct device_product *product, uint32_t x_stride)
{
    for (uint32_t i = 0; i < large->n_shapes; i++) {
        const struct library_shape *shape = &large->shapes[i];
        if (shape->n_outputs == product->matrix->n_rows &&
            shape->n_columns == product->matrix->padded_columns && shape->x_stride == x_stride &&
            shape->out_stride == product->out_stride && shape->has_bias == (product->matrix->bias != NULL))
            return shape;
    }
    return NULL;
}

/* NULL: our own kernels. */
static const struct library_shape *plan_of(const struct library_products *large,
                                           const struct device_product *product, uint32_t x_stride)
{
    const struct library_shape *shape =
        takes_format(product->matrix->format) ? shape_of(large, product, x_stride) : NULL;
    return shape && !shape->refused ? shape : NULL;
}

bool library_products_takes_any(const struct library_products *large)
{
    for (uint32_t i = 0; i < large->n_shapes; i++)
        if (!large->shapes[i].refused)
            return true;
    return false;
}

bool library_products_takes(const struct library_products *large, const struct device_product *product,
                            uint32_t x_stride)
{
    return plan_of(large, product, x_stride) != NULL;
}

static bool set_bias(const struct library_products *large, const struct library_shape *shape,
                     const struct device_matrix *matrix, struct outcome *outcome)
{
    return went_well(
        outcome, "cublasLtMatmulDescSetAttribute",
        large->calls.desc_set(shape->desc, CUBLAS_LT_DESC_BIAS_POINTER, &matrix->bias, sizeof matrix->bias));
}

/* What all buckets of a shape have in common. The bias is that of one matrix: its alignment counts for the
 * choice. */
static bool describe(const struct library_products *large, struct library_shape *shape,
                     const struct device_matrix *matrix, struct outcome *outcome)
{
    static const char set[] = "cublasLtMatmulDescSetAttribute";
    const struct cublas_lt *calls = &large->calls;
    const int32_t transposed = CUBLAS_LT_OP_T;
    const uint32_t bias = CUBLAS_LT_EPILOGUE_BIAS;
    if (!went_well(outcome, "cublasLtMatmulDescCreate",
                   calls->desc_create(&shape->desc, CUBLAS_LT_COMPUTE_32F, CUBLAS_LT_R_32F)) ||
        !went_well(outcome, set,
                   calls->desc_set(shape->desc, CUBLAS_LT_DESC_TRANSA, &transposed, sizeof transposed)))
        return false;
    if (shape->has_bias &&
        (!went_well(outcome, set,
                    calls->desc_set(shape->desc, CUBLAS_LT_DESC_EPILOGUE, &bias, sizeof bias)) ||
         !set_bias(large, shape, matrix, outcome)))
        return false;
    return went_well(outcome, "cublasLtMatrixLayoutCreate",
                     calls->layout_create(&shape->weights, CUBLAS_LT_R_16BF, shape->n_columns,
                                          shape->n_outputs, shape->n_columns));
}

static bool lay_out(const struct library_products *large, const struct library_shape *shape, uint32_t n_rows,
                    struct library_bucket *bucket, struct outcome *outcome)
{
    const struct cublas_lt *calls = &large->calls;
    return went_well(outcome, "cublasLtMatrixLayoutCreate",
                     calls->layout_create(&bucket->x, CUBLAS_LT_R_16BF, shape->n_columns, n_rows,
                                          shape->x_stride)) &&
           went_well(outcome, "cublasLtMatrixLayoutCreate",
                     calls->layout_create(&bucket->out, CUBLAS_LT_R_32F, shape->n_outputs, n_rows,
                                          shape->out_stride));
}

static bool ask_heuristics(const struct library_products *large, const struct library_shape *shape,
                           struct library_bucket *bucket, struct outcome *outcome)
{
    const struct cublas_lt *calls = &large->calls;
    const uint64_t bytes = SCRATCH_BYTES;
    cublas_lt_preference preference = NULL;
    int n = 0;
    if (!went_well(outcome, "cublasLtMatmulPreferenceCreate", calls->preference_create(&preference)))
        return false;
    if (went_well(
            outcome, "cublasLtMatmulPreferenceSetAttribute",
            calls->preference_set(preference, CUBLAS_LT_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes)) &&
        went_well(outcome, "cublasLtMatmulAlgoGetHeuristic",
                  calls->heuristic(large->handle, shape->desc, shape->weights, bucket->x, bucket->out,
                                   bucket->out, preference, 1, &bucket->choice, &n)))
        outcome->status = n < 1 ? CUBLAS_LT_NOT_SUPPORTED : bucket->choice.state;
    calls->preference_destroy(preference);
    return outcome->status == CUBLAS_LT_SUCCESS;
}

/* One bucket of a shape. 0, with shape->refused where the library has nothing. */
static int choose(const struct planning *planning, struct library_shape *shape, uint32_t i)
{
    const struct library_products *large = planning->large;
    const uint32_t n_rows = bucket_rows(large, i);
    struct outcome outcome;
    if (!lay_out(large, shape, n_rows, &shape->buckets[i], &outcome))
        return blame(large, planning->queue, &outcome, shape, n_rows);
    if (ask_heuristics(large, shape, &shape->buckets[i], &outcome))
        return 0;
    shape->refused = outcome.status == CUBLAS_LT_NOT_SUPPORTED;
    return shape->refused ? 0 : blame(large, planning->queue, &outcome, shape, n_rows);
}

/* What identifies the algorithm of a bucket. */
struct algorithm_name {
    uint32_t id, tile, n_splits;
};

static struct algorithm_name name_of(const struct library_products *large,
                                     const struct library_bucket *bucket)
{
    struct algorithm_name name = {0};
    size_t written;
    const struct cublas_lt_algorithm *algorithm = &bucket->choice.algorithm;
    large->calls.algorithm_get(algorithm, CUBLAS_LT_ALGO_ID, &name.id, sizeof name.id, &written);
    large->calls.algorithm_get(algorithm, CUBLAS_LT_ALGO_TILE_ID, &name.tile, sizeof name.tile, &written);
    large->calls.algorithm_get(algorithm, CUBLAS_LT_ALGO_SPLITK_NUM, &name.n_splits, sizeof name.n_splits,
                               &written);
    return name;
}

/* Of all buckets: "cuBLASLt, products of 512 × 256: algorithm 66, tile 20 to 128 rows; …", neighbours that
 * have the same as one. What does not fit into the line is left out. */
static void tell(const struct planning *planning, const struct library_shape *shape)
{
    const struct library_products *large = planning->large;
    char line[400];
    int at = snprintf(line, sizeof line, "cuBLASLt, products of %u × %u%s: ", shape->n_outputs,
                      shape->n_columns, shape->has_bias ? " with a bias" : "");
    if (!planning->config->say)
        return;
    if (shape->refused)
        snprintf(line + at, sizeof line - (size_t)at, "it has no algorithm; using our own kernels");
    for (uint32_t i = 0; i < large->n_buckets && !shape->refused; i++) {
        const struct algorithm_name name = name_of(large, &shape->buckets[i]);
        const struct algorithm_name next =
            i + 1 < large->n_buckets ? name_of(large, &shape->buckets[i + 1]) : (struct algorithm_name){0};
        const bool goes_on = name.id == next.id && name.tile == next.tile && name.n_splits == next.n_splits;
        if (goes_on && i + 1 < large->n_buckets)
            continue;
        char splits[32] = "";
        if (name.n_splits > 1)
            snprintf(splits, sizeof splits, ", %u splits", name.n_splits);
        const int n =
            snprintf(line + at, sizeof line - (size_t)at, "%salgorithm %u, tile %u%s to %u rows",
                     line[at - 1] == ' ' ? "" : "; ", name.id, name.tile, splits, bucket_rows(large, i));
        if (n < 0 || (size_t)(at + n) >= sizeof line) {
            line[at] = 0;
            break;
        }
        at += n;
    }
    planning->config->say(planning->config->say_arg, line);
}

/* Every bucket once, with what is in memory. */
static int run_all(const struct planning *planning, const struct device_product *product,
                   const struct device_activations *x)
{
    int r = 0;
    for (uint32_t i = 0; i < planning->large->n_buckets && r == 0; i++) {
        const struct multiply_step step = {.n_rows = bucket_rows(planning->large, i)};
        r = library_products_multiply(planning->large, planning->queue, product, 1, x, &step);
        if (r == 0)
            r = device_synchronize(planning->queue);
    }
    return r;
}

/* The shape of a product, unless it is known. More shapes than there is room for stay with our own kernels.
 */
static int plan(const struct planning *planning, const struct device_product *product,
                const struct device_activations *x)
{
    struct library_products *large = planning->large;
    const struct device_matrix *matrix = product->matrix;
    if (matrix->n_rows == 0 || !takes_format(matrix->format) || shape_of(large, product, x->stride) ||
        large->n_shapes == LIBRARY_PRODUCTS_SHAPES)
        return 0;
    struct library_shape *shape = &large->shapes[large->n_shapes++];
    *shape = (struct library_shape){.n_outputs = matrix->n_rows,
                                    .n_columns = matrix->padded_columns,
                                    .x_stride = x->stride,
                                    .out_stride = product->out_stride,
                                    .has_bias = matrix->bias != NULL,
                                    .buckets = calloc(large->n_buckets, sizeof *shape->buckets)};
    if (!shape->buckets)
        return -ENOMEM;
    struct outcome outcome;
    if (!describe(large, shape, matrix, &outcome))
        return blame(large, planning->queue, &outcome, shape, large->most_rows);
    int r = 0;
    for (uint32_t i = 0; i < large->n_buckets && r == 0 && !shape->refused; i++)
        r = choose(planning, shape, i);
    if (r == 0)
        tell(planning, shape);
    return r < 0 || shape->refused ? r : run_all(planning, product, x);
}

int library_products_plan(struct library_products *large, struct device *device,
                          const struct device_weights *weights, const struct model *model,
                          const struct workspace *workspace, const struct backend_config *config)
{
    const struct workspace *w = workspace;
    const struct planning planning = {large, device_stream(device), config};
    int r = 0;
    for (uint32_t l = 0; l < model->params.n_layers && r == 0; l++) {
        const struct device_matrix *m = weights->layers[l].matrices;
        const struct {
            struct device_product product;
            const struct device_activations *x;
        } products[] = {{{&m[TENSOR_Q], w->q, w->q_stride}, &w->normed},
                        {{&m[TENSOR_K], w->k, w->kv_stride}, &w->normed},
                        {{&m[TENSOR_V], w->v, w->kv_stride}, &w->normed},
                        {{&m[TENSOR_OUTPUT_GATE], w->output_gate, w->attended.stride}, &w->normed},
                        {{&m[TENSOR_DELTA_OUTPUT], w->delta, w->embd_stride}, &w->attended},
                        {{&m[TENSOR_ATTENTION_OUTPUT], w->delta, w->embd_stride}, &w->attended},
                        {{&m[TENSOR_GATE], w->gate, w->ff_stride}, &w->normed},
                        {{&m[TENSOR_UP], w->up, w->ff_stride}, &w->normed},
                        {{&m[TENSOR_DOWN], w->delta, w->embd_stride}, &w->activated},
                        {{&m[TENSOR_SHARED_GATE], w->gate, w->ff_stride}, &w->normed},
                        {{&m[TENSOR_SHARED_UP], w->up, w->ff_stride}, &w->normed},
                        {{&m[TENSOR_SHARED_DOWN], w->experts.shared, w->embd_stride}, &w->activated},
                        {{&m[TENSOR_INPUT_GATE], w->gate, w->ff_stride}, &w->normed},
                        {{&m[TENSOR_INPUT_PROJECTION], w->delta, w->embd_stride}, &w->activated}};
        for (size_t i = 0; i < sizeof products / sizeof *products && r == 0; i++)
            r = plan(&planning, &products[i].product, products[i].x);
    }
    return r;
}

/* ---- products ---- */

/* What a product has to read of it. */
static size_t bytes_of(const struct device_matrix *matrix)
{
    const struct layout *layout = layout_of(matrix->format);
    return layout ? layout_bytes(layout, matrix->n_rows, matrix->n_columns) : 0;
}

static int multiply(const struct library_products *large, struct device_stream *queue,
                    const struct library_shape *shape, const struct device_product *product, uint32_t bucket)
{
    static const char call[] = "cublasLtMatmul";
    static const float one = 1, zero = 0;
    const struct cublas_lt *calls = &large->calls;
    const struct library_bucket *of = &shape->buckets[bucket];
    const struct device_matrix *matrix = product->matrix;
    const bool in_place = matrix->format == FORMAT_BF16;
    const void *weights = in_place ? matrix->planes[0] : large->weights;
    const uint32_t n_rows = bucket_rows(large, bucket);
    struct outcome outcome;
    void *native = NULL;
    device_expect(queue, bytes_of(matrix)); /* whoever opens the file's numbers */
    int r = in_place ? 0 : kernels_unpack(queue, matrix, large->weights);
    if (r < 0)
        return r;
    if (shape->has_bias && !set_bias(large, shape, matrix, &outcome))
        return blame(large, queue, &outcome, shape, n_rows);
    r = device_library_begin(queue, call, &native);
    if (r < 0)
        return r;
    if (!went_well(&outcome, call,
                   calls->matmul(large->handle, shape->desc, &one, weights, shape->weights, large->x, of->x,
                                 &zero, product->out, of->out, product->out, of->out, &of->choice.algorithm,
                                 large->scratch, SCRATCH_BYTES, native)))
        return blame(large, queue, &outcome, shape, n_rows);
    return device_library_end(queue, call);
}

int library_products_multiply(const struct library_products *large, struct device_stream *queue,
                              const struct device_product *products, uint32_t n_products,
                              const struct device_activations *x, const struct multiply_step *step)
{
    const uint32_t bucket = bucket_of(large, step->n_rows);
    struct device_product own[KERNELS_PRODUCTS];
    uint32_t n_own = 0;
    size_t own_bytes = 0;
    int r = 0;
    if (step->n_rows > large->most_rows || n_products > KERNELS_PRODUCTS)
        return -EINVAL;
    for (uint32_t i = 0; i < n_products; i++)
        if (!plan_of(large, &products[i], x->stride)) {
            own[n_own++] = products[i];
            own_bytes += bytes_of(products[i].matrix);
        }
    if (n_own < n_products) {
        device_expect(queue, 0); /* rounding reads no weight */
        r = kernels_round(queue, x, step->n_rows, bucket_rows(large, bucket), large->x);
    }
    for (uint32_t i = 0; i < n_products && r == 0; i++) {
        const struct library_shape *shape = plan_of(large, &products[i], x->stride);
        if (shape)
            r = multiply(large, queue, shape, &products[i], bucket);
    }
    if (r < 0 || n_own == 0)
        return r;
    device_expect(queue, own_bytes);
    return kernels_multiply(queue, own, n_own, x, step);
}
