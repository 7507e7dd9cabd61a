/* SPDX-License-Identifier: MIT */
/* The recurrence of gated delta nets: S ← α S, d = β (v − S k), S ← S + d kᵀ, o = S q.
 *
 * Rows of S do not depend on one another. Eight lanes share one, in registers while all rows of a set go by,
 * so that a state is read and written once a launch: a decode moves its bytes and little else. A block has 16
 * rows of one head of one sequence; keys, queries and values come through shared memory, a few rows at a
 * time.
 *
 * A sum over a key has four chains in each lane, and one order. So bits do not depend on how many rows a
 * launch has of a sequence, and a state that was kept goes on as if it had never been away: decode and
 * prefill are the same code, and no product is fused but by name.
 *
 * Further blocks bring the tail of the convolution up to date, a channel to a thread. */

#include "cuda/kernels/activations.h"

#include <errno.h>

#define WARPS      4
#define THREADS    (WARPS * SIMT_LANES)
#define ROW_LANES  8
#define BLOCK_ROWS (THREADS / ROW_LANES)
#define TILE       16 /* rows of the step in shared memory at once */

/* EACH: numbers of a key that a lane has, by fours: ROW_LANES · 4 columns, and the next. */
template <uint32_t EACH> struct rule_tile {
    float keys[TILE][ROW_LANES * EACH], queries[TILE][ROW_LANES * EACH]; /* zeros behind the key */
    float values[TILE][BLOCK_ROWS];
    float decays[TILE], betas[TILE];
};

/* What a launch computes once. */
struct rule_shape {
    uint32_t n_parts;          /* blocks of a head */
    uint32_t channels, n_keys; /* of a row of the tail, of a row of S */
    uint32_t padded_channels;
    size_t heads; /* where they begin in a state */
};

/* What a block works on: rows first … of a head's S. */
struct rule_part {
    const struct step_set *set;
    uint32_t head, first;
};

/* ---- rows of S ---- */

/* Where the lane's e-th number is in a key. */
static __device__ inline uint32_t place_of(uint32_t e)
{
    return (e / 4 * ROW_LANES + threadIdx.x % ROW_LANES) * 4;
}

template <uint32_t EACH>
static __device__ inline void read_state(const float *row, bool is_there, uint32_t n, float s[EACH])
{
    SIMT_UNROLL
    for (uint32_t e = 0; e < EACH; e += 4) {
        const struct float_four four =
            is_there && place_of(e) < n ? read_four(row + place_of(e)) : float_four{};
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            s[e + i] = four.v[i];
    }
}

template <uint32_t EACH>
static __device__ inline void write_state(float *row, bool is_there, uint32_t n, const float s[EACH])
{
    SIMT_UNROLL
    for (uint32_t e = 0; e < EACH; e += 4)
        if (is_there && place_of(e) < n)
            *(struct float_four *)(row + place_of(e)) = float_four{{s[e], s[e + 1], s[e + 2], s[e + 3]}};
}

/* Over the lanes that share a row; all lanes of the warp. */
static __device__ inline float row_sum(const float chains[4])
{
    float sum = (chains[0] + chains[1]) + (chains[2] + chains[3]);
    SIMT_UNROLL
    for (uint32_t mask = 1; mask < ROW_LANES; mask *= 2)
        sum += simt_shuffle_xor(sum, mask);
    return sum;
}

/* One row of the step; returns what it gives. */
template <uint32_t EACH>
static __device__ inline float follow(const struct rule_tile<EACH> *tile, uint32_t t, float value,
                                      float s[EACH])
{
    float recalled[4] = {}, given[4] = {};
    SIMT_UNROLL
    for (uint32_t e = 0; e < EACH; e += 4) {
        const struct float_four key = read_four(tile->keys[t] + place_of(e));
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            recalled[i] = fmaf(s[e + i], key.v[i], recalled[i]);
    }
    const float decay = tile->decays[t];
    const float error = value - simt_multiply(decay, row_sum(recalled));
    const float delta = simt_multiply(tile->betas[t], error);
    SIMT_UNROLL
    for (uint32_t e = 0; e < EACH; e += 4) {
        const struct float_four key = read_four(tile->keys[t] + place_of(e));
        const struct float_four query = read_four(tile->queries[t] + place_of(e));
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            s[e + i] = fmaf(key.v[i], delta, simt_multiply(decay, s[e + i]));
            given[i] = fmaf(s[e + i], query.v[i], given[i]);
        }
    }
    return row_sum(given);
}

/* ---- a head ---- */

/* delta_net_key_head, on the device. */
static __device__ inline uint32_t key_head_of(const struct delta_net *net, uint32_t head)
{
    return net->neighbours ? head / (net->n_value_heads / net->n_key_heads) : head % net->n_key_heads;
}

/* Rows row … row + n − 1 of the step. */
template <uint32_t EACH>
static __device__ inline void load_tile(const struct delta_step *step, const struct rule_part *part,
                                        uint32_t row, uint32_t n, struct rule_tile<EACH> *tile)
{
    const struct delta_net *net = &step->net;
    const uint32_t width = ROW_LANES * EACH, key_dim = net->key_dim, value_dim = net->value_dim;
    const size_t key = (size_t)row * step->key_stride + key_head_of(net, part->head) * key_dim;
    const size_t value = (size_t)row * step->value_stride + part->head * value_dim;
    const size_t gate = (size_t)row * step->gate_stride + part->head;
    for (uint32_t i = threadIdx.x; i < n * width; i += THREADS) {
        const uint32_t t = i / width, d = i % width;
        const size_t from = key + (size_t)t * step->key_stride + d;
        tile->keys[t][d] = d < key_dim ? step->keys[from] : 0;
        tile->queries[t][d] = d < key_dim ? step->queries[from] : 0;
    }
    for (uint32_t i = threadIdx.x; i < n * BLOCK_ROWS; i += THREADS) {
        const uint32_t t = i / BLOCK_ROWS, d = part->first + i % BLOCK_ROWS;
        tile->values[t][i % BLOCK_ROWS] =
            d < value_dim ? step->values[value + (size_t)t * step->value_stride + d] : 0;
    }
    if (threadIdx.x < n) {
        tile->decays[threadIdx.x] = step->decays[gate + (size_t)threadIdx.x * step->gate_stride];
        tile->betas[threadIdx.x] = step->betas[gate + (size_t)threadIdx.x * step->gate_stride];
    }
}

template <uint32_t EACH>
static __device__ inline void run_part(const struct delta_step *step, const struct rule_shape *shape,
                                       const struct rule_part *part, struct rule_tile<EACH> *tile)
{
    const struct step_set *set = part->set;
    const struct delta_net *net = &step->net;
    const uint32_t nth = threadIdx.x / ROW_LANES, d = part->first + nth;
    const bool is_there = d < net->value_dim;
    const uint32_t n_keys = shape->n_keys;
    const size_t at = shape->heads + ((size_t)part->head * net->value_dim + d) * n_keys;
    float *state = step->states.slots + set->slot * step->states.n + at;
    float *values = step->values + (size_t)set->first_row * step->value_stride + part->head * net->value_dim;
    float s[EACH];
    read_state<EACH>(state, is_there, n_keys, s);
    SIMT_UNROLL_BY(1)
    for (uint32_t row = 0; row < set->n_rows; row++) {
        const uint32_t t = row % TILE;
        if (t == 0) {
            const uint32_t left = set->n_rows - row;
            simt_barrier();
            load_tile<EACH>(step, part, set->first_row + row, left < TILE ? left : TILE, tile);
            simt_barrier();
        }
        const float given = follow<EACH>(tile, t, tile->values[t][nth], s);
        if (is_there && threadIdx.x % ROW_LANES == 0)
            values[(size_t)row * step->value_stride + d] = given;
        if (row + 1 == set->snapshot_rows)
            write_state<EACH>(step->states.snapshots + set->snapshot * step->states.n + at, is_there, n_keys,
                              s);
    }
    write_state<EACH>(state, is_there, n_keys, s);
}

/* ---- the tail ---- */

/* One channel behind the first n rows of the set, to a state, be it the slot's own: from the oldest on. */
static __device__ inline void write_tail(uint32_t n_tail, uint32_t channels, const float *tail,
                                         const float *from, uint32_t stride, uint32_t n, float *to)
{
    SIMT_UNROLL_BY(1)
    for (uint32_t t = 0; t < n_tail; t++) {
        const uint32_t at = n + t; /* counts from the oldest of the tail */
        to[(size_t)t * channels] =
            at < n_tail ? tail[(size_t)at * channels] : from[(size_t)(at - n_tail) * stride];
    }
}

static __device__ inline void move_tail(const struct delta_step *step, const struct rule_shape *shape,
                                        const struct step_set *set, uint32_t channel)
{
    const uint32_t n_tail = step->net.n_taps - 1;
    const uint32_t queries = step->net.n_key_heads * step->net.key_dim;
    const size_t at = set->slot * step->states.n + step->offset + channel;
    const uint32_t stride = channel < queries ? step->q_stride : step->kv_stride;
    const float *from = channel < queries       ? step->q + channel
                        : channel < 2 * queries ? step->k + (channel - queries)
                                                : step->v + (channel - 2 * queries);
    if (channel >= shape->channels)
        return;
    from += (size_t)set->first_row * stride;
    float *tail = step->states.slots + at;
    if (set->snapshot_rows > 0)
        write_tail(n_tail, shape->padded_channels, tail, from, stride, set->snapshot_rows,
                   step->states.snapshots + set->snapshot * step->states.n + step->offset + channel);
    write_tail(n_tail, shape->padded_channels, tail, from, stride, set->n_rows, tail);
}

/* ---- the launch ---- */

/* grid (parts of heads, then of channels; sets). Reads and writes each state once. */
template <uint32_t EACH>
static __global__ void __launch_bounds__(THREADS)
    delta_rule(struct delta_step step, struct step_memory memory, struct rule_shape shape)
{
    simt_start();
    if (blockIdx.y >= memory.step->n_sets)
        return;
    const struct step_set *set = &memory.sets[blockIdx.y];
    if (memory.rows[set->first_row].position == ROW_DEAD) /* and so are the others of its set */
        return;
    const uint32_t n_heads = step.net.n_value_heads;
    if (blockIdx.x < n_heads * shape.n_parts) {
        const struct rule_part part = {set, blockIdx.x / shape.n_parts,
                                       blockIdx.x % shape.n_parts * BLOCK_ROWS};
        run_part<EACH>(&step, &shape, &part, simt_shared<struct rule_tile<EACH>>());
    } else {
        move_tail(&step, &shape, set, (blockIdx.x - n_heads * shape.n_parts) * THREADS + threadIdx.x);
    }
}

template <uint32_t EACH>
static int launch(struct device_stream *queue, const struct delta_step *step,
                  const struct step_memory *memory, uint32_t n_sets)
{
    const struct delta_net *net = &step->net;
    const uint32_t channels = delta_net_channels(net);
    const struct rule_shape shape = {.n_parts = (net->value_dim + BLOCK_ROWS - 1) / BLOCK_ROWS,
                                     .channels = channels,
                                     .n_keys = kernels_state_padded(net->key_dim),
                                     .padded_channels = kernels_state_padded(channels),
                                     .heads = step->offset + kernels_delta_tail(net)};
    const uint32_t n_blocks = net->n_value_heads * shape.n_parts + (channels + THREADS - 1) / THREADS;
    return simt_launch(queue, "delta_rule", delta_rule<EACH>, {n_blocks, n_sets, 1}, {THREADS, 1, 1},
                       sizeof(struct rule_tile<EACH>), *step, *memory, shape);
}

int kernels_delta_rule(struct device_stream *queue, const struct delta_step *step,
                       const struct step_memory *memory, uint32_t n_sets)
{
    const uint32_t each = (step->net.key_dim + ROW_LANES - 1) / ROW_LANES;
    return each > KERNELS_DELTA_KEYS / ROW_LANES ? -EINVAL
           : each <= 4                           ? launch<4>(queue, step, memory, n_sets)
           : each <= 8                           ? launch<8>(queue, step, memory, n_sets)
           : each <= 16                          ? launch<16>(queue, step, memory, n_sets)
                                                 : launch<32>(queue, step, memory, n_sets);
}
