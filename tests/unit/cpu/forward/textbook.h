/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CPU_FORWARD_TEXTBOOK_H
#define TESTS_UNIT_CPU_FORWARD_TEXTBOOK_H

/* A whole pass in plain C and double, which reads the description and the tensors as they are in the file,
 * and shares no arithmetic with a backend. */

#include <stdint.h>

#include "model/model.h"

#define TEXTBOOK_IDS 71

/* Each array is the caller's to free. */
struct textbook {
    double *logits; /* [TEXTBOOK_IDS][n_vocab] of all positions */
    double *sums;   /* [n_embd] of their final states */
};

struct textbook textbook_forward(const struct model *model, const int32_t ids[TEXTBOOK_IDS]);

#endif
