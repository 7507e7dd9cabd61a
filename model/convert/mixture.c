/* SPDX-License-Identifier: MIT */
/* The table of mixtures, and the rule that picks.
 *
 * The rule is the one that published files follow, so that a file made here has the size and the formats that
 * its name promises: values and down projections feed straight into the residual stream and get more bits, in
 * the first and last eighth of the layers and in every third between. */

#include "model/convert/mixture.h"

#include <string.h>
#include <strings.h>

const struct mixture mixtures[] = {
    {"F32", FORMAT_F32, 0, FORMAT_F32, false, FORMAT_F32, false},
    {"F16", FORMAT_F16, 1, FORMAT_F16, false, FORMAT_F16, false},
    {"BF16", FORMAT_BF16, 32, FORMAT_BF16, false, FORMAT_BF16, false},
    {"Q8_0", FORMAT_Q8_0, 7, FORMAT_Q8_0, false, FORMAT_Q8_0, false},
    {"Q6_K", FORMAT_Q6_K, 18, FORMAT_Q6_K, false, FORMAT_Q6_K, false},
    {"Q5_K", FORMAT_Q5_K, 16, FORMAT_Q5_K, false, FORMAT_Q5_K, false},
    {"Q5_K_S", FORMAT_Q5_K, 16, FORMAT_Q5_K, false, FORMAT_Q6_K, false},
    {"Q5_K_M", FORMAT_Q5_K, 17, FORMAT_Q6_K, true, FORMAT_Q6_K, false},
    {"Q4_K", FORMAT_Q4_K, 14, FORMAT_Q4_K, false, FORMAT_Q4_K, false},
    {"Q4_K_S", FORMAT_Q4_K, 14, FORMAT_Q5_K, false, FORMAT_Q6_K, false},
    {"Q4_K_M", FORMAT_Q4_K, 15, FORMAT_Q6_K, true, FORMAT_Q6_K, false},
    {"IQ4_XS", FORMAT_IQ4_XS, 30, FORMAT_Q5_K, false, FORMAT_Q6_K, false},
    {"Q3_K", FORMAT_Q3_K, 11, FORMAT_Q3_K, false, FORMAT_Q6_K, false},
    {"Q3_K_S", FORMAT_Q3_K, 11, FORMAT_Q4_K, false, FORMAT_Q6_K, false},
    {"Q3_K_M", FORMAT_Q3_K, 12, FORMAT_Q5_K, true, FORMAT_Q6_K, false},
    {"Q2_K", FORMAT_Q2_K, 10, FORMAT_Q3_K, true, FORMAT_Q6_K, false},
    {"Q5_1", FORMAT_Q5_1, 9, FORMAT_Q5_1, false, FORMAT_Q6_K, false},
    {"Q5_0", FORMAT_Q5_0, 8, FORMAT_Q5_0, false, FORMAT_Q6_K, false},
    {"Q4_1", FORMAT_Q4_1, 3, FORMAT_Q4_1, false, FORMAT_Q6_K, false},
    {"Q4_0", FORMAT_Q4_0, 2, FORMAT_Q4_0, false, FORMAT_Q6_K, false},
    {"IQ4_NL", FORMAT_IQ4_NL, 25, FORMAT_IQ4_NL, false, FORMAT_Q6_K, false},
    {"MXFP4", FORMAT_MXFP4, 38, FORMAT_MXFP4, false, FORMAT_Q8_0, false},
    {"MXFP4_MOE", FORMAT_MXFP4, 38, FORMAT_Q8_0, false, FORMAT_Q8_0, true},
    {.name = NULL},
};

const struct mixture *mixture_by_name(const char *name)
{
    for (const struct mixture *m = mixtures; m->name; m++)
        if (strcasecmp(m->name, name) == 0)
            return m;
    return NULL;
}

/* Does layer i of n get more bits for values (`values`) or the down projection? */
static bool layer_matters(const struct mixture *mixture, bool values, uint32_t i, uint32_t n)
{
    if (!mixture->many)
        return values ? i < 4 : i < n / 8;
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

static bool is_expert(enum tensor_role role)
{
    return role == TENSOR_EXPERT_GATES || role == TENSOR_EXPERT_UPS || role == TENSOR_EXPERT_DOWNS ||
           role == TENSOR_EXPERT_GATE_UPS;
}

enum format mixture_wants(const struct mixture *mixture, const struct mixture_tensor *tensor)
{
    if (tensor->n_dims < 2 || tensor->role == TENSOR_ROUTER || tensor->role == TENSOR_POSITIONS ||
        tensor->role == TENSOR_TAPS || tensor->role == TENSOR_RANK_HEAD) /* a few rows */
        return FORMAT_F32;
    if (mixture->experts_only)
        return is_expert(tensor->role) ? mixture->base : mixture->more;
    bool values = tensor->role == TENSOR_V;
    if (tensor->role == TENSOR_OUTPUT || (tensor->tied && tensor->role == TENSOR_EMBEDDING))
        return mixture->head;
    bool down = tensor->role == TENSOR_DOWN || tensor->role == TENSOR_EXPERT_DOWNS ||
                tensor->role == TENSOR_SHARED_DOWN;
    if ((values || down) && layer_matters(mixture, values, tensor->layer, tensor->n_layers))
        return mixture->more;
    return mixture->base;
}

enum format mixture_format(const struct mixture *mixture, const struct mixture_tensor *tensor)
{
    enum format format = mixture_wants(mixture, tensor);
    if (tensor->columns % format_traits(format)->block_elements == 0)
        return format;
    if (tensor->columns % format_traits(FORMAT_Q8_0)->block_elements != 0)
        return FORMAT_F16;
    switch (format) {
    case FORMAT_Q2_K:
    case FORMAT_Q3_K:
    case FORMAT_IQ4_XS:
        return FORMAT_IQ4_NL;
    case FORMAT_Q4_K:
        return FORMAT_Q5_0;
    default:
        return FORMAT_Q8_0;
    }
}
