/* SPDX-License-Identifier: MIT */
#ifndef MODEL_RANK_HEAD_H
#define MODEL_RANK_HEAD_H

#include "model/model.h"

/* For a model that ranks: the head's weights as floats, [n_labels][n_embd], and its bias, [n_labels], zeros
 * if it has none. */
void rank_head_read(const struct model *model, float *ret_weights, float *ret_bias);

#endif
