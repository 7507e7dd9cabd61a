/* SPDX-License-Identifier: MIT */
/* Loading: every tensor goes through a small ring of pinned staging, packed as layout.h says by the host
 * while the copy before it is under way, so that neither a second copy of the model nor of a tensor is ever
 * in memory. The file's pages are given back behind it. Rows that no file has in this form are made just
 * before they are packed, by the threads of the configuration.
 *
 * Where workers of one machine share weights (engine/backend/weight_store.h) the first one keeps what it
 * staged, one piece after the other, and the others copy those pieces and read no weight of the file. What
 * the pieces are follows from the model alone: the same walk counts them, makes them and copies them.
 *
 * Embeddings are looked up by rows, so they are kept as in the file; a tied head is there twice, packed and
 * not. */

#include "cuda/host/weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/kernels/layout.h"
#include "cuda/device/wait.h"
#include "cuda/host/memory/workspace.h"
#include "common/system/available.h"
#include "common/hash.h"
#include "engine/backend/weight_store.h"
#include "model/frequencies.h"

#define STAGINGS      3
#define STAGING_BYTES ((size_t)4 << 20) /* at most; less where the largest piece has less */
#define PLANE_ALIGN   256

/* Others do without rather than that more than this part of the host's free memory goes to it. */
#define MOST_KEPT 2

#define WEIGHTS_PACKING 1 /* another number for another order or another contents of pieces */

/* ---- memory ---- */

uint64_t device_weights_packing(void)
{
    const uint64_t way[] = {WEIGHTS_PACKING, STAGING_BYTES, LAYOUT_COLUMNS};
    return hash64(way, sizeof way, 'G');
}

static size_t row_bytes(const struct model_tensor *from)
{
    return format_bytes(from->weight->format, from->columns);
}

/* What is used number by number as it is, in floats: vectors, and taps. */
static uint32_t numbers_of(const struct model_tensor *from)
{
    return from->rows * from->columns;
}

static void take_floats(struct device_memory *memory, uint32_t n, const float **ret_floats)
{
    *ret_floats = device_memory_take_zeroed(memory, workspace_padded(n) * sizeof **ret_floats);
}

static void take_vector(struct device_memory *memory, const struct model_tensor *from,
                        struct device_vector *ret_vector)
{
    if (from->weight)
        take_floats(memory, numbers_of(from), &ret_vector->weight);
    if (from->weight && from->bias)
        take_floats(memory, from->columns, &ret_vector->bias);
}

static void describe(const struct model_tensor *from, struct device_matrix *ret_matrix)
{
    *ret_matrix = (struct device_matrix){.format = from->weight->format,
                                         .n_rows = from->rows,
                                         .n_experts = from->count,
                                         .n_columns = from->columns,
                                         .padded_columns = layout_padded(from->columns)};
}

/* Rows of a tensor: of all its matrices. */
static uint32_t all_rows(const struct model_tensor *from)
{
    return from->rows * from->count;
}

/* A token reads n_used of a tensor's matrices. */
static void take_matrix(struct device_weights *weights, struct device_memory *memory,
                        const struct model_tensor *from, uint32_t n_used, struct device_matrix *ret_matrix)
{
    const struct layout *layout = layout_of(from->weight->format);
    const size_t bytes = layout_bytes(layout, all_rows(from), from->columns);
    void *planes[LAYOUT_PLANES] = {NULL};
    describe(from, ret_matrix);
    void *taken = device_memory_take(memory, bytes);
    if (taken)
        layout_place(layout, all_rows(from), from->columns, taken, planes);
    for (uint32_t p = 0; p < LAYOUT_PLANES; p++)
        ret_matrix->planes[p] = planes[p];
    if (from->bias)
        take_floats(memory, all_rows(from), &ret_matrix->bias);
    weights->bytes += bytes / from->count * n_used;
}

/* Rows as they are in the file. */
static void take_rows(struct device_weights *weights, struct device_memory *memory,
                      const struct model_tensor *from, struct device_matrix *ret_matrix)
{
    if (!from->weight)
        return;
    describe(from, ret_matrix);
    ret_matrix->planes[0] = device_memory_take(memory, from->rows * row_bytes(from));
    weights->bytes += row_bytes(from);
}

/* The first layer that turns as layer l does. */
static uint32_t first_alike(const struct model *model, uint32_t l)
{
    uint32_t first = 0;
    while (!rotary_is_alike(&model->layers[first].traits.rotary, &model->layers[l].traits.rotary))
        first++;
    return first;
}

static void take_layer(struct device_weights *weights, struct device_memory *memory,
                       const struct model *model, uint32_t l)
{
    struct device_layer *layer = &weights->layers[l];
    const struct model_layer *from = &model->layers[l];
    const uint32_t alike = first_alike(model, l);
    for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES; role++) {
        const struct model_tensor *tensor = &from->tensors[role];
        if (tensor_is_plain(role))
            take_vector(memory, tensor, &layer->vectors[role]);
        else if (tensor->weight)
            take_matrix(weights, memory, tensor, tensor->count > 1 ? from->traits.experts.n_used : 1,
                        &layer->matrices[role]);
    }
    if (alike < l)
        layer->frequencies = weights->layers[alike].frequencies;
    else
        layer->frequencies =
            device_memory_take(memory, from->traits.rotary.dims / 2 * sizeof *layer->frequencies);
}

int device_weights_init(struct device_weights *weights, struct device_memory *memory,
                        const struct model *model)
{
    *weights = (struct device_weights){0};
    weights->layers = calloc(model->params.n_layers, sizeof *weights->layers);
    if (!weights->layers)
        return -ENOMEM;
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        take_layer(weights, memory, model, l);
    take_vector(memory, &model->tensors[TENSOR_OUTPUT_NORM], &weights->output_norm);
    take_matrix(weights, memory, &model->tensors[TENSOR_OUTPUT], 1, &weights->output);
    take_rows(weights, memory, &model->tensors[TENSOR_EMBEDDING], &weights->embedding);
    take_rows(weights, memory, &model->tensors[TENSOR_POSITIONS], &weights->positions);
    take_rows(weights, memory, &model->tensors[TENSOR_LAYER_EMBEDDING], &weights->layer_embedding);
    if (model->tensors[TENSOR_LAYER_PROJECTION].weight)
        take_matrix(weights, memory, &model->tensors[TENSOR_LAYER_PROJECTION], 1, &weights->layer_projection);
    take_vector(memory, &model->tensors[TENSOR_LAYER_PROJECTION_NORM], &weights->layer_projection_norm);
    return 0;
}

void device_weights_deinit(struct device_weights *weights)
{
    free(weights->layers);
    weights->layers = NULL;
}

static int check_format(const struct model_tensor *tensor, struct error *err)
{
    if (!tensor->weight || layout_of(tensor->weight->format))
        return 0;
    const struct bytes tensor_name = tensor->weight->name;
    const char *name = format_traits(tensor->weight->format)->name;
    return error_set(err, -EINVAL, "tensor %.*s: the CUDA backend cannot multiply format %s",
                     (int)tensor_name.len, (const char *)tensor_name.data, name ? name : "unknown");
}

int device_weights_check(const struct model *model, struct error *err)
{
    static const enum tensor_role of_model[] = {TENSOR_EMBEDDING, TENSOR_POSITIONS, TENSOR_LAYER_EMBEDDING,
                                                TENSOR_LAYER_PROJECTION, TENSOR_OUTPUT};
    int r = 0;
    for (size_t i = 0; i < sizeof of_model / sizeof *of_model && r == 0; i++)
        r = check_format(&model->tensors[of_model[i]], err);
    for (uint32_t l = 0; l < model->params.n_layers && r == 0; l++)
        for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES && r == 0; role++)
            if (!tensor_is_plain(role))
                r = check_format(&model->layers[l].tensors[role], err);
    return r;
}

/* ---- contents ---- */

struct loader {
    struct device *device; /* NULL: pieces are counted only */
    const struct backend_config *config;
    uint64_t layout;      /* of the pieces so far */
    size_t bytes, total;  /* of them, and of all */
    size_t largest;       /* of one, once all are counted */
    uint8_t *kept;        /* where pieces are kept for others; or NULL */
    const uint8_t *found; /* pieces that another worker has kept; or NULL */
    uint8_t *stagings[STAGINGS];
    bool queued[STAGINGS]; /* a copy from it may still be under way */
    uint32_t next;
    unsigned n_threads; /* that make rows */
    struct error *err;
};

/* The next staging, once the device is done with what it held, for a piece of `size` bytes. *ret_made: the
 * piece is in it already. NULL when pieces are counted only. */
static int open_piece(struct loader *loader, size_t size, uint8_t **ret_staging, bool *ret_made)
{
    loader->layout = hash64(&size, sizeof size, loader->layout);
    *ret_staging = NULL;
    *ret_made = false;
    if (!loader->device) {
        loader->bytes += size;
        loader->largest = size > loader->largest ? size : loader->largest;
        return 0;
    }
    int r = loader->queued[loader->next] ? device_wait_due(loader->device, MARK_WEIGHTS + loader->next) : 0;
    if (r < 0)
        return r;
    *ret_staging = loader->stagings[loader->next];
    *ret_made = loader->found;
    if (loader->found)
        memcpy(*ret_staging, loader->found + loader->bytes, size);
    return 0;
}

/* The piece is whole: before it is copied to the device. */
static void keep_piece(struct loader *loader, size_t size)
{
    if (loader->kept)
        memcpy(loader->kept + loader->bytes, loader->stagings[loader->next], size);
    loader->bytes += size;
}

static int close_piece(struct loader *loader)
{
    int r = device_mark(device_stream(loader->device), MARK_WEIGHTS + loader->next);
    loader->queued[loader->next] = true;
    loader->next = (loader->next + 1) % STAGINGS;
    if (loader->config->loaded)
        loader->config->loaded(loader->config->loaded_arg, loader->bytes, loader->total);
    return r;
}

static void progress(const struct loader *loader)
{
    if (loader->config->progress)
        loader->config->progress(loader->config->progress_arg); /* proof that loading goes on */
}

static size_t aligned(size_t bytes)
{
    return (bytes + PLANE_ALIGN - 1) / PLANE_ALIGN * PLANE_ALIGN;
}

/* Else nothing of the file is looked at. */
static bool makes_pieces(const struct loader *loader)
{
    return loader->device && !loader->found;
}

/* Makes rows first … last of a role, and those of others between them, if the tensor has a maker. */
static int make_rows(const struct loader *loader, const struct model_tensor *from, uint32_t first,
                     uint32_t last)
{
    const uint64_t row = model_tensor_row(from, first);
    return gguf_make_rows(from->weight, row, model_tensor_row(from, last) + 1 - row, loader->n_threads,
                          loader->err);
}

/* Packs n rows from `first` on, wherever they stand in the file. */
static void pack_rows(const struct model_tensor *from, uint32_t first, uint32_t n, uint8_t *const *planes)
{
    const enum format format = from->weight->format;
    const struct layout *layout = layout_of(format);
    for (uint32_t done = 0; done < n;) {
        const uint32_t row = first + done, left = n - done;
        const uint32_t together = from->run ? from->run - row % from->run : left;
        const uint32_t n_now = together < left ? together : left;
        uint8_t *to[LAYOUT_PLANES] = {NULL};
        for (uint32_t p = 0; p < layout->n_planes; p++)
            to[p] = planes[p] + done * layout_row_bytes(layout, p, from->columns);
        layout_pack(format,
                    (const uint8_t *)from->weight->data + model_tensor_row(from, row) * row_bytes(from),
                    n_now, from->columns, to);
        done += n_now;
    }
}

/* Packs n rows from `first` on into a staging, plane after plane, and queues a copy of each. */
static int load_packed_rows(struct loader *loader, const struct model_tensor *from,
                            const struct device_matrix *to, uint32_t first, uint32_t n)
{
    const struct layout *layout = layout_of(to->format);
    uint8_t *planes[LAYOUT_PLANES] = {NULL}, *staging = NULL;
    size_t offsets[LAYOUT_PLANES], size = 0;
    bool made;
    for (uint32_t p = 0; p < layout->n_planes; p++) {
        offsets[p] = size;
        size += aligned(n * layout_row_bytes(layout, p, to->n_columns));
    }
    int r = open_piece(loader, size, &staging, &made);
    if (r < 0 || !staging)
        return r;
    for (uint32_t p = 0; p < layout->n_planes; p++)
        planes[p] = staging + offsets[p];
    r = made ? 0 : make_rows(loader, from, first, first + n - 1);
    if (r < 0)
        return r;
    if (!made)
        pack_rows(from, first, n, planes);
    if (!made && from->weight->maker && !from->run)
        gguf_give_back(loader->config->model->gguf,
                       (const uint8_t *)from->weight->data + model_tensor_row(from, first) * row_bytes(from),
                       n * row_bytes(from));
    keep_piece(loader, size);
    for (uint32_t p = 0; p < layout->n_planes && r == 0; p++) {
        const size_t bytes = layout_row_bytes(layout, p, to->n_columns);
        r = device_copy(device_stream(loader->device), (uint8_t *)(uintptr_t)to->planes[p] + first * bytes,
                        planes[p], n * bytes);
    }
    return r < 0 ? r : close_piece(loader);
}

/* Bytes as they are, from where nothing is read when the pieces were found. */
static int load_bytes(struct loader *loader, const void *to, const void *from, size_t bytes)
{
    int r = 0;
    for (size_t done = 0; done < bytes && r == 0;) {
        const size_t n = bytes - done < STAGING_BYTES ? bytes - done : STAGING_BYTES;
        uint8_t *staging = NULL;
        bool made;
        r = open_piece(loader, n, &staging, &made);
        if (r < 0)
            return r;
        if (staging && !made)
            memcpy(staging, (const uint8_t *)from + done, n);
        if (staging) {
            keep_piece(loader, n);
            r = device_copy(device_stream(loader->device), (uint8_t *)(uintptr_t)to + done, staging, n);
            if (r == 0)
                r = close_piece(loader);
        }
        done += n;
    }
    return r;
}

/* Of a tensor whose roles take turns, with the last of them. */
static void give_back(const struct loader *loader, const struct model_tensor *from)
{
    if (!loader->device)
        return;
    const bool in_turns = from->run > 0, last = !in_turns || from->first_row + from->run == from->apart;
    const uint8_t *data = from->weight->data;
    const size_t bytes = row_bytes(from), first = in_turns ? 0 : from->first_row;
    const size_t n = in_turns ? (size_t)all_rows(from) / from->run * from->apart : all_rows(from);
    if (last)
        gguf_give_back(loader->config->model->gguf, data + first * bytes, n * bytes);
    progress(loader);
}

static int load_matrix(struct loader *loader, const struct model_tensor *from, const struct device_matrix *to)
{
    const struct layout *layout = layout_of(to->format);
    size_t bytes = 0; /* of a row, in all planes, with what aligning may add */
    for (uint32_t p = 0; p < layout->n_planes; p++)
        bytes += layout_row_bytes(layout, p, to->n_columns);
    const size_t fit = (STAGING_BYTES - LAYOUT_PLANES * PLANE_ALIGN) / bytes;
    int r = fit > 0 ? 0 : -EINVAL;
    for (uint32_t first = 0, all = all_rows(from); first < all && r == 0;) {
        const uint32_t n = all - first < fit ? all - first : (uint32_t)fit;
        r = load_packed_rows(loader, from, to, first, n);
        first += n;
    }
    if (r == 0 && from->bias && makes_pieces(loader))
        r = gguf_make_tensor(from->bias, 1, loader->err);
    if (r == 0 && from->bias)
        r = load_bytes(loader, to->bias, (const float *)from->bias->data + from->first_row,
                       all_rows(from) * sizeof(float));
    if (r == 0)
        give_back(loader, from);
    return r;
}

static int load_rows(struct loader *loader, const struct model_tensor *from, const struct device_matrix *to)
{
    if (!from->weight)
        return 0;
    int r = makes_pieces(loader) ? make_rows(loader, from, 0, from->rows - 1) : 0;
    if (r == 0)
        r = load_bytes(loader, to->planes[0],
                       (const uint8_t *)from->weight->data + from->first_row * row_bytes(from),
                       from->rows * row_bytes(from));
    if (r == 0)
        give_back(loader, from);
    return r;
}

/* Floats of any format, `offset` added. */
static int load_floats(struct loader *loader, const struct gguf_tensor *from, size_t n, float offset,
                       const float *to)
{
    if (!makes_pieces(loader))
        return load_bytes(loader, to, NULL, n * sizeof(float));
    int r = gguf_make_tensor(from, 1, loader->err);
    if (r < 0)
        return r;
    float *floats = malloc(n * sizeof *floats);
    if (!floats)
        return -ENOMEM;
    format_traits(from->format)->to_float(from->data, floats, n);
    for (size_t i = 0; i < n; i++)
        floats[i] += offset;
    r = load_bytes(loader, to, floats, n * sizeof *floats);
    free(floats);
    return r;
}

/* What is added to a layer's vector: norms may have an offset. */
static float offset_of(enum tensor_role role, const struct norm *norm)
{
    return tensor_is_norm(role) ? norm->offset : 0;
}

static int load_vector(struct loader *loader, const struct model_tensor *from, float offset,
                       const struct device_vector *to)
{
    int r = from->weight ? load_floats(loader, from->weight, numbers_of(from), offset, to->weight) : 0;
    return r == 0 && from->weight && from->bias ? load_floats(loader, from->bias, from->columns, 0, to->bias)
                                                : r;
}

static int load_frequencies(struct loader *loader, const struct rotary *rotary, const double *to)
{
    const float *factors = rotary_factors(loader->config->model, loader->config->n_context);
    const size_t bytes = rotary->dims / 2 * sizeof *to;
    if (!makes_pieces(loader))
        return load_bytes(loader, to, NULL, bytes);
    double *frequencies = malloc(bytes + 1);
    if (!frequencies)
        return -ENOMEM;
    rotary_frequencies(rotary, factors, frequencies);
    int r = load_bytes(loader, to, frequencies, bytes);
    free(frequencies);
    return r;
}

static int load_layer(struct loader *loader, const struct device_weights *weights, uint32_t l)
{
    const struct model *model = loader->config->model;
    const struct model_layer *from = &model->layers[l];
    const struct device_layer *to = &weights->layers[l];
    int r = first_alike(model, l) == l ? load_frequencies(loader, &from->traits.rotary, to->frequencies) : 0;
    for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES && r == 0; role++) {
        if (tensor_is_plain(role))
            r = load_vector(loader, &from->tensors[role], offset_of(role, &from->traits.norm),
                            &to->vectors[role]);
        else if (from->tensors[role].weight)
            r = load_matrix(loader, &from->tensors[role], &to->matrices[role]);
    }
    return r;
}

static int load_all(struct loader *loader, const struct device_weights *weights)
{
    const struct model *model = loader->config->model;
    int r = 0;
    for (uint32_t l = 0; l < model->params.n_layers && r == 0; l++)
        r = load_layer(loader, weights, l);
    if (r == 0)
        r = load_vector(loader, &model->tensors[TENSOR_OUTPUT_NORM], model->output_norm.offset,
                        &weights->output_norm);
    if (r == 0)
        r = load_matrix(loader, &model->tensors[TENSOR_OUTPUT], &weights->output);
    if (r == 0)
        r = load_rows(loader, &model->tensors[TENSOR_EMBEDDING], &weights->embedding);
    if (r == 0)
        r = load_rows(loader, &model->tensors[TENSOR_POSITIONS], &weights->positions);
    if (r == 0)
        r = load_rows(loader, &model->tensors[TENSOR_LAYER_EMBEDDING], &weights->layer_embedding);
    if (r == 0 && model->tensors[TENSOR_LAYER_PROJECTION].weight)
        r = load_matrix(loader, &model->tensors[TENSOR_LAYER_PROJECTION], &weights->layer_projection);
    if (r == 0)
        r = load_vector(loader, &model->tensors[TENSOR_LAYER_PROJECTION_NORM], model->output_norm.offset,
                        &weights->layer_projection_norm);
    for (uint32_t i = 0; i < STAGINGS && r == 0; i++)
        r = loader->queued[i] ? device_wait_due(loader->device, MARK_WEIGHTS + i) : 0;
    return r;
}

/* Counts the pieces, and finds those that others have kept, or memory to keep them in, where there is some.
 * Without, the file is read. */
static int find_pieces(struct loader *loader, const struct device_weights *weights)
{
    struct weight_store *store = loader->config->weights;
    /* Frequencies are among the pieces, and those of long-rope hang on the context. */
    const uint64_t stretched = model_is_stretched(loader->config->model, loader->config->n_context);
    struct loader counted = {.config = loader->config, .layout = WEIGHTS_PACKING | stretched << 32};
    struct available available;
    void *kept;
    int r = load_all(&counted, weights);
    loader->total = counted.bytes;
    loader->largest = counted.largest;
    if (r < 0 || !store)
        return r;
    loader->found = weight_store_find(store, counted.layout, counted.bytes);
    bool fits = available_read("", &available) < 0 || counted.bytes <= available.now / MOST_KEPT;
    if (!loader->found && fits &&
        weight_store_make(store, counted.layout, counted.bytes, NULL, NULL, &kept) == 0)
        loader->kept = kept;
    return 0;
}

int device_weights_load(struct device_weights *weights, struct device *device,
                        const struct backend_config *config, struct error *err)
{
    struct error unmade = {0}; /* why a row could not be made */
    struct loader loader = {
        .device = device, .config = config, .n_threads = config->cpu.n_threads, .err = &unmade};
    int r = find_pieces(&loader, weights);
    for (uint32_t i = 0; i < STAGINGS && r == 0; i++) {
        loader.stagings[i] = device_pinned(device, loader.largest);
        r = loader.stagings[i] ? 0 : -ENOMEM;
    }
    if (r == 0)
        r = load_all(&loader, weights);
    if (r < 0 && device_verdict(device, err) == 0)
        error_set(err, r, "the weights could not be loaded: %s", unmade.text[0] ? unmade.text : strerror(-r));
    /* Of a device that failed the copies may still be under way: its memory goes with it. */
    for (uint32_t i = 0; i < STAGINGS && r == 0; i++)
        device_pinned_free(device, loader.stagings[i]);
    return r;
}
