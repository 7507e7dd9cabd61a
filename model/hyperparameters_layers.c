/* SPDX-License-Identifier: MIT */
/* Lists: a bool or a count for each layer of the file, those that guess tokens ahead included. A list has one
 * entry for each layer or is refused; nothing is repeated to make it long enough. */

#include "model/hyperparameters_layers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "gguf/gguf_values.h"
#include "model/hyperparameters.h"

#define WINDOWS   "attention.sliding_window_pattern"
#define RECURRENT "attention.recurrent_layers"
#define KV_HEADS  "attention.head_count_kv"
#define WIDTHS    "feed_forward_length"

struct lists {
    const struct gguf *gguf;
    const struct architecture *architecture;
    uint32_t n; /* layers of the file */
    struct error *err;
};

static const char *full_key(const struct architecture *architecture, const char *name, char ret_key[96])
{
    snprintf(ret_key, 96, "%s.%s", architecture->name, name);
    return ret_key;
}

static int check_length(const struct lists *lists, const char *key, const struct gguf_value *list,
                        const char *what)
{
    if (list->type != GGUF_ARRAY || list->array.n != lists->n)
        return error_set(lists->err, -EINVAL,
                         "hyperparameter %s: expected a %s for each of %" PRIu32 " layers", key, what,
                         lists->n);
    if (list->array.n > MODEL_LISTED_LAYERS)
        return error_out_of_range(lists->err, -EINVAL, "number of layers", (int64_t)list->array.n, 1,
                                  MODEL_LISTED_LAYERS);
    return 0;
}

/* As bits. */
static int read_bools(const struct lists *lists, const char *key, const struct gguf_value *list,
                      uint64_t layers[MODEL_LISTED_LAYERS / 64])
{
    int r =
        list->type == GGUF_ARRAY && list->array.type == GGUF_BOOL
            ? check_length(lists, key, list, "bool")
            : error_set(lists->err, -EINVAL,
                        "hyperparameter %s: expected a bool for each of %" PRIu32 " layers", key, lists->n);
    for (uint32_t i = 0; i < lists->n && r == 0; i++)
        if (gguf_array_int(list, i))
            layers[i / 64] |= 1ull << (i % 64);
    return r;
}

/* Which layers see a window only: a list, or a period. */
static int read_windows(const struct lists *lists, struct model_params *params)
{
    char key[96];
    const struct gguf_value *list = gguf_find(lists->gguf, full_key(lists->architecture, WINDOWS, key));
    if (!list && lists->architecture->layers_differ)
        return error_set(lists->err, -EINVAL, "hyperparameter %s is missing", key);
    if (!list)
        return 0;
    if (list->type != GGUF_ARRAY && !lists->architecture->layers_differ) {
        int r = gguf_u32(lists->gguf, key, &params->window_period, lists->err);
        return r < 0 ? r : 0;
    }
    params->windows_listed = true;
    return read_bools(lists, key, list, params->window_layers);
}

static int read_recurrent(const struct lists *lists, struct model_params *params)
{
    char key[96];
    const struct gguf_value *list = gguf_find(lists->gguf, full_key(lists->architecture, RECURRENT, key));
    if (!list || !lists->architecture->delta_nets)
        return 0;
    params->recurrent_listed = true;
    return read_bools(lists, key, list, params->recurrent_layers);
}

/* A list of counts, and the largest; a single count is none and was read with the others. */
static int read_counts(const struct lists *lists, const char *name, bool *ret_listed,
                       uint32_t counts[MODEL_LISTED_LAYERS], uint32_t *ret_largest)
{
    char key[96];
    const struct gguf_value *list = gguf_find(lists->gguf, full_key(lists->architecture, name, key));
    if (!list || list->type != GGUF_ARRAY || !lists->architecture->layers_differ)
        return 0;
    const enum gguf_type type = list->array.type;
    if (type == GGUF_STRING || type == GGUF_F32 || type == GGUF_F64 || type == GGUF_BOOL)
        return error_set(lists->err, -EINVAL,
                         "hyperparameter %s: expected an integer for each of %" PRIu32 " layers", key,
                         lists->n);
    int r = check_length(lists, key, list, "count");
    *ret_listed = true;
    for (uint32_t i = 0; i < lists->n && r == 0; i++) {
        const int64_t count = gguf_array_int(list, i);
        if (count < 1 || count > HYPERPARAMETERS_LIMIT)
            return error_out_of_range(lists->err, -EINVAL, key, count, 1, HYPERPARAMETERS_LIMIT);
        counts[i] = (uint32_t)count;
        *ret_largest = counts[i] > *ret_largest ? counts[i] : *ret_largest;
    }
    return r;
}

int hyperparameters_read_layers(const struct gguf *gguf, const struct architecture *architecture,
                                struct model_params *params, struct error *err)
{
    const struct lists lists = {gguf, architecture, params->n_layers + params->n_draft_layers, err};
    int r = read_windows(&lists, params);
    if (r == 0)
        r = read_recurrent(&lists, params);
    if (r == 0)
        r = read_counts(&lists, KV_HEADS, &params->kv_heads_listed, params->listed_kv_heads,
                        &params->n_kv_heads);
    return r < 0 ? r : read_counts(&lists, WIDTHS, &params->ff_listed, params->listed_ff, &params->n_ff);
}

static int write_counts(const struct model_params *params, const struct architecture *architecture,
                        const char *name, const uint32_t *counts, struct gguf_writer *writer)
{
    char key[96];
    int32_t items[MODEL_LISTED_LAYERS];
    for (uint32_t i = 0; i < params->n_layers; i++)
        items[i] = (int32_t)counts[i];
    return gguf_writer_i32s(writer, full_key(architecture, name, key), items, params->n_layers);
}

int hyperparameters_write_layers(const struct model_params *params, const struct architecture *architecture,
                                 struct gguf_writer *writer)
{
    char key[96];
    bool windows[MODEL_LISTED_LAYERS];
    int r = 0;
    for (uint32_t i = 0; i < params->n_layers && params->windows_listed; i++)
        windows[i] = params_list_window(params, i);
    if (params->windows_listed)
        r = gguf_writer_bools(writer, full_key(architecture, WINDOWS, key), windows, params->n_layers);
    if (r == 0 && params->kv_heads_listed)
        r = write_counts(params, architecture, KV_HEADS, params->listed_kv_heads, writer);
    if (r == 0 && params->ff_listed)
        r = write_counts(params, architecture, WIDTHS, params->listed_ff, writer);
    return r;
}
