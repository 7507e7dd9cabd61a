/* SPDX-License-Identifier: MIT */
/* Names are looked up in the tables of the family: a row's name stands before ".weight" or ".bias", behind a
 * layer's number if it is one of a layer, and may hold an expert's number. */

#include "model/huggingface/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "model/huggingface/config/config_apart.h"

/* Of a layer; of the model, whose extents are the same for any. */
static uint32_t extent_of(const struct config *config, enum extent extent, uint32_t layer)
{
    const uint32_t dim = config_head_dim(config, layer), queries = config->n_heads * dim,
                   keys = config_kv_heads(config, layer) * dim;
    const uint32_t delta_keys = config->n_key_heads * config->key_dim,
                   delta_values = config->n_value_heads * config->value_dim;
    const uint32_t extents[EXTENTS] = {[NONE] = 0,
                                       [VOCAB] = config->n_vocab,
                                       [POSITIONS] = config->n_context,
                                       [EMBD] = config->n_embd,
                                       [FF] = config_ff(config, layer),
                                       [TWO_FF] = 2 * config->n_ff,
                                       [QUERIES] = queries,
                                       [QUERIES_AND_GATES] = 2 * queries,
                                       [KEYS] = keys,
                                       [ALL_QKV] = queries + 2 * keys,
                                       [HEAD] = dim,
                                       [HEADS] = config->n_heads,
                                       [ONE] = 1,
                                       [LAYER_EMBD] = config->n_layer_embd,
                                       [ALL_LAYER_EMBD] = config->n_layers * config->n_layer_embd,
                                       [EXPERTS] = config->n_experts,
                                       [EXPERT_FF] = config->expert_ff,
                                       [TWO_EXPERT_FF] = 2 * config->expert_ff,
                                       [SHARED_FF] = config->shared_ff,
                                       [TAPS] = config->n_taps,
                                       [DELTA_CHANNELS] = 2 * delta_keys + delta_values,
                                       [DELTA_VALUES] = delta_values,
                                       [DELTA_ALL] = 2 * delta_keys + 2 * delta_values,
                                       [DELTA_VALUE] = config->value_dim,
                                       [DELTA_HEADS] = config->n_value_heads,
                                       [TWO_DELTA_HEADS] = 2 * config->n_value_heads};
    return extents[extent];
}

/* Those of layers without a window, where heads differ, and of layers that are twice as wide. */
static const char *key_of_few(const struct config *config, enum extent extent, uint32_t layer)
{
    const bool large = config->family->uses & USES_APART && !config_has_small_heads(config, layer);
    if (extent == FF && config_ff(config, layer) != config->n_ff)
        return "intermediate_size · 2, by use_double_wide_mlp";
    if (large && extent == HEAD)
        return "global_head_dim or per_layer_config";
    if (large && extent == QUERIES)
        return "num_attention_heads · global_head_dim or per_layer_config";
    return large && extent == KEYS ? "num_global_key_value_heads · global_head_dim or per_layer_config"
                                   : NULL;
}

static const char *key_of(const struct config *config, enum extent extent, uint32_t layer)
{
    static const char *const keys[EXTENTS] = {
        [NONE] = "",
        [VOCAB] = "vocab_size",
        [POSITIONS] = "max_position_embeddings",
        [EMBD] = "hidden_size",
        [FF] = "intermediate_size",
        [TWO_FF] = "intermediate_size",
        [QUERIES] = "num_attention_heads · head_dim",
        [QUERIES_AND_GATES] = "num_attention_heads · head_dim · 2",
        [KEYS] = "num_key_value_heads · head_dim",
        [ALL_QKV] = "(num_attention_heads + 2 · num_key_value_heads) · head_dim",
        [HEAD] = "head_dim",
        [HEADS] = "num_attention_heads",
        [ONE] = "",
        [LAYER_EMBD] = "hidden_size_per_layer_input",
        [ALL_LAYER_EMBD] = "num_hidden_layers · hidden_size_per_layer_input",
        [EXPERTS] = "num_experts or num_local_experts",
        [EXPERT_FF] = "moe_intermediate_size or intermediate_size",
        [TWO_EXPERT_FF] = "moe_intermediate_size",
        [SHARED_FF] = "shared_expert_intermediate_size or shared_intermediate_size",
        [TAPS] = "linear_conv_kernel_dim",
        [DELTA_CHANNELS] = "linear heads · dims",
        [DELTA_VALUES] = "linear_num_value_heads · linear_value_head_dim",
        [DELTA_ALL] = "linear heads · dims",
        [DELTA_VALUE] = "linear_value_head_dim",
        [DELTA_HEADS] = "linear_num_value_heads",
        [TWO_DELTA_HEADS] = "linear_num_value_heads · 2"};
    const char *few = key_of_few(config, extent, layer);
    return few ? few : keys[extent];
}

/* ---- names as they are ---- */

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Wrappers have the text beside other parts, under either of two names; draft layers stand apart. */
static const char *const other_parts[] = {"vision_tower.",
                                          "model.vision_tower.",
                                          "multi_modal_projector.",
                                          "model.multi_modal_projector.",
                                          "audio_tower.",
                                          "model.audio_tower.",
                                          "embed_vision.",
                                          "model.embed_vision.",
                                          "embed_audio.",
                                          "model.embed_audio.",
                                          "vision_embedder.",
                                          "model.vision_embedder.",
                                          "model.visual.",
                                          "visual.",
                                          "mtp.",
                                          "model.mtp."};

int names_clean(const struct config *config, const char *name, char ret_name[NAMES_SIZE], bool *ret_is_text,
                struct error *err)
{
    const char *optional = config->family->optional;
    const char *before = "", *rest = name;
    char shown[96];
    *ret_is_text = true;
    for (size_t i = 0; i < sizeof other_parts / sizeof other_parts[0]; i++)
        if ((config->wrapped || config->family->uses & USES_DELTA) && begins_with(name, other_parts[i])) {
            snprintf(ret_name, NAMES_SIZE, "%.*s", (int)strlen(other_parts[i]) - 1, other_parts[i]);
            *ret_is_text = false;
            return 0;
        }
    if (config->wrapped && begins_with(name, "model.language_model.")) {
        before = "model.";
        rest = name + strlen("model.language_model.");
    } else if (config->wrapped && begins_with(name, "language_model.")) {
        rest = name + strlen("language_model.");
    } else if (optional && begins_with(name, optional)) {
        rest = name + strlen(optional);
    }
    if ((size_t)snprintf(ret_name, NAMES_SIZE, "%s%s", before, rest) >= NAMES_SIZE)
        return error_set(err, -EINVAL, "unexpected tensor %s in a %s model",
                         utf8_printable(bytes_of_string(name), sizeof shown, shown), config->architecture);
    return 0;
}

void names_note(struct config *config, const char *name)
{
    if (strstr(name, ".mlp.experts.gate_up_proj"))
        config->fused_experts = true;
}

/* A number below `limit`, without leading zeros, at the start of a text; *ret_end is what follows. */
static bool read_number(const char *text, uint32_t limit, uint32_t *ret_number, const char **ret_end)
{
    char *end;
    if (text[0] < '0' || text[0] > '9' || (text[0] == '0' && text[1] != '.'))
        return false;
    const unsigned long number = strtoul(text, &end, 10);
    if (*end != '.' || number >= limit)
        return false;
    *ret_number = (uint32_t)number;
    *ret_end = end;
    return true;
}

/* Splits "model.layers.12.STEM". */
static bool split_layer(const struct config *config, const char *name, uint32_t *ret_layer,
                        const char **ret_stem)
{
    const char *end;
    if (!begins_with(name, config->family->layers) ||
        !read_number(name + strlen(config->family->layers), config->n_layers, ret_layer, &end))
        return false;
    *ret_stem = end + 1;
    return true;
}

/* Of layers that attend to keys and values of others, published files have their own all the same. */
static bool is_unused_kv(const struct config *config, const char *name)
{
    static const char *const stems[] = {"self_attn.k_proj.", "self_attn.v_proj.", "self_attn.k_norm.",
                                        "self_attn.v_norm."};
    uint32_t layer;
    const char *stem;
    if (config->n_borrowing == 0 || !split_layer(config, name, &layer, &stem) ||
        !config_borrows(config, layer))
        return false;
    for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++)
        if (begins_with(stem, stems[i]))
            return true;
    return false;
}

/* Tables that older files carry, heads beside an embedding that is one, maps that nothing is put through. */
static bool is_needless(const struct config *config, const char *name)
{
    const char *end = strrchr(name, '.');
    return (end && strcmp(end, ".inv_freq") == 0) || (config->tied && strcmp(name, "lm_head.weight") == 0) ||
           is_unused_kv(config, name);
}

/* Does a stem begin with what a row is called? *ret_end is what stands behind it. */
static bool matches(const struct config *config, const struct name_row *row, const char *stem,
                    uint32_t *ret_expert, const char **ret_end)
{
    const char *star = strchr(row->theirs, '*');
    const size_t len = star ? (size_t)(star - row->theirs) : strlen(row->theirs);
    *ret_expert = 0;
    *ret_end = stem + len;
    if (strncmp(stem, row->theirs, len) != 0)
        return false;
    if (!star)
        return true;
    const char *rest;
    if (!read_number(stem + len, config->n_experts, ret_expert, &rest) || !begins_with(rest, star + 1))
        return false;
    *ret_end = rest + strlen(star + 1);
    return true;
}

static bool may_have_bias(const struct config *config, const struct name_row *row)
{
    const bool says = config->family->uses & USES_BIASES;
    switch (row->bias) {
    case BIAS_NONE:
        return false;
    case BIAS_OF_ATTENTION:
        return says && config->attention_bias != CONFIG_NO;
    case BIAS_OF_MLP:
        return says && config->mlp_bias != CONFIG_NO;
    case BIAS_MUST:
        break;
    }
    return true;
}

static bool must_have_bias(const struct config *config, const struct name_row *row)
{
    return row->bias == BIAS_MUST ||
           (row->bias == BIAS_OF_ATTENTION && config->attention_bias == CONFIG_YES) ||
           (row->bias == BIAS_OF_MLP && config->mlp_bias == CONFIG_YES);
}

static bool is_of_layer(const struct config *config, const struct name_row *row, uint32_t layer)
{
    if ((row->need == OWN_KEYS || row->need == OWN_VALUES) && config_borrows(config, layer))
        return false;
    if (row->need == OWN_VALUES && config_keys_are_values(config, layer))
        return false;
    return row->of == OF_LAYER || (row->of == OF_ATTENDING && !(config->family->uses & USES_DELTA)) ||
           (config->family->uses & USES_DELTA &&
            config_is_special(config, layer) == (row->of == OF_RECURRENT));
}

static bool is_needed(const struct config *config, const struct name_row *row)
{
    const bool mxfp4 = config->quantization.kind == QUANTIZATION_MXFP4;
    switch (row->need) {
    case ALWAYS:
    case OWN_KEYS: /* in some layers */
    case OWN_VALUES:
        return true;
    case BESIDE_EXPERTS:
        return config->n_experts > 0;
    case LAYER_EMBEDDINGS:
        return config->n_layer_embd > 0;
    case UNTIED:
        return !config->tied;
    case FUSED_EXPERTS:
        return config->fused_experts;
    case SEPARATE_EXPERTS:
        return !config->fused_experts;
    case MXFP4_EXPERTS:
        return mxfp4;
    case PLAIN_EXPERTS:
        return !mxfp4;
    case SHARED_EXPERT:
        return config->shared_ff > 0;
    case NEVER:
        break;
    }
    return false;
}

/* A tied head may be there all the same, and buffers that nobody needs. */
static bool is_expected(const struct config *config, const struct name_row *row)
{
    return row->need == UNTIED || row->need == NEVER || is_needed(config, row);
}

/* ---- places ---- */

bool names_is_half(enum how how)
{
    return how == FIRST_HALF || how == SECOND_HALF || how == EVEN_ROWS || how == ODD_ROWS;
}

static void add_dim(struct place *place, uint32_t n, const char *key)
{
    place->dims[place->n_dims] = n;
    place->keys[place->n_dims++] = key;
}

/* The shape of their tensor: GGUF's, but for how it is stored there. */
static void set_shape(const struct config *config, const struct name_row *row, uint32_t layer,
                      struct place *place)
{
    const uint32_t rows = place->rows * (names_is_half(row->how) ? 2 : 1);
    const char *rows_key = key_of(config, row->rows, layer),
               *columns_key = key_of(config, row->columns, layer);
    if (row->shape == STACKED || row->shape == STACKED_TURNED || row->shape == STACKED_BLOCKS)
        add_dim(place, config->n_experts, key_of(config, EXPERTS, layer));
    if (row->shape == ROW_OF_ONE)
        add_dim(place, 1, "");
    if (row->how == TURNED || row->shape == STACKED_TURNED) {
        add_dim(place, place->columns, columns_key);
        add_dim(place, rows, rows_key);
        return;
    }
    if (place->rows > 0)
        add_dim(place, rows, rows_key);
    if (row->shape == MIDDLE_ONE)
        add_dim(place, 1, "");
    if (row->shape == STACKED_BLOCKS) {
        add_dim(place, place->columns / 32, columns_key);
        add_dim(place, 16, "");
        return;
    }
    add_dim(place, place->columns * (place->rows == 0 && names_is_half(row->how) ? 2 : 1), columns_key);
}

/* A bias has an element for each row, one for each expert's. */
static void set_place(const struct config *config, const struct name_row *row, uint32_t layer, bool bias,
                      uint32_t expert, struct place *place)
{
    const bool each = strchr(row->theirs, '*');
    const bool stacked =
        row->shape == STACKED || row->shape == STACKED_TURNED || row->shape == STACKED_BLOCKS;
    place->how = bias ? COPIED : row->how;
    place->rows = bias ? 0 : extent_of(config, row->rows, layer);
    place->columns = extent_of(config, bias && row->rows != NONE ? row->rows : row->columns, layer);
    place->of_experts = each || stacked;
    place->count = place->of_experts ? config->n_experts : 1;
    place->index = expert;
    place->stacked = stacked;
    place->turned = !bias && (row->how == TURNED || row->shape == STACKED_TURNED);
    place->blocks = row->shape == STACKED_BLOCKS;
    place->plain = place->rows == 0 || row->shape == MIDDLE_ONE;
    if (bias)
        add_dim(place, place->columns, key_of(config, row->rows != NONE ? row->rows : row->columns, layer));
    else
        set_shape(config, row, layer, place);
}

static bool place_of(const struct config *config, const struct name_row *row, bool of_layer, uint32_t layer,
                     const char *stem, struct place *ret_place)
{
    struct place place = {.count = 1};
    uint32_t expert;
    const char *end;
    if (!is_expected(config, row) || (row->of != OF_MODEL) != of_layer ||
        (of_layer && !is_of_layer(config, row, layer)) || !matches(config, row, stem, &expert, &end))
        return false;
    const bool bias = strcmp(end, ".bias") == 0;
    if (row->bare ? *end != '\0' : !(bias && may_have_bias(config, row)) && strcmp(end, ".weight") != 0)
        return false;
    if (row->ours) {
        set_place(config, row, layer, !row->bare && bias, expert, &place);
        if (of_layer)
            snprintf(place.name, sizeof place.name, "blk.%u.%s%s", layer, row->ours, row->bare ? "" : end);
        else
            snprintf(place.name, sizeof place.name, "%s%s", row->ours, row->bare ? "" : end);
    }
    *ret_place = place;
    return true;
}

int names_places(const struct config *config, const char *name, struct place ret_places[NAMES_MOST_PLACES],
                 uint32_t *ret_n, struct error *err)
{
    uint32_t layer = 0, n = 0;
    const char *stem = name;
    struct place places[NAMES_MOST_PLACES] = {{.count = 1}};
    char shown[96];
    if (is_needless(config, name)) {
        ret_places[0] = places[0];
        *ret_n = 1;
        return 0;
    }
    const bool of_layer = split_layer(config, name, &layer, &stem);
    for (size_t t = 0; t < FAMILY_MOST_NAMES && config->family->names[t]; t++)
        for (const struct name_row *row = config->family->names[t]; row->theirs; row++)
            if (n < NAMES_MOST_PLACES && place_of(config, row, of_layer, layer, stem, &places[n]))
                n++;
    if (n == 0)
        return error_set(err, -EINVAL, "unexpected tensor %s in a %s model of %u layers",
                         utf8_printable(bytes_of_string(name), sizeof shown, shown), config->architecture,
                         config->n_layers);
    for (uint32_t i = 0; i < n; i++)
        ret_places[i] = places[i];
    *ret_n = n;
    return 0;
}

/* ---- what must be there ---- */

static void put_name(const struct config *config, const struct name_row *row, const struct names_walk *walk,
                     char ret_name[NAMES_SIZE])
{
    const char *star = strchr(row->theirs, '*'), *end = row->bare ? "" : walk->bias ? ".bias" : ".weight";
    char layer[32] = "", expert[16] = "";
    if (row->of != OF_MODEL)
        snprintf(layer, sizeof layer, "%s%u.", config->family->layers, walk->layer);
    if (star)
        snprintf(expert, sizeof expert, "%u", walk->expert);
    snprintf(ret_name, NAMES_SIZE, "%s%.*s%s%s%s", layer,
             star ? (int)(star - row->theirs) : (int)strlen(row->theirs), row->theirs, expert,
             star ? star + 1 : "", end);
}

/* The next of a row: biases behind weights, then experts, then layers. */
static bool step(const struct config *config, const struct name_row *row, struct names_walk *walk)
{
    if (!walk->bias && !row->bare && must_have_bias(config, row)) {
        walk->bias = true;
        return true;
    }
    walk->bias = false;
    if (strchr(row->theirs, '*') && walk->expert + 1 < config->n_experts) {
        walk->expert++;
        return true;
    }
    walk->expert = 0;
    if (row->of != OF_MODEL && walk->layer + 1 < config->n_layers) {
        walk->layer++;
        return true;
    }
    walk->layer = 0;
    return false;
}

bool names_next(const struct config *config, struct names_walk *walk, char ret_name[NAMES_SIZE])
{
    while (walk->table < FAMILY_MOST_NAMES && config->family->names[walk->table]) {
        const struct name_row *row = &config->family->names[walk->table][walk->row];
        if (!row->theirs) {
            walk->table++;
            walk->row = 0;
            continue;
        }
        const bool wanted = is_needed(config, row);
        const bool here = wanted && (row->of == OF_MODEL || is_of_layer(config, row, walk->layer));
        if (here)
            put_name(config, row, walk, ret_name);
        if (!wanted || !step(config, row, walk)) {
            walk->row++;
            walk->layer = walk->expert = 0;
            walk->bias = false;
        }
        if (here)
            return true;
    }
    return false;
}
