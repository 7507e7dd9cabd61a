/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CPU_FORWARD_TEXTBOOK_H
#define TESTS_UNIT_CPU_FORWARD_TEXTBOOK_H

/* A whole forward pass in plain C with doubles, which reads the description and the tensors as stored in the
 * file and shares no arithmetic with a backend. */

#include <stdint.h>

#include "model/model.h"

#define TEXTBOOK_IDS 71

/* The caller frees each array. */
struct textbook {
    double *logits; /* [TEXTBOOK_IDS][n_vocab] of all positions */
    double *sums;   /* [n_embd] of their final states */
};

struct textbook textbook_forward(const struct model *model, const int32_t ids[TEXTBOOK_IDS]);

#endif
