/* SPDX-License-Identifier: MIT */
/* OLMo 2 and 3: what a half gives is normed, not what it gets; queries and keys are normed over all heads. A
 * file with a window is OLMo 3's: three layers of four see it only, and turn without YaRN, unless it lists
 * them. */

#include "model/architecture.h"

static bool has_window(const struct model_params *params, uint32_t i)
{
    if (params->windows_listed)
        return params_list_window(params, i);
    const uint32_t period = params->window_period > 0 ? params->window_period : 4;
    return (i + 1) % period != 0;
}

static void describe(const struct model_params *params, uint32_t i, struct layer_traits *layer)
{
    layer->rotary.fast_turns = 32; /* whatever the file says: so the models were trained */
    layer->rotary.slow_turns = 1;
    if (layer->window == 0)
        return;
    if (!has_window(params, i)) {
        layer->window = 0;
        return;
    }
    layer->rotary.base = params->rope_window_base > 0 ? params->rope_window_base : params->rope_base;
    layer->rotary.scaling = ROTARY_UNSCALED;
    layer->rotary.factor = 1;
    layer->rotary.magnitude = 1;
}

const struct architecture architecture_olmo2 = {
    .name = "olmo2",
    .layer = {.norm = {.kind = NORM_RMS},
              .norm_place = NORM_AFTER,
              .rotary = {.kind = ROTARY_HALVES},
              .qk_norm = QK_NORM_ALL,
              .activation = ACTIVATION_SILU,
              .gated = true},
    .describe = describe,
};
