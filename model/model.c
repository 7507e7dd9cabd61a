/* SPDX-License-Identifier: MIT */
/* Models: every role that the description asks for gets its tensor, found by name and checked by shape.
 *
 * A model owns its gguf, whose mapping every tensor points into, and its tokenizer. One pass asks for each
 * tensor by name and ticks it off; what is left over afterwards is refused, because a tensor that no one
 * asked for means a computation that no one does. Tensors that several roles share are found whole and then
 * dealt out as slices. Nothing is read from the weights but the few rotary factors.
 *
 * Matrices may have any format of gguf/formats.h; which of them a backend can compute with is its own
 * to say. Norms, biases and rotary factors are F32. */

#include "model/model.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "common/utf8.h"
#include "model/overrides.h"
#include "model/huggingface/folder.h"
#include "model/hyperparameters.h"
#include "model/sampling_hints.h"
#include "gguf/gguf_digest.h"
#include "gguf/gguf_values.h"

struct finder {
    const struct gguf *gguf;
    const struct architecture *architecture;
    const struct model_params *params;
    bool *used; /* [tensors of the file] */
    struct error *err;
};

/* Looks a tensor up and ticks it off; NULL when there is none. */
static const struct gguf_tensor *take(struct finder *finder, const char *name)
{
    const struct gguf_tensor *tensor = gguf_find_tensor(finder->gguf, name);
    if (tensor)
        finder->used[tensor - gguf_tensor_at(finder->gguf, 0)] = true;
    return tensor;
}

static int check_f32(const struct finder *finder, const char *name, const struct gguf_tensor *tensor)
{
    return tensor->format == FORMAT_F32
               ? 0
               : error_set(finder->err, -EINVAL, "tensor %s has format %s, expected F32", name,
                           format_traits(tensor->format)->name);
}

static int check_vector(const struct finder *finder, const char *name, const struct gguf_tensor *tensor,
                        uint64_t n)
{
    if (tensor->n_dims != 1 || tensor->dims[0] != n)
        return error_set(finder->err, -EINVAL,
                         "tensor %s has %" PRIu32 " dimensions, the first of %" PRIu64
                         "; expected one of %" PRIu64,
                         name, tensor->n_dims, tensor->dims[0], n);
    return check_f32(finder, name, tensor);
}

static int check_matrix(const struct finder *finder, const char *name, const struct gguf_tensor *tensor,
                        const struct tensor_shape *shape)
{
    if (tensor->dims[0] != shape->columns || tensor->dims[1] != shape->rows || tensor->dims[3] != 1)
        return error_set(finder->err, -EINVAL,
                         "tensor %s has %" PRIu64 " rows of %" PRIu64 "; expected %" PRIu32 " of %" PRIu32,
                         name, tensor->dims[1], tensor->dims[0], shape->rows, shape->columns);
    if (tensor->dims[2] != shape->count)
        return error_set(finder->err, -EINVAL, "tensor %s has %" PRIu64 " matrices; expected %" PRIu32, name,
                         tensor->dims[2], shape->count);
    if (!format_traits(tensor->format)->to_float)
        return error_set(finder->err, -EINVAL, "tensor %s has format %s, which is not supported", name,
                         format_traits(tensor->format)->name);
    return 0;
}

/* Of experts: a row for each. */
static int check_biases(const struct finder *finder, const char *name, const struct gguf_tensor *tensor,
                        const struct tensor_shape *shape)
{
    if (tensor->n_dims != 2 || tensor->dims[0] != shape->rows || tensor->dims[1] != shape->count)
        return error_set(finder->err, -EINVAL,
                         "tensor %s has %" PRIu64 " rows of %" PRIu64 "; expected %" PRIu32 " of %" PRIu32,
                         name, tensor->dims[1], tensor->dims[0], shape->count, shape->rows);
    return check_f32(finder, name, tensor);
}

/* Numbers that are used as they are, but no vector. */
static int check_plain_matrix(const struct finder *finder, const char *name, const struct gguf_tensor *tensor,
                              const struct tensor_shape *shape)
{
    int r = check_matrix(finder, name, tensor, shape);
    return r < 0 ? r : check_f32(finder, name, tensor);
}

/* The tensor of a role and its bias; `parts` are the roles it is shared by, or itself. */
static int find(struct finder *finder, enum tensor_role role, uint32_t layer,
                const struct layer_traits *traits, tensor_set parts, struct model_tensor *ret_tensor)
{
    struct tensor_shape shape = tensor_shape(finder->params, traits, role);
    bool vector = tensor_is_vector(role);
    char name[TENSOR_NAME_SIZE];
    struct model_tensor found = {
        .rows = vector ? 1 : shape.rows, .columns = shape.columns, .count = shape.count};
    found.weight = take(finder, tensor_name(role, layer, false, name));
    if (!found.weight)
        return error_set(finder->err, -EINVAL, "tensor %s is missing", name);
    int r = vector                  ? check_vector(finder, name, found.weight, shape.columns)
            : tensor_is_plain(role) ? check_plain_matrix(finder, name, found.weight, &shape)
                                    : check_matrix(finder, name, found.weight, &shape);
    const struct architecture *architecture = finder->architecture;
    if (r == 0 && (architecture->biases | architecture->optional_biases) & parts) {
        found.bias = take(finder, tensor_name(role, layer, true, name));
        if (found.bias)
            r = shape.count > 1 ? check_biases(finder, name, found.bias, &shape)
                                : check_vector(finder, name, found.bias, vector ? shape.columns : shape.rows);
        else if (architecture->biases & parts)
            r = error_set(finder->err, -EINVAL, "tensor %s is missing", name);
    }
    if (r == 0)
        *ret_tensor = found;
    return r;
}

/* Finds a tensor; where several roles share it, deals its rows out to them in their order. */
static int find_role(struct finder *finder, enum tensor_role role, uint32_t i, struct model_layer *layer)
{
    struct model_tensor whole;
    struct tensor_part parts[TENSOR_MOST_PARTS];
    const uint32_t n = tensor_parts(finder->params, &layer->traits, role, parts);
    int r = find(finder, role, i, &layer->traits, tensor_part_set(&layer->traits, role), &whole);
    for (uint32_t p = 0; r == 0 && p < n; p++) {
        struct model_tensor *part = &layer->tensors[parts[p].role];
        *part = whole;
        if (n > 1)
            part->rows = tensor_shape(finder->params, &layer->traits, parts[p].role).rows;
        part->first_row = parts[p].first_row;
        part->run = parts[p].run;
        part->apart = parts[p].apart;
    }
    return r;
}

static bool is_there(const struct finder *finder, enum tensor_role role, uint32_t i)
{
    char name[TENSOR_NAME_SIZE];
    return gguf_find_tensor(finder->gguf, tensor_name(role, i, false, name)) != NULL;
}

/* The tensors of layer i: which of them are shared is the file's to say, where the architecture lets it. One
 * that is always shared, and of which no part is there either, is asked for, and missed, as the whole. */
static tensor_set tensors_of(const struct finder *finder, uint32_t i, const struct layer_traits *traits)
{
    const struct architecture *architecture = finder->architecture;
    tensor_set wholes = 0;
    for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES; role++) {
        const tensor_set parts = tensor_part_set(traits, role);
        bool fuse = architecture->may_fuse & TENSOR_BIT(role) && is_there(finder, role, i);
        if (architecture->fused & TENSOR_BIT(role))
            fuse = parts && (is_there(finder, role, i) ||
                             !is_there(finder, (enum tensor_role)__builtin_ctzll(parts), i));
        wholes |= fuse ? TENSOR_BIT(role) : 0;
    }
    return architecture_fuse(architecture_layer_roles(traits), traits, wholes);
}

/* Has the file such a tensor, or one that it is a part of? */
static bool is_found(const struct finder *finder, enum tensor_role role, uint32_t i,
                     const struct layer_traits *traits)
{
    const tensor_set wholes = finder->architecture->fused | finder->architecture->may_fuse;
    for (enum tensor_role whole = TENSOR_LAYER_ROLES; whole < TENSOR_ROLES; whole++)
        if (wholes & TENSOR_BIT(whole) && tensor_part_set(traits, whole) & TENSOR_BIT(role) &&
            is_there(finder, whole, i))
            return true;
    return is_there(finder, role, i);
}

/* Files may carry keys and values of a layer that borrows others: nothing reads them. */
static void pass_over_unused(struct finder *finder, uint32_t i, const struct layer_traits *traits)
{
    static const enum tensor_role unused[] = {TENSOR_K, TENSOR_K_NORM, TENSOR_V};
    char name[TENSOR_NAME_SIZE];
    for (size_t t = 0; t < sizeof unused / sizeof *unused && traits->borrows_kv; t++)
        take(finder, tensor_name(unused[t], i, false, name));
}

static void settle(const struct finder *finder, uint32_t i, struct layer_traits *traits)
{
    for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES; role++)
        if (finder->architecture->may_lack & TENSOR_BIT(role))
            architecture_settle(traits, role, is_found(finder, role, i, traits));
}

static int find_layer(struct finder *finder, uint32_t i, struct model_layer *layer)
{
    layer->traits = architecture_layer(finder->architecture, finder->params, i);
    settle(finder, i, &layer->traits);
    pass_over_unused(finder, i, &layer->traits);
    const tensor_set tensors = tensors_of(finder, i, &layer->traits);
    int r = 0;
    for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES && r == 0; role++)
        if (tensors & TENSOR_BIT(role))
            r = find_role(finder, role, i, layer);
    return r;
}

/* A factor of 0 or NaN would make every angle infinite. */
static int check_factors(const struct model *model, enum tensor_role role, struct error *err)
{
    const struct gguf_tensor *tensor = model->tensors[role].weight;
    const float *factors = tensor ? tensor->data : NULL;
    char name[TENSOR_NAME_SIZE];
    for (uint32_t i = 0; tensor && i < tensor->dims[0]; i++)
        if (!(factors[i] > 0) || !isfinite(factors[i]))
            return error_set(err, -EINVAL, "%s holds %g at %" PRIu32, tensor_name(role, 0, false, name),
                             (double)factors[i], i);
    return 0;
}

/* One list of factors, or two by the length of sequences. Files seldom name the latter's scaling: the lists
 * say it. */
static int settle_rotary_factors(struct model *model, struct error *err)
{
    const struct model_tensor *tensors = model->tensors;
    const bool has_short = tensors[TENSOR_ROTARY_SHORT].weight, has_long = tensors[TENSOR_ROTARY_LONG].weight;
    char name[TENSOR_NAME_SIZE], other[TENSOR_NAME_SIZE];
    if (has_short != has_long || (model->params.rope_scaling == ROTARY_LONG && !has_long))
        return error_set(err, -EINVAL, "tensor %s is missing, which long-rope needs",
                         tensor_name(has_long ? TENSOR_ROTARY_SHORT : TENSOR_ROTARY_LONG, 0, false, name));
    if (has_long && tensors[TENSOR_ROTARY_FACTORS].weight)
        return error_set(err, -EINVAL, "tensor %s is not allowed beside %s",
                         tensor_name(TENSOR_ROTARY_FACTORS, 0, false, name),
                         tensor_name(TENSOR_ROTARY_LONG, 0, false, other));
    if (has_long && model->params.rope_scaling == ROTARY_UNSCALED)
        model->params.rope_scaling = ROTARY_LONG;
    int r = 0;
    for (enum tensor_role role = TENSOR_ROTARY_FACTORS; role <= TENSOR_ROTARY_LONG && r == 0; role++)
        r = check_factors(model, role, err);
    return r;
}

/* The embedding's rows are the vocabulary. */
static int count_vocabulary(const struct finder *finder, struct model_params *params)
{
    char name[TENSOR_NAME_SIZE];
    const struct gguf_tensor *tensor =
        gguf_find_tensor(finder->gguf, tensor_name(TENSOR_EMBEDDING, 0, false, name));
    if (!tensor)
        return error_set(finder->err, -EINVAL, "tensor %s is missing", name);
    if (tensor->dims[1] > INT32_MAX / 2)
        return error_set(finder->err, -EINVAL, "tensor %s has too many rows", name);
    params->n_vocab = (uint32_t)tensor->dims[1];
    return 0;
}

static int find_outer_tensors(struct finder *finder, struct model *model)
{
    const struct architecture *architecture = finder->architecture;
    bool turns = architecture->layer.rotary.kind != ROTARY_NONE, layers_get = model->params.n_layer_embd > 0;
    const struct {
        enum tensor_role role;
        bool wanted, optional;
    } all[] = {{TENSOR_EMBEDDING, true, false},
               {TENSOR_POSITIONS, architecture->positions, false},
               {TENSOR_ROTARY_FACTORS, turns, true},
               {TENSOR_ROTARY_SHORT, turns, true},
               {TENSOR_ROTARY_LONG, turns, true},
               {TENSOR_LAYER_EMBEDDING, layers_get, false},
               {TENSOR_LAYER_PROJECTION, layers_get, false},
               {TENSOR_LAYER_PROJECTION_NORM, layers_get, false},
               {TENSOR_OUTPUT_NORM, true, false},
               {TENSOR_OUTPUT, true, true},
               {TENSOR_RANK_HEAD, model->params.pooling == POOLING_RANK, false}};
    char name[TENSOR_NAME_SIZE];
    int r = count_vocabulary(finder, &model->params);
    for (size_t i = 0; i < sizeof all / sizeof all[0] && r == 0; i++) {
        enum tensor_role role = all[i].role;
        bool there = gguf_find_tensor(finder->gguf, tensor_name(role, 0, false, name)) != NULL;
        if (all[i].wanted && (there || !all[i].optional))
            r = find(finder, role, 0, NULL, TENSOR_BIT(role), &model->tensors[role]);
    }
    if (r == 0 && !model->tensors[TENSOR_OUTPUT].weight)
        model->tensors[TENSOR_OUTPUT] = model->tensors[TENSOR_EMBEDDING];
    return r < 0 ? r : settle_rotary_factors(model, finder->err);
}

/* Of a layer that guesses tokens ahead? Nothing here computes those. */
static bool is_draft(const struct finder *finder, struct bytes name)
{
    uint32_t layer;
    return tensor_layer_of(name, &layer) && layer >= finder->params->n_layers &&
           layer - finder->params->n_layers < finder->params->n_draft_layers;
}

static int refuse_leftovers(const struct finder *finder)
{
    for (size_t i = 0; i < gguf_n_tensors(finder->gguf); i++) {
        char name[64];
        if (!finder->used[i] && !is_draft(finder, gguf_tensor_at(finder->gguf, i)->name))
            return error_set(finder->err, -EINVAL, "unexpected tensor %s in a %s model",
                             utf8_printable(gguf_tensor_at(finder->gguf, i)->name, sizeof name, name),
                             finder->architecture->name);
    }
    return 0;
}

/* Of layer i, with all shared that may be. */
static int fewest_tensors(const struct architecture *architecture, const struct model_params *params,
                          uint32_t i)
{
    const struct layer_traits layer = architecture_layer(architecture, params, i);
    const tensor_set wholes = architecture->fused | architecture->may_fuse;
    const tensor_set roles = architecture_layer_roles(&layer) & ~architecture->may_lack;
    return __builtin_popcountll(architecture_fuse(roles, &layer, wholes));
}

/* Before memory is taken for as many layers as the file says. */
static int check_layer_count(const struct finder *finder, size_t n_tensors)
{
    const uint32_t n_layers = finder->params->n_layers;
    int least = TENSOR_ROLES;
    for (uint32_t i = 0; i < n_layers && i < MODEL_LISTED_LAYERS; i++) {
        const int n = fewest_tensors(finder->architecture, finder->params, i);
        least = n < least ? n : least;
    }
    if (n_layers > n_tensors / (size_t)least)
        return error_set(finder->err, -EINVAL,
                         "%s.block_count is %" PRIu32 ", but there are only %zu tensors",
                         finder->architecture->name, n_layers, n_tensors);
    return 0;
}

static int find_tensors(struct model *model, const struct architecture *architecture, struct error *err)
{
    size_t n_tensors = gguf_n_tensors(model->gguf);
    uint32_t n_layers = model->params.n_layers;
    struct finder finder = {
        .gguf = model->gguf, .architecture = architecture, .params = &model->params, .err = err};
    finder.used = calloc(n_tensors, sizeof(bool));
    int r = finder.used ? find_outer_tensors(&finder, model) : -ENOMEM;
    if (r == 0)
        r = check_layer_count(&finder, n_tensors);
    if (r == 0 && !(model->layers = calloc(n_layers, sizeof *model->layers)))
        r = -ENOMEM;
    for (uint32_t i = 0; i < n_layers && r == 0; i++)
        r = find_layer(&finder, i, &model->layers[i]);
    if (r == 0)
        r = refuse_leftovers(&finder);
    free(finder.used);
    return r;
}

/* Padding rows of the head and unused tokens never come out. Without a tokenizer every row may. */
static int fill_sample_mask(struct model *model, struct error *err)
{
    char name[TENSOR_NAME_SIZE];
    uint32_t n = model->params.n_vocab;
    uint32_t size = model->tokenizer ? tokenizer_size(model->tokenizer) : n;
    if (size > n)
        return error_set(err, -EINVAL, "the vocabulary has %" PRIu32 " tokens, %s only %" PRIu32 " rows",
                         size, tensor_name(TENSOR_EMBEDDING, 0, false, name), n);
    model->sample_mask = calloc((n + 31) / 32, sizeof *model->sample_mask);
    if (!model->sample_mask)
        return -ENOMEM;
    for (uint32_t id = 0; id < size; id++)
        if (!model->tokenizer || tokenizer_type(model->tokenizer, (int32_t)id) != TOKEN_UNUSED)
            model->sample_mask[id / 32] |= 1u << (id % 32);
    return 0;
}

static int load(const char *path, bool with_tokenizer, struct model *model, struct error *err)
{
    const struct architecture *architecture;
    int r = hyperparameters_read(model->gguf, path, &architecture, &model->params, err);
    if (r == 0)
        r = find_tensors(model, architecture, err);
    if (r == 0)
        model->output_norm = model->layers[0].traits.norm;
    if (r == 0 && with_tokenizer)
        r = tokenizer_new(model->gguf, &model->tokenizer, err);
    if (r == 0)
        r = fill_sample_mask(model, err);
    if (r == 0)
        r = gguf_string(model->gguf, "tokenizer.chat_template", &model->chat_template, err);
    if (r >= 0)
        r = gguf_string(model->gguf, MODEL_RANK_TEMPLATE, &model->rank_template, err);
    return r < 0 ? r : 0;
}

int model_take_gguf(struct gguf *gguf, const char *path, bool with_tokenizer, struct model **ret_model,
                    struct error *err)
{
    struct model *model = calloc(1, sizeof *model);
    if (!model) {
        gguf_free(gguf);
        return -ENOMEM;
    }
    model->gguf = gguf;
    int r = load(path, with_tokenizer, model, err);
    if (r < 0) {
        model_free(model);
        return error_prefix(err, r, "%s", path);
    }
    *ret_model = model;
    return 0;
}

int model_open_files(const char *path, struct gguf **ret_gguf, struct error *err)
{
    return huggingface_is_folder(path) ? huggingface_open(path, ret_gguf, err)
                                       : gguf_open(path, ret_gguf, err);
}

struct bytes model_files_note(const struct gguf *gguf)
{
    struct bytes note = {0};
    return gguf_string(gguf, HUGGINGFACE_NOTE, &note, NULL) == 0 ? note : (struct bytes){0};
}

int model_open(const char *path, bool with_tokenizer, struct model **ret_model, struct error *err)
{
    struct gguf *gguf;
    int r = model_open_files(path, &gguf, err);
    return r < 0 ? r : model_take_gguf(gguf, path, with_tokenizer, ret_model, err);
}

static int check_vocabulary(const struct model *model, const char *overrides, struct error *err)
{
    char key[sizeof model->params.architecture + 16];
    uint32_t said = 0;
    snprintf(key, sizeof key, "%s.vocab_size", model->params.architecture);
    if (!overrides_set_key(overrides, key))
        return 0;
    int r = gguf_u32(model->gguf, key, &said, err);
    if (r == 0 && said != model->params.n_vocab)
        r = error_set(err, -EINVAL, "--override-kv: %s=%u, but the embedding has %u rows", key, said,
                      model->params.n_vocab);
    return r < 0 ? r : 0;
}

/* What reads metadata behind the model itself, reads it before a key is called unread. */
static int check_readers(const struct model *model, const char *overrides, struct error *err)
{
    char key[OVERRIDES_TEXT];
    struct sampling_defaults sampling;
    struct tokenizer *tokenizer = NULL;
    struct error unused = {0};
    if (!overrides_find_unread(model->gguf, overrides, key))
        return 0;
    sampling_defaults_init(&sampling);
    sampling_hints(model->gguf, &sampling, &unused);
    int r = model->tokenizer ? 0 : tokenizer_new(model->gguf, &tokenizer, &unused);
    tokenizer_free(tokenizer);
    if (r < 0) /* one that no worker can use is its caller's to report */
        return r == -ENOMEM ? r : 0;
    return overrides_find_unread(model->gguf, overrides, key)
               ? error_set(err, -EINVAL, "--override-kv: %s has no effect on this %s model", key,
                           model->params.architecture)
               : 0;
}

int model_check_overrides(const struct model *model, const char *overrides, struct error *err)
{
    bool turns = !overrides_scale_positions(overrides);
    int r = check_vocabulary(model, overrides, err);
    if (r == 0)
        r = check_readers(model, overrides, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < model->params.n_layers && !turns; i++)
        turns = model->layers[i].traits.rotary.kind != ROTARY_NONE;
    return turns ? 0 : error_set(err, -EINVAL, "--rope-* and --yarn-*: the model has no rotary positions");
}

int model_open_overridden(const char *path, const char *overrides, bool with_tokenizer,
                          struct model **ret_model, struct error *err)
{
    struct gguf *gguf;
    struct model *model;
    int r = model_open_files(path, &gguf, err);
    if (r < 0)
        return r;
    r = overrides_apply(gguf, overrides, err);
    if (r < 0) {
        gguf_free(gguf);
        return error_prefix(err, r, "%s", path);
    }
    r = model_take_gguf(gguf, path, with_tokenizer, &model, err);
    if (r < 0)
        return overrides && overrides[0] ? error_prefix(err, r, "with overridden metadata") : r;
    r = model_check_overrides(model, overrides, err);
    if (r < 0) {
        model_free(model);
        return r;
    }
    *ret_model = model;
    return 0;
}

int model_read_digest(struct model *model, uint32_t n_threads, bool (*progress)(void *arg), void *arg,
                      struct error *err)
{
    int r = gguf_digest(model->gguf, n_threads, progress, arg, model->digest);
    return r < 0 ? error_set(err, r, "not enough memory for the digest of the model") : 0;
}

bool model_is_stretched(const struct model *model, uint32_t n_context)
{
    return model->tensors[TENSOR_ROTARY_LONG].weight &&
           n_context > model_params_trained_context(&model->params);
}

void model_mark_stretched(struct model *model, uint32_t n_context)
{
    model->digest[0] ^= model_is_stretched(model, n_context);
}

void model_let_go(struct model *model)
{
    gguf_let_go(model->gguf);
    model->chat_template = (struct bytes){0};
}

struct model *model_free(struct model *model)
{
    if (!model)
        return NULL;
    tokenizer_free(model->tokenizer);
    free(model->sample_mask);
    free(model->layers);
    gguf_free(model->gguf);
    free(model);
    return NULL;
}
