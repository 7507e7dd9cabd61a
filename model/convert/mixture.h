/* SPDX-License-Identifier: MIT */
#ifndef MODEL_CONVERT_MIXTURE_H
#define MODEL_CONVERT_MIXTURE_H

/* The format of each tensor of a quantized model: "Q4_K" is the same for every matrix, "Q4_K_M" spends more
 * bits where errors matter most. If the row length is not a multiple of 256, a format with blocks of 32 is
 * used: IQ4_NL for Q2_K, Q3_K and IQ4_XS, Q5_0 for Q4_K, Q8_0 for the others; F16 if that does not fit
 * either. Norms, biases, learned positions and routers stay F32: they are small, and errors in them matter
 * most. */

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
    enum format head;   /* for the output matrix, or the embedding if it is the output too */
    bool experts_only;  /* `base` for stacks of experts, `more` for all other matrices */
};

/* The table, ended by a NULL name. */
extern const struct mixture mixtures[];

/* By name, in either case; NULL: there is none. */
const struct mixture *mixture_by_name(const char *name);

/* The properties of a tensor that determine its format. */
struct mixture_tensor {
    enum tensor_role role; /* TENSOR_ROLES: unknown */
    uint32_t layer, n_layers;
    uint32_t n_dims;
    uint64_t columns; /* dims[0] */
    bool tied;        /* the file has no output matrix: the embedding serves as it */
};

enum format mixture_format(const struct mixture *mixture, const struct mixture_tensor *tensor);

/* The format that it would get if its rows fit. */
enum format mixture_wants(const struct mixture *mixture, const struct mixture_tensor *tensor);

#endif
