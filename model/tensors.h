/* SPDX-License-Identifier: MIT */
#ifndef MODEL_TENSORS_H
#define MODEL_TENSORS_H

/* Tensors by the role they play. This is the one place that knows what files call them. */

#include <stdbool.h>
#include <stdint.h>

#include "gguf/gguf.h"
#include "model/description.h"

enum tensor_role {
    /* of the model */
    TENSOR_EMBEDDING,
    TENSOR_POSITIONS,
    TENSOR_ROTARY_FACTORS,  /* each rotary frequency is divided by its own */
    TENSOR_ROTARY_SHORT,    /* the same, for contexts up to the length of training */
    TENSOR_ROTARY_LONG,     /* and beyond it */
    TENSOR_LAYER_EMBEDDING, /* rows of what each layer gets, one after the other */
    TENSOR_LAYER_PROJECTION,
    TENSOR_LAYER_PROJECTION_NORM,
    TENSOR_OUTPUT_NORM,
    TENSOR_OUTPUT,
    TENSOR_RANK_HEAD, /* of a model that ranks: a row for each label */
    /* of a layer */
    TENSOR_ATTENTION_NORM,
    TENSOR_DELTA_IN, /* of each key head its queries, keys, values and gates */
    TENSOR_QKV,      /* queries, keys, values one after the other */
    TENSOR_Q_GATE,   /* of each head its queries and gates */
    TENSOR_Q,
    TENSOR_Q_NORM,
    TENSOR_K,
    TENSOR_K_NORM,
    TENSOR_V,
    TENSOR_OUTPUT_GATE,
    TENSOR_SINKS,
    TENSOR_TAPS,       /* of the convolution of a delta net, the one that meets the present row last */
    TENSOR_BETA_ALPHA, /* of each key head its betas and alphas */
    TENSOR_BETA,
    TENSOR_ALPHA,
    TENSOR_STEP_BIAS,
    TENSOR_DECAY,
    TENSOR_DELTA_NORM,
    TENSOR_DELTA_OUTPUT,
    TENSOR_ATTENTION_OUTPUT,
    TENSOR_NAMED_POST_NORM, /* the norm before the feed-forward, of files that call it one after attention */
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
    TENSOR_EXPERT_GATE_UPS, /* of each expert gate, then up */
    TENSOR_EXPERT_GATES,
    TENSOR_EXPERT_UPS,
    TENSOR_EXPERT_DOWNS,
    TENSOR_EXPERT_SCALES,
    TENSOR_EXPERT_POST_NORM,
    TENSOR_SHARED_ROUTER, /* one row: how much the shared expert counts */
    TENSOR_SHARED_GATE,
    TENSOR_SHARED_UP,
    TENSOR_SHARED_DOWN,
    TENSOR_FFN_POST_NORM,
    TENSOR_INPUT_GATE, /* of what a layer gets of each token by itself */
    TENSOR_INPUT_PROJECTION,
    TENSOR_INPUT_POST_NORM,
    TENSOR_STREAM_SCALE, /* one number */
    TENSOR_ROLES,
    TENSOR_LAYER_ROLES = TENSOR_ATTENTION_NORM /* from here on one a layer */
};

/* Sets of roles. */
typedef uint64_t tensor_set;
#define TENSOR_BIT(role) ((tensor_set)1 << (role))

/* What plays a role: a tensor, or some rows of one that several roles share. A vector is one row. Row r of
 * the count · rows stands first_row + r rows from the start of the tensor; where `run` is not 0, roles take
 * turns of so many rows, and it stands at first_row + r ÷ run · apart + r mod run. */
struct model_tensor {
    const struct gguf_tensor *weight; /* NULL: the model has none */
    const struct gguf_tensor *bias; /* F32, an element for each row of `weight`; of a norm for each column; of
                                     * experts [count][rows] */
    uint32_t first_row;             /* in weight and bias */
    uint32_t run, apart;            /* apart > run > 0, and no bias; or 0: its rows stand together */
    uint32_t rows, columns;         /* outputs, inputs */
    uint32_t count;                 /* of such matrices, one after the other: experts; else 1 */
};

/* Where a row of it stands in `weight`. */
static inline uint64_t model_tensor_row(const struct model_tensor *tensor, uint64_t row)
{
    return tensor->first_row + (tensor->run ? row / tensor->run * tensor->apart + row % tensor->run : row);
}

struct tensor_shape {
    uint32_t rows, columns, count; /* rows 0: a vector */
};

/* The shape that a role has in a model of these hyperparameters, in a layer of these traits (NULL: of the
 * model's own roles). */
struct tensor_shape tensor_shape(const struct model_params *params, const struct layer_traits *traits,
                                 enum tensor_role role);

/* Is it one number for each input or output (norms, factors)? */
bool tensor_is_vector(enum tensor_role role);

/* Are its numbers used as they are, and so F32 whatever the matrices are? Vectors, and taps. */
bool tensor_is_plain(enum tensor_role role);

/* Is it the weight of a norm, to which the norm's offset is added? Of vectors; that of a delta net's heads
 * has none. */
bool tensor_is_norm(enum tensor_role role);

/* A role's share of a tensor. */
struct tensor_part {
    enum tensor_role role;
    uint32_t first_row, run, apart; /* as of a model_tensor */
};

#define TENSOR_MOST_PARTS 4

/* The roles that share the tensor of a layer of these traits (of one that has its tensor to itself, that
 * one), and where they stand in it. Returns how many; 0: such a layer has no such tensor. */
uint32_t tensor_parts(const struct model_params *params, const struct layer_traits *traits,
                      enum tensor_role role, struct tensor_part ret_parts[TENSOR_MOST_PARTS]);

/* The same as a set. */
tensor_set tensor_part_set(const struct layer_traits *traits, enum tensor_role role);

#define TENSOR_NAME_SIZE 64

/* What the file calls it; `layer` counts for layers' roles only. Returns ret_name. */
const char *tensor_name(enum tensor_role role, uint32_t layer, bool bias, char ret_name[TENSOR_NAME_SIZE]);

/* The layer N of a name "blk.N.…"; false for others, and the output is untouched. */
bool tensor_layer_of(struct bytes name, uint32_t *ret_layer);

/* The other way round. False for a name that no role has; outputs are then untouched. */
bool tensor_role_of(struct bytes name, enum tensor_role *ret_role, uint32_t *ret_layer, bool *ret_bias);

#endif
