/* SPDX-License-Identifier: MIT */
#ifndef MODEL_TENSORS_H
#define MODEL_TENSORS_H

/* Tensors by role. Only this module knows their names in files. */

#include <stdbool.h>
#include <stdint.h>

#include "gguf/gguf.h"
#include "model/description.h"

enum tensor_role {
    /* of the model */
    TENSOR_EMBEDDING,
    TENSOR_POSITIONS,
    TENSOR_ROTARY_FACTORS,  /* divisors of the rotary frequencies */
    TENSOR_ROTARY_SHORT,    /* the same, for contexts up to the trained length */
    TENSOR_ROTARY_LONG,     /* and for longer ones */
    TENSOR_LAYER_EMBEDDING, /* rows of the layers' own embeddings, one after the other */
    TENSOR_LAYER_PROJECTION,
    TENSOR_LAYER_PROJECTION_NORM,
    TENSOR_OUTPUT_NORM,
    TENSOR_OUTPUT,
    TENSOR_RANK_HEAD, /* of a model that ranks: one row per label */
    /* of a layer */
    TENSOR_ATTENTION_NORM,
    TENSOR_DELTA_IN, /* for each key head its queries, keys, values and gates */
    TENSOR_QKV,      /* queries, keys, values one after the other */
    TENSOR_Q_GATE,   /* for each head its queries and gates */
    TENSOR_Q,
    TENSOR_Q_NORM,
    TENSOR_K,
    TENSOR_K_NORM,
    TENSOR_V,
    TENSOR_OUTPUT_GATE,
    TENSOR_SINKS,
    TENSOR_TAPS,       /* of a delta net's convolution; the last applies to the current row */
    TENSOR_BETA_ALPHA, /* for each key head its betas and alphas */
    TENSOR_BETA,
    TENSOR_ALPHA,
    TENSOR_STEP_BIAS,
    TENSOR_DECAY,
    TENSOR_DELTA_NORM,
    TENSOR_DELTA_OUTPUT,
    TENSOR_ATTENTION_OUTPUT,
    TENSOR_NAMED_POST_NORM, /* the norm before the feed-forward, in files that name it one after attention */
    TENSOR_ATTENTION_POST_NORM,
    TENSOR_FFN_NORM,
    TENSOR_GATE_UP, /* gate, then up */
    TENSOR_GATE,
    TENSOR_UP,
    TENSOR_DOWN,
    TENSOR_PLAIN_POST_NORM, /* of the plain half beside experts */
    TENSOR_ROUTER_NORM,
    TENSOR_ROUTER,
    TENSOR_EXPERT_NORM,
    TENSOR_EXPERT_GATE_UPS, /* for each expert gate, then up */
    TENSOR_EXPERT_GATES,
    TENSOR_EXPERT_UPS,
    TENSOR_EXPERT_DOWNS,
    TENSOR_EXPERT_SCALES,
    TENSOR_EXPERT_POST_NORM,
    TENSOR_SHARED_ROUTER, /* one row: the weight of the shared expert */
    TENSOR_SHARED_GATE,
    TENSOR_SHARED_UP,
    TENSOR_SHARED_DOWN,
    TENSOR_FFN_POST_NORM,
    TENSOR_INPUT_GATE, /* for the layer's own embedding of each token */
    TENSOR_INPUT_PROJECTION,
    TENSOR_INPUT_POST_NORM,
    TENSOR_STREAM_SCALE, /* one number */
    TENSOR_ROLES,
    TENSOR_LAYER_ROLES = TENSOR_ATTENTION_NORM /* from here on one per layer */
};

/* Sets of roles. */
typedef uint64_t tensor_set;
#define TENSOR_BIT(role) ((tensor_set)1 << (role))

/* The tensor of a role, or its rows in a tensor that several roles share. A vector is one row. Row r of the
 * count · rows is first_row + r rows from the start of the tensor; if `run` is not 0, the roles alternate in
 * runs of that many rows, and it is at first_row + r ÷ run · apart + r mod run. */
struct model_tensor {
    const struct gguf_tensor *weight; /* NULL: the model has none */
    const struct gguf_tensor *bias;   /* F32, one element per row of `weight`; for a norm, per column; for
                                       * experts [count][rows] */
    uint32_t first_row;               /* in weight and bias */
    uint32_t run, apart;              /* apart > run > 0, and no bias; or 0: its rows are contiguous */
    uint32_t rows, columns;           /* outputs, inputs */
    uint32_t count;                   /* of such matrices, one after the other: experts; else 1 */
};
/* The position of one of its rows in `weight`. */
static inline uint64_t model_tensor_row(const struct model_tensor *tensor, uint64_t row)
{
    return tensor->first_row + (tensor->run ? row / tensor->run * tensor->apart + row % tensor->run : row);
}

struct tensor_shape {
    uint32_t rows, columns, count; /* rows 0: a vector */
};

/* The shape of a role in a model with these hyperparameters, in a layer with these traits (NULL: for the
 * model's own roles). */
struct tensor_shape tensor_shape(const struct model_params *params, const struct layer_traits *traits,
                                 enum tensor_role role);

/* Whether it has one number for each input or output (norms, factors). */
bool tensor_is_vector(enum tensor_role role);

/* Whether its numbers are used unchanged, and so are F32 whatever the format of matrices. Vectors, and
 * taps. */
bool tensor_is_plain(enum tensor_role role);

/* Whether a vector is the weight of a norm, to which the norm's offset is added. Not for a delta net's heads,
 * which have no offset. */
bool tensor_is_norm(enum tensor_role role);

/* The part of a tensor that belongs to a role. */
struct tensor_part {
    enum tensor_role role;
    uint32_t first_row, run, apart; /* as in struct model_tensor */
};

#define TENSOR_MOST_PARTS 4

/* The roles that share this tensor in a layer with these traits, and where they are in it; only the role
 * itself if it does not share. Returns their number; 0: such a layer has no such tensor. */
uint32_t tensor_parts(const struct model_params *params, const struct layer_traits *traits,
                      enum tensor_role role, struct tensor_part ret_parts[TENSOR_MOST_PARTS]);

/* The same as a set. */
tensor_set tensor_part_set(const struct layer_traits *traits, enum tensor_role role);

#define TENSOR_NAME_SIZE 64

/* Its name in files; `layer` is only used for roles of layers. Returns ret_name. */
const char *tensor_name(enum tensor_role role, uint32_t layer, bool bias, char ret_name[TENSOR_NAME_SIZE]);

/* The layer N of a name "blk.N.…"; false for others, and the output is unchanged. */
bool tensor_layer_of(struct bytes name, uint32_t *ret_layer);

/* The inverse of tensor_name. False for a name without a role; outputs are then unchanged. */
bool tensor_role_of(struct bytes name, enum tensor_role *ret_role, uint32_t *ret_layer, bool *ret_bias);

#endif
