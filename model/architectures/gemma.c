/* SPDX-License-Identifier: MIT */
/* Gemma 2 and 3: norms before and after each half, a GELU gate, embeddings scaled by √n_embd, and layers that
 * see a window only. The 1 that their norms add to the weights is in the file's weights already. */

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
