/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_KERNELS_H
#define CUDA_KERNELS_KERNELS_H

/* The kernels, each as a function that queues it on a stream; it returns 0 or a fault (device.h).
 *
 * Pointers are to device memory unless stated otherwise. n_rows is a count of the grid and may exceed the
 * step's: rows whose struct step_row is dead are computed on arbitrary data, finite or not, and change
 * nothing that others read. A launch depends only on the arguments, so a recorded launch serves every step of
 * that many rows.
 *
 * Rows of activations are padded to a multiple of 256 columns; the padding is zero. */

#include <stdbool.h>
#include <stdint.h>

#include "cuda/device/device.h"
#include "cuda/kernels/stream_k.h"
#include "cuda/kernels/state.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "engine/backend/backend.h"
#include "engine/backend/choices/choices.h"
#include "gguf/format.h"
#include "model/description.h"

/* ---- weights ---- */

/* A matrix as kernels read it, packed by layout.h. */
struct device_matrix {
    enum format format;
    uint32_t n_rows, n_columns; /* outputs, inputs */
    uint32_t n_experts;      /* this many such matrices, one after the other; more than 1 only for experts */
    uint32_t padded_columns; /* to 256 */
    uint32_t launch; /* 1 + the number of the launch whose first matrix it is (cuda/choose/measure.h); 0: no
                        launch with choices */
    const void *planes[4]; /* by format: layout.h; aligned to 16 bytes */
    const float *bias;     /* [n_experts][n_rows], or NULL */
};

struct device_vector {
    const float *weight, *bias; /* aligned to 16 bytes; NULL: none */
};

/* ---- activations ---- */

/* The input of products. Blocks of 32 have a scale: value ≈ scale · quant; `sums` is scale · the sum of the
 * quants, which formats with minimums need. Kernels that compute activations omit NULL arrays: values that no
 * matrix reads, or quants. */
struct device_activations {
    float *values;        /* [rows][stride] */
    int8_t *quants;       /* [rows][stride], in the order of layout_quant_place */
    float *scales, *sums; /* [rows][stride / 32]; present if quants are */
    uint32_t stride;
};

/* stream = scale · row of `embedding` + row of `positions`, if there is one; both are as in the file:
 * planes[0] is rows of the file's blocks. Dead rows become zeros. -EINVAL: a format that layout.h does not
 * have. */
struct embed_step {
    const struct device_matrix *embedding, *positions;
    float scale;
    float *stream; /* [n_rows][stride] */
    uint32_t stride;
};
int kernels_embed(struct device_stream *queue, const struct embed_step *embed, const struct step_row *rows,
                  uint32_t n_rows);

/* The per-token input of each layer for each row (model/description.h), n numbers p:
 *
 *   p = (norm(projected · factor) + √n · the layer's part of the token's row) / √2
 *
 * Rows of `table` are as in the file. For dead rows the token's part is zero. -EINVAL: a format that layout.h
 * does not have, or a table with fewer columns. */
struct layer_inputs_step {
    const struct device_matrix *table; /* n_layers · n columns, or more */
    const float *projected;            /* [n_rows][projected_stride]: n numbers of each layer in a row */
    uint32_t projected_stride, n_layers, n;
    float factor;
    struct norm norm;
    struct device_vector vector; /* [n] */
    float *out;                  /* [n_rows][stride]: the numbers of layer l from l · part on */
    uint32_t stride, part;
};
int kernels_layer_inputs(struct device_stream *queue, const struct layer_inputs_step *inputs,
                         const struct step_row *rows, uint32_t n_rows);

/* Adds a part of a layer to the stream, and computes the input of the next products, in one kernel:
 *
 *   delta = part_norm(delta) + part_norm(beside)     if there are two summands
 *   stream += residual_scale · post_norm(delta)      if delta is given; then times *stream_scale, if any
 *   out = norm(stream), as floats and quantized
 *
 * The memory of delta is not changed. part_norm is of post_norm's kind, with a separate vector for each of
 * the two. With `outputs`, row i of out is computed from row outputs[i] of stream and delta, and the stream
 * is not changed: several i may name the same row. A vector without a weight means no norm: post_norm then
 * passes delta on, and norm the stream. Vectors already include norm.offset. -EINVAL: more than
 * KERNELS_NORM_COLUMNS, or parts without norms. */
#define KERNELS_NORM_COLUMNS 12288
struct norm_step {
    float *stream;       /* [rows][stride] */
    const float *delta;  /* [rows][stride], or NULL */
    const float *beside; /* the same for a second summand; NULL: none */
    uint32_t stride, n_columns;
    struct norm norm, post_norm;
    struct device_vector vector, post_vector;
    struct device_vector delta_vector, beside_vector; /* of the summands, with a weight; if there are two */
    float residual_scale;
    const float *stream_scale;     /* or NULL */
    const uint32_t *outputs;       /* [n_rows], or NULL: row i */
    struct device_activations out; /* of the same stride */
};
int kernels_norm(struct device_stream *queue, const struct norm_step *norm, uint32_t n_rows);

/* Computes quants, scales and sums from values. */
int kernels_quantize(struct device_stream *queue, const struct device_activations *x, uint32_t n_columns,
                     uint32_t n_rows);

/* Memory for products whose tiles are shared by several blocks of threads (stream_k.h). */
struct multiply_scratch {
    uint32_t n_multiprocessors; /* 0: no tile is shared */
    enum stream_k_rule rule;
    float *sums;       /* kernels_multiply_scratch bytes */
    uint32_t *tickets; /* [stream_k_most_divided], zeros between kernels */
};
size_t kernels_multiply_scratch(uint32_t n_multiprocessors);

/* Properties of a step's products. */
struct multiply_step {
    uint32_t n_rows;
    bool reproducible;                      /* an output's bits depend only on its row, not on n_rows */
    const struct multiply_scratch *scratch; /* or NULL; no bit depends on it */
    /* Of more than KERNELS_GEMV rows; no bit depends on it. PRODUCT_LIBRARY here means by rule. */
    enum product_way way;
};

/* out[row][i] = bias[i] + weights[i] · x[row], for up to KERNELS_PRODUCTS matrices that read the same x in
 * one launch. F32, F16 and BF16 matrices read x.values, others x.quants. -EINVAL: a format that layout.h does
 * not have, or more columns than x. */
#define KERNELS_PRODUCTS 3
#define KERNELS_GEMV     4 /* up to this many rows, only the weights' bytes determine the time */
struct device_product {
    const struct device_matrix *matrix;
    float *out; /* [n_rows][out_stride] */
    uint32_t out_stride;
};
int kernels_multiply(struct device_stream *queue, const struct device_product *products, uint32_t n_products,
                     const struct device_activations *x, const struct multiply_step *step);

/* The way chosen by the rule for more than KERNELS_GEMV rows. */
enum product_way kernels_multiply_rule(const struct device_product *products, uint32_t n_products,
                                       uint32_t n_rows, const struct multiply_scratch *scratch);

/* out = activation(gate) · up, or activation(up) if gate is NULL; as floats and quantized. -EINVAL: strides
 * that are not multiples of 4, or for `out` not of 256. */
struct activate_step {
    enum activation activation;
    const float *gate, *up; /* [rows][stride], [rows][up_stride] */
    uint32_t stride, up_stride, n_columns;
    struct device_activations out;
};
int kernels_activate(struct device_stream *queue, const struct activate_step *activate, uint32_t n_rows);

/* out.values = out.values · σ(gate), and quantized. -EINVAL as kernels_activate. */
struct gate_step {
    const float *gate; /* [rows][stride] */
    uint32_t stride, n_columns;
    struct device_activations out;
};
int kernels_gate(struct device_stream *queue, const struct gate_step *gate, uint32_t n_rows);

/* Products and the activation of their outputs: a few rows in one launch, more in two. `products` are the
 * gate's, if there is activate->gate, and up's; their outputs are the inputs in `activate`. `tickets`:
 * [activate->out.stride / 32] zeros, which are zeros again afterwards. -EINVAL as for the two, or for
 * matrices of different sizes. */
int kernels_multiply_activate(struct device_stream *queue, const struct device_product *products,
                              const struct device_activations *x, const struct multiply_step *step,
                              const struct activate_step *activate, uint32_t *tickets);

/* A product and the norm with the product as delta: one row in one launch, more in two. norm->delta is the
 * product's `out`, with the norm's stride and without norm->beside; there are no norm->outputs. `ticket`: a
 * zero, which is zero again afterwards. -EINVAL as for the two. */
int kernels_multiply_norm(struct device_stream *queue, const struct device_product *product,
                          const struct device_activations *x, const struct multiply_step *step,
                          const struct norm_step *norm, uint32_t *ticket);

/* ---- products by a library (library_products.h) ---- */

/* A matrix as bfloat16, [n_rows][padded_columns]: scale and minimum applied in float, then rounded to the
 * nearest, ties to even. `out` is aligned to 16 bytes. -EINVAL: a format that layout.h does not have. */
int kernels_unpack(struct device_stream *queue, const struct device_matrix *matrix, uint16_t *out);

/* x.values as bfloat16, [n_padded][stride]; rows from n_rows on are zeros. */
int kernels_round(struct device_stream *queue, const struct device_activations *x, uint32_t n_rows,
                  uint32_t n_padded, uint16_t *out);

/* ---- mixtures of experts ---- */

/* The experts of rows. An *assignment* pairs a row with one of its experts: a row has n_used assignments, and
 * number row · n_used + k is for its k-th best expert. With many rows, assignments to one expert get
 * neighbouring *places*, and tiles are runs of places. Dead rows have no assignments. */
#define EXPERT_NONE              UINT32_MAX
#define KERNELS_MOST_USED        512   /* experts of a row */
#define KERNELS_MOST_ASSIGNMENTS 32768 /* of a step, without the surplus rows of a bucket */
struct expert_tile {
    uint32_t expert, first, n; /* places */
};
struct device_assignments {
    uint32_t n_experts, n_used;
    uint32_t *experts;         /* [assignments], or EXPERT_NONE */
    float *weights;            /* [assignments]: of a row; they add up to 1 before scales of experts */
    uint32_t *by_place, *rows; /* by place */
    struct expert_tile *tiles; /* [kernels_most_tiles], of KERNELS_LEAST_TILE */
    uint32_t *n_tiles;
};

/* The most tiles that there may be, with `tile` places each at most. */
#define KERNELS_LEAST_TILE 8
static inline uint32_t kernels_most_tiles(uint32_t n_experts, uint32_t n_assignments, uint32_t tile)
{
    const uint32_t most = n_assignments / tile + n_experts;
    return n_assignments < most ? n_assignments : most;
}

/* The router's output. */
struct router_scores {
    const float *scores; /* [n_rows][stride] */
    uint32_t stride;
    float factor;               /* > 0: scores are first multiplied by it */
    const float *expert_scales; /* [n_experts]: factors of the experts' weights; NULL: 1 */
};

/* Chooses the best n_used experts of each row by its scores (on ties the first), with the softmax of their
 * scores times their scales as weights; if a score is not finite, all weights of the row are NaN. Then makes
 * places and tiles, if the products of this many rows need them. -EINVAL: more experts than scores, or more
 * used than there are. */
int kernels_choose(struct device_stream *queue, const struct device_assignments *assignments,
                   const struct router_scores *router, const struct step_row *rows, uint32_t n_rows,
                   bool reproducible);

/* out[assignment][i] = bias[expert][i] + weights[expert][i] · x, in one launch; `x` is that of the
 * assignment's row or, if not by_row, of the assignment. Experts without assignments are not read. The step's
 * rows and `reproducible` must be those of the choice; no tile is shared. -EINVAL as kernels_multiply, or for
 * matrices with a different number of experts. */
int kernels_multiply_experts(struct device_stream *queue, const struct device_product *products,
                             uint32_t n_products, const struct device_activations *x, bool by_row,
                             const struct device_assignments *assignments, const struct multiply_step *step);

/* The weight of the shared expert for each row: shares[row] = σ(weight · x[row]), from x.values. */
int kernels_share(struct device_stream *queue, const struct device_activations *x, const float *weight,
                  uint32_t n_columns, float *shares, uint32_t n_rows);

/* The shared expert's output, [n_rows][stride]; NULL: there is none. `shares`: its weight for each row; NULL:
 * 1 for all. */
struct shared_part {
    const float *got, *shares;
};

/* out[row] = share · shared[row] + Σ weight · got[assignment], best expert first.
 * [assignments][stride], out [n_rows][stride] */
int kernels_combine(struct device_stream *queue, const struct device_assignments *assignments,
                    const float *got, const struct shared_part *shared, uint32_t stride, uint32_t n_columns,
                    float *out, uint32_t n_rows);

/* logits = cap · tanh(scale · logits / cap), cap 0: scale · logits. [n_rows][stride], n_vocab of each */
int kernels_logits(struct device_stream *queue, float *logits, uint32_t stride, uint32_t n_vocab, float scale,
                   float cap, uint32_t n_rows);

/* ---- attention ---- */

/* Layers of one shape in a KV pool. kv.h describes the inside of a block: BACKEND_BLOCK_TOKENS positions of
 * one layer's keys and values take layer_bytes; these layers follow one another from `offset` on; the rest of
 * a block belongs to other layers. Dead rows write nothing. */
struct device_kv {
    uint8_t *pool;             /* [n_blocks][block_bytes] */
    enum backend_kv_type type; /* BACKEND_KV_F16, …_Q8 or …_Q4 */
    uint32_t n_blocks, n_layers, n_heads, dim;
    uint32_t padded;   /* dims with padding */
    size_t part_bytes; /* keys of one head in one block, or its values: a multiple of 16 */
    size_t layer_bytes, block_bytes;
    size_t offset;
};

/* Fills in what follows from type, n_layers, n_heads and dim: padded and the sizes, for blocks without other
 * layers. */
void kernels_kv_lay_out(struct device_kv *kv);

/* Between the q k v products and attention, in one kernel: norms heads of q and k if q_norm and k_norm have a
 * weight, each head separately or all heads of a row together; rotates them as `rotary` says; scales q, also
 * by its position; norms heads of v without weights if norms_values; stores k and v in the pool, rounded to
 * its type. */
struct heads_step {
    float *q, *k; /* [rows][q_stride], [rows][kv_stride] */
    float *v;     /* [rows][kv_stride]; may be k, whose heads are then read before any change */
    uint32_t q_stride, kv_stride;
    uint32_t n_heads, layer;
    struct norm norm;
    struct device_vector q_norm, k_norm; /* [dim], the same for each head; with norms_row [heads][dim] */
    bool norms_row;                      /* norms are over all heads of q, and over all of k */
    bool norms_values;
    bool only_queries; /* the pool has another layer's keys and values: there are no k and v */
    struct rotary rotary;
    struct query_growth growth;
    const double *frequencies; /* [rotary.dims / 2], radians per position, scaling and factors included */
    float attention_scale;
    struct device_kv kv;
};
int kernels_heads(struct device_stream *queue, const struct heads_step *heads, const struct slots *slots,
                  const struct step_row *rows, uint32_t n_rows);

/* Memory of attention: the work list of a step, and partial results of sequences that several blocks of
 * threads share. One for all launches of layers with the same shape of heads. */
struct attention_scratch {
    uint8_t *memory; /* kernels_attention_scratch bytes */
    uint32_t max_rows, n_context, n_heads;
    uint32_t n_blocks; /* of the largest pool */
};
size_t kernels_attention_scratch(const struct device_kv *kv, const struct attention_scratch *scratch);

/* Makes the work list of the step's attention; once per step, before the layers. */
int kernels_attention_plan(struct device_stream *queue, const struct device_kv *kv,
                           const struct attention_scratch *scratch, const struct step_row *rows,
                           uint32_t n_rows);

/* Attention of every row over its sequence's blocks up to its position, into out.values, and quantized.
 * Sequences are divided into pieces of ATTENTION_PIECE positions that do not depend on the batch, and partial
 * results are merged in their order: the bits of a row depend only on its sequence. A sink is a score without
 * a value, which joins the softmax after the last piece. n_rows is the plan's. */
#define ATTENTION_PIECE 256
struct attention_step {
    const float *q; /* [rows][q_stride], rotated and scaled */
    uint32_t q_stride, layer;
    uint32_t window;
    float cap;
    const float *sinks; /* [query heads], not capped; NULL: none */
    struct device_kv kv;
    struct device_activations out;
    struct attention_scratch scratch;
};
int kernels_attention(struct device_stream *queue, const struct attention_step *attention,
                      const struct slots *slots, const struct step_row *rows, uint32_t n_rows);

/* ---- gated delta nets ---- */

/* The states that recurrent layers keep of sequences, in float. A state consists of the parts of its layers,
 * one after the other; a delta net's part is
 *
 *   tail    [n_taps − 1][channels]             rows before the convolution, the oldest first: q, k, v
 *   heads   [value heads][value_dim][key_dim]  S
 *
 * with channels and key_dim rounded up to KERNELS_STATE_UNIT and padded with zeros. */
#define KERNELS_STATE_UNIT 4
struct state_pool {
    float *slots;     /* [n_slots][n] */
    float *snapshots; /* [n_snapshots][n] */
    size_t n;         /* numbers of one state; 0: there are none */
    uint32_t n_slots, n_snapshots;
};

static inline uint32_t kernels_state_padded(uint32_t n)
{
    return (n + KERNELS_STATE_UNIT - 1) / KERNELS_STATE_UNIT * KERNELS_STATE_UNIT;
}

/* Where the heads begin in a delta net's part of a state, and the length of the part. */
static inline size_t kernels_delta_tail(const struct delta_net *net)
{
    return (size_t)(net->n_taps - 1) * kernels_state_padded(delta_net_channels(net));
}
static inline size_t kernels_delta_numbers(const struct delta_net *net)
{
    return kernels_delta_tail(net) +
           (size_t)net->n_value_heads * net->value_dim * kernels_state_padded(net->key_dim);
}

/* The work on rows in a delta net between its products. Rows of a set follow one another, starting from the
 * state of its slot; the bits of a row depend only on its sequence, not on how it was divided into sets. */
#define KERNELS_DELTA_KEYS 256 /* key_dim at most */
struct delta_step {
    struct delta_net net;
    const float *q, *k, *v;         /* [rows][q_stride], [rows][kv_stride]: inputs of the convolution */
    const float *taps;              /* [channels][n_taps] */
    const float *step_bias, *rates; /* [value heads] */
    float *betas, *decays;          /* [rows][gate_stride]: beta h and alpha h, replaced by β and α */
    float *queries, *keys;          /* [rows][key_stride]: unit vectors, queries ÷ √key_dim */
    float *values;                  /* [rows][value_stride]: values, replaced by S q */
    uint32_t q_stride, kv_stride, gate_stride, key_stride, value_stride;
    struct state_pool states;
    size_t offset; /* of the layer's part in a state */
};

/* Convolution, unit vectors, β and α. Reads states. */
int kernels_delta_prepare(struct device_stream *queue, const struct delta_step *step,
                          const struct step_memory *memory, uint32_t n_rows);

/* Then the recurrence of each set, at most n_sets: writes values, the slot's state, and the snapshot if the
 * set asks for one. -EINVAL: keys longer than KERNELS_DELTA_KEYS. */
int kernels_delta_rule(struct device_stream *queue, const struct delta_step *step,
                       const struct step_memory *memory, uint32_t n_sets);

/* out = rms_norm(head) · weight · silu(gate), for each head separately; as floats and quantized. -EINVAL as
 * kernels_activate. */
struct delta_gate_step {
    const float *heads; /* [rows][stride]: n_heads, each of dim */
    const float *gate;  /* [rows][gate_stride] */
    uint32_t stride, gate_stride, n_heads, dim;
    const float *weight; /* [dim] */
    float epsilon;
    struct device_activations out;
};
int kernels_delta_gate(struct device_stream *queue, const struct delta_gate_step *step, uint32_t n_rows);

/* ---- the ends of a step ---- */

/* First: appends blocks to tables, makes rows and outputs. Rows beyond the step's number, up to n_rows,
 * become dead, and the surplus outputs name row 0. */
int kernels_resolve(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                    uint32_t n_rows);

/* Last: samples for every set that asks for it, in the order of its rows, as engine/sampling/sampling.h says,
 * bit for bit if the arithmetic is the same; accepts drafts; advances slots and their uses; writes log
 * probabilities, results and, last of all, the step's number into the mailbox. `logits` are those of the
 * step's outputs; sampled ones are among the first n_outputs; `masks` as in struct step_set, or NULL. */
struct sample_step {
    const float *logits; /* [outputs][stride] */
    uint32_t stride;
    const uint32_t *masks;
    const struct mailbox *mailboxes; /* [MAILBOXES], in device memory; their members are in pinned memory */
    void *scratch;                   /* kernels_sample_scratch bytes, zero before its first use */
    bool greedy; /* no row draws or wants log probabilities: kernels that only those need are not launched */
};
/* Before the layers of a step with a slot that uses DRY: computes how much each id would repeat. */
int kernels_repeats(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                    uint32_t n_sets);

size_t kernels_sample_scratch(uint32_t n_vocab, uint32_t max_outputs);
int kernels_sample(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                   const struct sample_step *sample, uint32_t n_outputs);

#ifdef __cplusplus
}
#endif

#endif
