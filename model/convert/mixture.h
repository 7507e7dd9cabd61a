/* SPDX-License-Identifier: MIT */
#ifndef MODEL_CONVERT_MIXTURE_H
#define MODEL_CONVERT_MIXTURE_H

/* The format of each tensor of a quantized model: "Q4_K" is the same for every matrix, "Q4_K_M" spends more
 * bits where errors matter most. Rows that are no multiple of 256 get a format of 32 instead, IQ4_NL for
 * Q2_K, Q3_K and IQ4_XS, Q5_0 for Q4_K and Q8_0 for the others, and F16 if that does not fit either. Norms,
 * biases, learned positions and routers stay F32: they are small, and errors in them matter most. */

#include <stdbool.h>
#include <stdint.h>

#include "gguf/format.h"
#include "model/tensors.h"

struct mixture {
    const char *name;
    enum format base;
    uint32_t file_type; /* general.file_type, as other programs number them */
    enum format more;   /* for values and down projections of the most sensitive layers; else base */
    bool many;          /* `more` for half of the layers; else for the first few */
    enum format head;   /* for the output matrix, and the embedding where it is the output too */
    bool experts_only;  /* `base` for stacks of experts, `more` for all other matrices */
};

/* The table, ended by a NULL name. */
extern const struct mixture mixtures[];

/* By name, upper or lower case; NULL when there is none. */
const struct mixture *mixture_by_name(const char *name);

/* What decides about a tensor. */
struct mixture_tensor {
    enum tensor_role role; /* TENSOR_ROLES: none that is known */
    uint32_t layer, n_layers;
    uint32_t n_dims;
    uint64_t columns; /* dims[0] */
    bool tied;        /* the file has no output matrix: the embedding is it */
};

enum format mixture_format(const struct mixture *mixture, const struct mixture_tensor *tensor);

/* The format that it would get if its rows were long enough. */
enum format mixture_wants(const struct mixture *mixture, const struct mixture_tensor *tensor);

#endif
