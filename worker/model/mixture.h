/* SPDX-License-Identifier: MIT */
#ifndef WORKER_MODEL_MIXTURE_H
#define WORKER_MODEL_MIXTURE_H

/* Which format each tensor of a quantized model gets: "Q4_K" is the same for every matrix, "Q4_K_M" spends
 * more bits where errors cost most. Rows that are no multiple of 256 get a format of 32 instead, Q5_0 for
 * Q4_K and Q8_0 for the others, and F16 if that does not fit either; norms and biases stay F32. */

#include <stdbool.h>
#include <stdint.h>

#include "worker/model/format.h"

struct mixture {
    const char *name;
    enum format base;
    uint32_t file_type; /* general.file_type, as other programs number them */
    enum format more;   /* for attn_v and ffn_down of the layers that matter most; else base */
    bool many;          /* `more` for half of the layers; else for the first few */
    enum format head;   /* for the output matrix, and the embedding where it is the output too */
};

/* The table, ended by a NULL name. */
extern const struct mixture mixtures[];

/* By name, upper or lower case; NULL when there is none. */
const struct mixture *mixture_by_name(const char *name);

/* The format for a tensor: `name` as in the file, n_dims and columns (dims[0]) of it; `tied` when the file
 * has no output.weight. */
enum format mixture_format(const struct mixture *mixture, const char *name, uint32_t n_dims, uint64_t columns,
                           uint32_t n_layers, bool tied);

#endif
