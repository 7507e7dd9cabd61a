/* SPDX-License-Identifier: MIT */
/* Gemma 2, 3 and 4: norms before and after each half, a GELU gate, embeddings scaled by √n_embd, and layers
 * that see a window only. The 1 that their norms add to the weights is in the file's weights already. */

#include "model/architecture.h"

#include <math.h>

static void complete(struct model_params *params)
{
    params->embedding_scale = sqrtf((float)params->n_embd);
}

/* The largest of each version scales scores by the width per head, which is not its heads' size. GGUF
 * files do not say so; only the number of layers tells them. */
static void scale_by_width(const struct model_params *params, uint32_t n_layers, struct layer_traits *layer)
{
    if (params->n_layers == n_layers && params->attention_scale == 0)
        layer->attention_scale = 1.0f / sqrtf((float)params->n_embd / (float)params->n_heads);
}

static void describe_2(const struct model_params *params, uint32_t i, struct layer_traits *layer)
{
    if (i % 2 == 1)
        layer->window = 0;
    scale_by_width(params, 46, layer);
}

/* Five layers with a window and their own rotary base, which no scaling touches, then one without. */
static void describe_3(const struct model_params *params, uint32_t i, struct layer_traits *layer)
{
    scale_by_width(params, 62, layer);
    if (i % 6 == 5) {
        layer->window = 0;
    } else if (layer->window > 0) {
        layer->rotary.base = 10000;
        layer->rotary.scaling = ROTARY_UNSCALED;
        layer->rotary.factor = 1;
        layer->rotary.magnitude = 1;
    }
}

/* The last layers of the small models attend to keys and values of the last layer of their kind before them.
 */
static void borrow(const struct model_params *params, uint32_t i, struct layer_traits *layer)
{
    const uint32_t first = params->n_layers - params->n_borrowing_layers;
    if (i < first)
        return;
    layer->borrows_kv = true;
    layer->values_are_keys = layer->value_norm = false;
    layer->kv_layer = first - 1;
    while (layer->kv_layer > 0 &&
           params_list_window(params, layer->kv_layer) != params_list_window(params, i))
        layer->kv_layer--;
    if (params->kv_heads_listed)
        layer->heads.n_kv = params->listed_kv_heads[layer->kv_layer];
}

/* Files list the layers with a window, whose heads are smaller. Scores are not divided, for queries and keys
 * are normed; values too. The rotary factors keep most pairs of the other layers from turning. */
static void describe_4(const struct model_params *params, uint32_t i, struct layer_traits *layer)
{
    layer->attention_scale = 1;
    layer->value_norm = true;
    layer->stream_scale = true;
    layer->values_are_keys = !params_list_window(params, i) && params->n_layer_embd == 0; /* as published */
    layer->experts.beside = layer->experts.router_norm = layer->experts.scaled = layer->experts.n > 0;
    borrow(params, i, layer);
    if (!params_list_window(params, i)) {
        layer->window = 0;
        return;
    }
    layer->heads.dim = params->window_head_dim;
    layer->rotary.dims = params->window_rope_dims;
    layer->rotary.base = params->rope_window_base > 0 ? params->rope_window_base : 10000;
    layer->rotary.unfactored = true;
}

const struct architecture architecture_gemma2 = {
    .name = "gemma2",
    .layer = {.norm = {.kind = NORM_RMS},
              .norm_place = NORM_BOTH,
              .rotary = {.kind = ROTARY_HALVES},
              .activation = ACTIVATION_GELU,
              .gated = true},
    .complete = complete,
    .describe = describe_2,
};

const struct architecture architecture_gemma3 = {
    .name = "gemma3",
    .layer = {.norm = {.kind = NORM_RMS},
              .norm_place = NORM_BOTH,
              .rotary = {.kind = ROTARY_HALVES},
              .qk_norm = QK_NORM_HEADS,
              .activation = ACTIVATION_GELU,
              .gated = true},
    .complete = complete,
    .describe = describe_3,
};

const struct architecture architecture_gemma4 = {
    .name = "gemma4",
    .layer = {.norm = {.kind = NORM_RMS},
              .norm_place = NORM_BOTH,
              .rotary = {.kind = ROTARY_HALVES},
              .qk_norm = QK_NORM_HEADS,
              .activation = ACTIVATION_GELU,
              .gated = true},
    .may_fuse = TENSOR_BIT(TENSOR_QKV) | TENSOR_BIT(TENSOR_EXPERT_GATE_UPS),
    .may_lack = TENSOR_BIT(TENSOR_V) | TENSOR_BIT(TENSOR_EXPERT_SCALES) | TENSOR_BIT(TENSOR_STREAM_SCALE),
    .layers_differ = true,
    .complete = complete,
    .describe = describe_4,
};
