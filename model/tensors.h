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
    TENSOR_ROTARY_FACTORS, /* each rotary frequency is divided by its own */
    TENSOR_ROTARY_SHORT,   /* the same, for contexts up to the length of training */
    TENSOR_ROTARY_LONG,    /* and beyond it */
    TENSOR_OUTPUT_NORM,
    TENSOR_OUTPUT,
    /* of a layer */
    TENSOR_ATTENTION_NORM,
    TENSOR_QKV, /* queries, keys, values one after the other */
    TENSOR_Q,
    TENSOR_Q_NORM,
    TENSOR_K,
    TENSOR_K_NORM,
    TENSOR_V,
    TENSOR_SINKS,
    TENSOR_ATTENTION_OUTPUT,
    TENSOR_NAMED_POST_NORM, /* the norm before the feed-forward, of files that call it one after attention */
    TENSOR_ATTENTION_POST_NORM,
    TENSOR_FFN_NORM,
    TENSOR_GATE_UP, /* gate, then up */
    TENSOR_GATE,
    TENSOR_UP,
    TENSOR_DOWN,
    TENSOR_ROUTER,
    TENSOR_EXPERT_GATES,
    TENSOR_EXPERT_UPS,
    TENSOR_EXPERT_DOWNS,
    TENSOR_SHARED_GATE,
    TENSOR_SHARED_UP,
    TENSOR_SHARED_DOWN,
    TENSOR_FFN_POST_NORM,
    TENSOR_ROLES,
    TENSOR_LAYER_ROLES = TENSOR_ATTENTION_NORM /* from here on one a layer */
};

/* Sets of roles. */
typedef uint64_t tensor_set;
#define TENSOR_BIT(role) ((tensor_set)1 << (role))

/* What plays a role: a tensor, or some rows of one that several roles share. A vector is one row. */
struct model_tensor {
    const struct gguf_tensor *weight; /* NULL: the model has none */
    const struct gguf_tensor *bias; /* F32, an element for each row of `weight`; of a norm for each column; of
                                     * experts [count][rows] */
    uint32_t first_row;             /* in weight and bias */
    uint32_t rows, columns;         /* outputs, inputs */
    uint32_t count;                 /* of such matrices, one after the other: experts; else 1 */
};

struct tensor_shape {
    uint32_t rows, columns, count; /* rows 0: a vector */
};

/* The shape that a role has in a model of these hyperparameters, in a layer of these traits (NULL: of the
 * model's own roles). */
struct tensor_shape tensor_shape(const struct model_params *params, const struct layer_traits *traits,
                                 enum tensor_role role);

/* Is it one number for each input or output (norms, factors), and so F32 whatever the matrices are? */
bool tensor_is_vector(enum tensor_role role);

/* The roles that share a tensor; of one that has its tensor to itself, that one. */
tensor_set tensor_parts(enum tensor_role role);

#define TENSOR_NAME_SIZE 64

/* What the file calls it; `layer` counts for layers' roles only. Returns ret_name. */
const char *tensor_name(enum tensor_role role, uint32_t layer, bool bias, char ret_name[TENSOR_NAME_SIZE]);

/* The other way round. False for a name that no role has; outputs are then untouched. */
bool tensor_role_of(struct bytes name, enum tensor_role *ret_role, uint32_t *ret_layer, bool *ret_bias);

#endif
