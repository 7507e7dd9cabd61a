/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_KERNELS_H
#define CUDA_KERNELS_KERNELS_H

/* The kernels, each as a function that queues it on a stream; it returns 0 or a fault (device.h).
 *
 * Pointers are to device memory unless stated otherwise. n_rows is a count of the grid and may exceed the
 * step's: rows whose struct step_row is dead are computed on whatever is there, finite or not, and touch
 * nothing that others read. What is launched depends only on the arguments, so a recorded launch serves
 * every step of that many rows.
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

/* A matrix as kernels read it: layout.h packs it. */
struct device_matrix {
    enum format format;
    uint32_t n_rows, n_columns; /* outputs, inputs */
    uint32_t n_experts;         /* so many such matrices, one after the other; of experts alone more than 1 */
    uint32_t padded_columns;    /* to 256 */
    uint32_t launch;            /* 1 + the number of the launch whose first matrix it is
                                 * (cuda/choose/measure.h); 0: of none that has choices */
    const void *planes[4];      /* by format: layout.h; aligned to 16 bytes */
    const float *bias;          /* [n_experts][n_rows], or NULL */
};

struct device_vector {
    const float *weight, *bias; /* aligned to 16 bytes; NULL: none */
};

/* ---- activations ---- */

/* What products read. Blocks of 32 have a scale: value ≈ scale · quant; `sums` is scale · the sum of the
 * quants, which formats with minimums need. Kernels that make them leave out what is NULL: values where no
 * matrix reads them, or quants. */
struct device_activations {
    float *values;        /* [rows][stride] */
    int8_t *quants;       /* [rows][stride], in the order of layout_quant_place */
    float *scales, *sums; /* [rows][stride / 32]; there when quants are */
    uint32_t stride;
};

/* stream = scale · row of `embedding` + row of `positions`, when there is one; both are as in the file:
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

/* What each layer gets of each row's token by itself (model/description.h), n numbers p:
 *
 *   p = (norm(projected · factor) + √n · the layer's part of the token's row) / √2
 *
 * Rows of `table` are as in the file. Of dead rows the token's part is zero. -EINVAL: a format that layout.h
 * does not have, or a table of fewer columns. */
struct layer_inputs_step {
    const struct device_matrix *table; /* n_layers · n columns, or more */
    const float *projected;            /* [n_rows][projected_stride]: n numbers of each layer in a row */
    uint32_t projected_stride, n_layers, n;
    float factor;
    struct norm norm;
    struct device_vector vector; /* [n] */
    float *out;                  /* [n_rows][stride]: those of layer l from l · part on */
    uint32_t stride, part;
};
int kernels_layer_inputs(struct device_stream *queue, const struct layer_inputs_step *inputs,
                         const struct step_row *rows, uint32_t n_rows);

/* What a layer's half does to the stream, and what the next products read, in one kernel:
 *
 *   delta = part_norm(delta) + part_norm(beside)     where the half has two parts
 *   stream += residual_scale · post_norm(delta)      where delta is given; then times *stream_scale, if any
 *   out = norm(stream), as floats and quantized
 *
 * What is in memory as delta stays as it is. A part's norm is of post_norm's kind, by a vector of its own.
 * With `outputs`, row i of out is made from row outputs[i] of stream and delta, and the stream stays as it
 * is: several i may name one row. A vector without a weight is no norm: post_norm then hands delta on, norm
 * the stream. Vectors hold norm.offset already. -EINVAL: more than KERNELS_NORM_COLUMNS, or parts without
 * norms.
 */
#define KERNELS_NORM_COLUMNS 12288
struct norm_step {
    float *stream;       /* [rows][stride] */
    const float *delta;  /* [rows][stride], or NULL */
    const float *beside; /* the same: another part of the half; NULL: delta is all */
    uint32_t stride, n_columns;
    struct norm norm, post_norm;
    struct device_vector vector, post_vector;
    struct device_vector delta_vector, beside_vector; /* of the parts, with a weight; where there are two */
    float residual_scale;
    const float *stream_scale;     /* or NULL */
    const uint32_t *outputs;       /* [n_rows], or NULL: row i */
    struct device_activations out; /* of the same stride */
};
int kernels_norm(struct device_stream *queue, const struct norm_step *norm, uint32_t n_rows);

/* quants, scales and sums from values. */
int kernels_quantize(struct device_stream *queue, const struct device_activations *x, uint32_t n_columns,
                     uint32_t n_rows);

/* Memory of products whose tiles several blocks of threads share (stream_k.h). */
struct multiply_scratch {
    uint32_t n_multiprocessors; /* 0: no tile is shared */
    enum stream_k_rule rule;
    float *sums;       /* kernels_multiply_scratch bytes */
    uint32_t *tickets; /* [stream_k_most_divided], zeros between kernels */
};
size_t kernels_multiply_scratch(uint32_t n_multiprocessors);

/* Of a step's products. */
struct multiply_step {
    uint32_t n_rows;
    bool reproducible;                      /* an output's bits depend on its row alone, not on n_rows */
    const struct multiply_scratch *scratch; /* or NULL; no bit depends on it */
    enum product_way way; /* of more than KERNELS_GEMV rows; no bit depends on it. PRODUCT_LIBRARY is no way
                             of ours: the rule's */
};

/* out[row][i] = bias[i] + weights[i] · x[row], for up to KERNELS_PRODUCTS matrices that read the same x in
 * one launch. F32, F16 and BF16 matrices read x.values, others x.quants. -EINVAL: a format that layout.h does
 * not have, or more columns than x. */
#define KERNELS_PRODUCTS 3
#define KERNELS_GEMV     4 /* rows, up to which the weights' bytes are all that counts */
struct device_product {
    const struct device_matrix *matrix;
    float *out; /* [n_rows][out_stride] */
    uint32_t out_stride;
};
int kernels_multiply(struct device_stream *queue, const struct device_product *products, uint32_t n_products,
                     const struct device_activations *x, const struct multiply_step *step);

/* The way that the rule takes with more than KERNELS_GEMV rows. */
enum product_way kernels_multiply_rule(const struct device_product *products, uint32_t n_products,
                                       uint32_t n_rows, const struct multiply_scratch *scratch);

/* out = activation(gate) · up, or activation(up) where gate is NULL; as floats and quantized. -EINVAL:
 * strides that are no multiples of 4, or of `out` none of 256. */
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

/* Products, and the activation that takes them: a few rows in one launch, more in two. `products` are the
 * gate's, where there is activate->gate, and up's, whose outputs are activate's. `tickets`:
 * [activate->out.stride / 32] zeros, which are zeros again afterwards. -EINVAL as the two, or for matrices of
 * other sizes. */
int kernels_multiply_activate(struct device_stream *queue, const struct device_product *products,
                              const struct device_activations *x, const struct multiply_step *step,
                              const struct activate_step *activate, uint32_t *tickets);

/* A product, and the norm that takes it as its delta: one row in one launch, more in two. norm->delta is the
 * product's `out`, of the norm's stride, and all of the half; there are no norm->outputs. `ticket`: a zero,
 * which is zero again afterwards. -EINVAL as the two. */
int kernels_multiply_norm(struct device_stream *queue, const struct device_product *product,
                          const struct device_activations *x, const struct multiply_step *step,
                          const struct norm_step *norm, uint32_t *ticket);

/* ---- what a library multiplies (library_products.h) ---- */

/* A matrix as bfloat16, [n_rows][padded_columns]: scale and minimum applied in float, then rounded to the
 * nearest, ties to even. `out` is aligned to 16 bytes. -EINVAL: a format that layout.h does not have. */
int kernels_unpack(struct device_stream *queue, const struct device_matrix *matrix, uint16_t *out);

/* x.values as bfloat16, [n_padded][stride]; rows from n_rows on are zeros. */
int kernels_round(struct device_stream *queue, const struct device_activations *x, uint32_t n_rows,
                  uint32_t n_padded, uint16_t *out);

/* ---- mixtures of experts ---- */

/* Which experts rows go to. An *assignment* pairs a row with one of its experts: a row has n_used of them,
 * and number row · n_used + k is that to its k-th best. Where rows are many, assignments to one expert get
 * neighbouring *places*, and tiles are runs of places. Dead rows have no assignments. */
#define EXPERT_NONE              UINT32_MAX
#define KERNELS_MOST_USED        512   /* experts of a row */
#define KERNELS_MOST_ASSIGNMENTS 32768 /* of a step; what a bucket has too many is not counted */
struct expert_tile {
    uint32_t expert, first, n; /* places */
};
struct device_assignments {
    uint32_t n_experts, n_used;
    uint32_t *experts;         /* [assignments], or EXPERT_NONE */
    float *weights;            /* [assignments]: of a row they add up to 1, before scales of experts */
    uint32_t *by_place, *rows; /* by place */
    struct expert_tile *tiles; /* [kernels_most_tiles], of KERNELS_LEAST_TILE */
    uint32_t *n_tiles;
};

/* Tiles that there may be, of so many places at most each. */
#define KERNELS_LEAST_TILE 8
static inline uint32_t kernels_most_tiles(uint32_t n_experts, uint32_t n_assignments, uint32_t tile)
{
    const uint32_t most = n_assignments / tile + n_experts;
    return n_assignments < most ? n_assignments : most;
}

/* What the router says. */
struct router_scores {
    const float *scores; /* [n_rows][stride] */
    uint32_t stride;
    float factor;               /* > 0: scores are multiplied by it before all else */
    const float *expert_scales; /* [n_experts]: what the weight of each is multiplied by; NULL: 1 */
};

/* The best n_used experts of each row by its scores, of equal ones the first, and the softmax of their
 * scores, times their scales; where a score is not finite all weights of the row are NaN. Then places and
 * tiles, when the products of so many rows need them. -EINVAL: more experts than scores, or than there are.
 */
int kernels_choose(struct device_stream *queue, const struct device_assignments *assignments,
                   const struct router_scores *router, const struct step_row *rows, uint32_t n_rows,
                   bool reproducible);

/* out[assignment][i] = bias[expert][i] + weights[expert][i] · x, in one launch, `x` being that of the
 * assignment's row or, when not by_row, of the assignment. Experts without assignments are not read. The
 * step's rows and whether it is reproducible are those of the choice; no tile is shared. -EINVAL as
 * kernels_multiply, or for matrices of another number of experts. */
int kernels_multiply_experts(struct device_stream *queue, const struct device_product *products,
                             uint32_t n_products, const struct device_activations *x, bool by_row,
                             const struct device_assignments *assignments, const struct multiply_step *step);

/* How much of a row the shared expert's part counts: shares[row] = σ(weight · x[row]), of x.values. */
int kernels_share(struct device_stream *queue, const struct device_activations *x, const float *weight,
                  uint32_t n_columns, float *shares, uint32_t n_rows);

/* What the shared expert gave, [n_rows][stride]; NULL: there is none. `shares`: its part of each row; NULL: 1
 * of all. */
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

/* Layers of one shape in a KV pool. What a block looks like inside is kv.h's matter: BACKEND_BLOCK_TOKENS
 * positions of one layer's keys and values take layer_bytes, these layers stand one after the other from
 * `offset` on; what else is in a block is others'. Dead rows write nothing. */
struct device_kv {
    uint8_t *pool;             /* [n_blocks][block_bytes] */
    enum backend_kv_type type; /* BACKEND_KV_F16, …_Q8 or …_Q4 */
    uint32_t n_blocks, n_layers, n_heads, dim;
    uint32_t padded;   /* dims that there is room for */
    size_t part_bytes; /* keys of one head in one block, or its values: a multiple of 16 */
    size_t layer_bytes, block_bytes;
    size_t offset;
};

/* Fills in what follows of type, n_layers, n_heads and dim: padded and the sizes, of blocks without others.
 */
void kernels_kv_lay_out(struct device_kv *kv);

/* Between the q k v products and attention, in one kernel: heads of q and k normed where q_norm and k_norm
 * have a weight, each by itself or all heads of a row together; turned as `rotary` says; q scaled, and grown
 * with its position; heads of v normed without weights where norms_values says so; k and v stored in the
 * pool, as what its type rounds them to. */
struct heads_step {
    float *q, *k; /* [rows][q_stride], [rows][kv_stride] */
    float *v;     /* [rows][kv_stride]; may be k, whose heads are then read as they are before all this */
    uint32_t q_stride, kv_stride;
    uint32_t n_heads, layer;
    struct norm norm;
    struct device_vector q_norm, k_norm; /* [dim], the same for each head; with norms_row [heads][dim] */
    bool norms_row;                      /* norms are over all heads of q, and over all of k */
    bool norms_values;
    bool only_queries; /* the pool has the keys and values of another layer: k and v are not there */
    struct rotary rotary;
    struct query_growth growth;
    const double *frequencies; /* [rotary.dims / 2], radians a position, scaling and factors included */
    float attention_scale;
    struct device_kv kv;
};
int kernels_heads(struct device_stream *queue, const struct heads_step *heads, const struct slots *slots,
                  const struct step_row *rows, uint32_t n_rows);

/* Memory of attention: the work list of a step, and partial results of sequences that several blocks of
 * threads share. The same for all launches of a backend whose layers have heads of one shape. */
struct attention_scratch {
    uint8_t *memory; /* kernels_attention_scratch bytes */
    uint32_t max_rows, n_context, n_heads;
    uint32_t n_blocks; /* of the largest pool */
};
size_t kernels_attention_scratch(const struct device_kv *kv, const struct attention_scratch *scratch);

/* Once a step, before the layers: the work list of the step's attention. */
int kernels_attention_plan(struct device_stream *queue, const struct device_kv *kv,
                           const struct attention_scratch *scratch, const struct step_row *rows,
                           uint32_t n_rows);

/* Attention of every row over what its sequence's blocks hold up to its position, into out.values, and
 * quantized. Sequences are cut into pieces of ATTENTION_PIECE positions that never depend on the batch;
 * partial results are merged in their order: the bits of a row depend on its sequence alone. A sink is a
 * score without a value, which joins the softmax behind the last piece. n_rows is that of the plan. */
#define ATTENTION_PIECE 256
struct attention_step {
    const float *q; /* [rows][q_stride], turned and scaled */
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

/* What recurrent layers keep of sequences, in float. A state is the parts of its layers, one after the other,
 * and of a delta net
 *
 *   tail    [n_taps − 1][channels]             rows before the convolution, the oldest first: q, k, v
 *   heads   [value heads][value_dim][key_dim]  S
 *
 * with channels and key_dim rounded up to KERNELS_STATE_UNIT, and zeros where that adds something. */
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

/* Where the heads begin in a delta net's part of a state, and how long that is. */
static inline size_t kernels_delta_tail(const struct delta_net *net)
{
    return (size_t)(net->n_taps - 1) * kernels_state_padded(delta_net_channels(net));
}
static inline size_t kernels_delta_numbers(const struct delta_net *net)
{
    return kernels_delta_tail(net) +
           (size_t)net->n_value_heads * net->value_dim * kernels_state_padded(net->key_dim);
}

/* What happens to rows in a delta net between its products. Rows of a set follow one another, behind the
 * state of its slot; the bits of a row depend on its sequence alone, not on how it was cut into sets. */
#define KERNELS_DELTA_KEYS 256 /* key_dim at most */
struct delta_step {
    struct delta_net net;
    const float *q, *k, *v;         /* [rows][q_stride], [rows][kv_stride]: what the convolution sees */
    const float *taps;              /* [channels][n_taps] */
    const float *step_bias, *rates; /* [value heads] */
    float *betas, *decays;          /* [rows][gate_stride]: beta h and alpha h, which become β and α */
    float *queries, *keys;          /* [rows][key_stride]: unit vectors, queries ÷ √key_dim */
    float *values;                  /* [rows][value_stride]: in the place of values comes S q */
    uint32_t q_stride, kv_stride, gate_stride, key_stride, value_stride;
    struct state_pool states;
    size_t offset; /* of the layer's part in a state */
};

/* Convolution, unit vectors, β and α. States are read. */
int kernels_delta_prepare(struct device_stream *queue, const struct delta_step *step,
                          const struct step_memory *memory, uint32_t n_rows);

/* Then the recurrence of each set, at most n_sets: values, the slot's state, and the snapshot where the set
 * asks for one. -EINVAL: keys longer than KERNELS_DELTA_KEYS. */
int kernels_delta_rule(struct device_stream *queue, const struct delta_step *step,
                       const struct step_memory *memory, uint32_t n_sets);

/* out = rms_norm(head) · weight · silu(gate), each head by itself; as floats and quantized. -EINVAL as
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

/* First: appends blocks to tables, makes rows and outputs. Rows from the step's own number on, up to n_rows,
 * become dead, and so many outputs name row 0. */
int kernels_resolve(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                    uint32_t n_rows);

/* Last: samples for every set that asks for it, in the order of its rows, as engine/sampling/sampling.h says,
 * bit for bit where the arithmetic is the same; accepts drafts; advances slots and their uses; writes log
 * probabilities, results and, last of all, the step's number into the mailbox. `logits` are those of the
 * step's outputs; sampled ones are among the first n_outputs; `masks` as in struct step_set, or NULL. */
struct sample_step {
    const float *logits; /* [outputs][stride] */
    uint32_t stride;
    const uint32_t *masks;
    const struct mailbox *mailboxes; /* [MAILBOXES], in device memory, of pinned memory */
    void *scratch;                   /* kernels_sample_scratch bytes, zero before its first use */
    bool greedy; /* no row draws or wants log probabilities: kernels that only those need are not launched */
};
/* Before the layers of a step with a slot that DRY bears on: what each id would repeat. */
int kernels_repeats(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                    uint32_t n_sets);

size_t kernels_sample_scratch(uint32_t n_vocab, uint32_t max_outputs);
int kernels_sample(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                   const struct sample_step *sample, uint32_t n_outputs);

#ifdef __cplusplus
}
#endif

#endif
