/* SPDX-License-Identifier: MIT */
/* See rank_head.h. A head is a few rows, of any format that has a way to floats (model_open has checked it).
 */

#include "model/rank_head.h"

void rank_head_read(const struct model *model, float *ret_weights, float *ret_bias)
{
    const struct model_tensor *head = &model->tensors[TENSOR_RANK_HEAD];
    const uint32_t n_labels = model->params.n_labels;
    format_traits(head->weight->format)
        ->to_float(head->weight->data, ret_weights, (size_t)n_labels * model->params.n_embd);
    for (uint32_t i = 0; i < n_labels; i++)
        ret_bias[i] = head->bias ? ((const float *)head->bias->data)[i] : 0;
}
