/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_STREAM_K_H
#define CUDA_KERNELS_STREAM_K_H

/* Which block multiplies which columns of a product's wide tiles (tile.h): stream-K with fixed pieces.
 *
 * One tile for each block of threads leaves multiprocessors idle: 4096 outputs of 64 rows are 64 tiles, and
 * an H200 has 132 multiprocessors, each with room for two blocks. So the tiles beyond the last full round, or
 * all of them if they fill none, are divided: their columns, one tile's after the other's, are cut into equal
 * shares, as many as there is room for blocks, across the borders of tiles. A block goes through its share
 * tile by tile and stores the sums of its part of each tile; the block that adds the last of a tile's sums
 * finds all others there. No block waits.
 *
 * The sums of the tile's parts (STREAM_K_PARTS runs of columns, whose borders depend only on the matrix) are
 * added in the order of the parts. A share consists of whole parts, so a divided tile has the bits of an
 * undivided one: the division may depend on the rows and on the device, but the result does not.
 *
 * The thin tiles of few rows are not divided: there each warp already has one part. */

#include <stdint.h>

#define STREAM_K_PARTS   8 /* of a tile */
#define STREAM_K_AT_ONCE 2 /* blocks on a multiprocessor */

/* The cost of dividing for a block, in steps of 256 columns: a first load that nothing hides, and sums. The
 * sums of a tile are 16 KB for each part, written and read once more, in the L2 cache; a step reads 9 KB of
 * weights in four bits and 20 KB of activations, and has 256 matrix products and the scaling of their
 * results. */
#define STREAM_K_COST 3

/* The time of a step of a block that is alone on its multiprocessor, and of one of two: two together are
 * faster than one after the other, but not twice as fast. These three numbers are estimates, not
 * measurements; so the gain must be at least an eighth of the time. */
#define STREAM_K_ALONE 2
#define STREAM_K_PAIR  3

enum stream_k_rule { STREAM_K_PLANNED, STREAM_K_NEVER, STREAM_K_ALWAYS };

/* Tiles 0 … n_whole − 1 have one block each; the n_divided tiles after them are shared by n_shares blocks. */
struct stream_k {
    uint32_t n_whole, n_divided, n_shares;
};

static inline uint32_t stream_k_quotient(uint32_t a, uint32_t b) /* rounded up */
{
    return (a + b - 1) / b;
}

/* The time of n_blocks blocks of at most n_steps steps, which all run at once. */
static inline uint64_t stream_k_time(uint32_t n_blocks, uint32_t n_steps, uint32_t n_multiprocessors)
{
    return (uint64_t)n_steps * (n_blocks <= n_multiprocessors ? STREAM_K_ALONE : STREAM_K_PAIR);
}

/* Plans n_tiles tiles of n_steps steps each. Tiles beyond full rounds are divided if that is faster, or, if
 * the rule says so, never or always. */
static inline struct stream_k stream_k_plan(uint32_t n_tiles, uint32_t n_steps, uint32_t n_multiprocessors,
                                            enum stream_k_rule rule)
{
    const struct stream_k whole = {n_tiles, 0, 0};
    const uint32_t room = n_multiprocessors * STREAM_K_AT_ONCE;
    const uint32_t n_divided = room ? n_tiles % room : 0, n_units = n_divided * STREAM_K_PARTS;
    if (n_divided == 0 || rule == STREAM_K_NEVER)
        return whole;
    const uint32_t n_shares = n_units < room ? n_units : room;
    const uint32_t longest =
        stream_k_quotient(stream_k_quotient(n_units, n_shares) * n_steps, STREAM_K_PARTS);
    if (rule == STREAM_K_PLANNED && 9 * stream_k_time(n_shares, longest + STREAM_K_COST, n_multiprocessors) >=
                                        8 * stream_k_time(n_divided, n_steps, n_multiprocessors))
        return whole;
    const struct stream_k shares = {n_tiles - n_divided, n_divided, n_shares};
    return shares;
}

/* The largest n_divided of any plan for such a device. */
static inline uint32_t stream_k_most_divided(uint32_t n_multiprocessors)
{
    return n_multiprocessors > 0 ? n_multiprocessors * STREAM_K_AT_ONCE - 1 : 0;
}

#endif
