/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_ATTENTION_ATTENTION_GEOMETRY_H
#define CUDA_KERNELS_ATTENTION_ATTENTION_GEOMETRY_H

/* How attention divides its work, for the plan (attention_plan.cu) and the kernel (attention.cu).
 *
 * Work is divided into items: for each KV head, a tile of rows of one sequence with consecutive positions,
 * and one piece of ATTENTION_PIECE positions (or all pieces in turn). All query heads that share the KV head,
 * of all rows of the tile, are the item's queries: they share one read of keys and values. */

#include "cuda/kernels/kernels.h"
#include "cuda/kernels/attention/kv.h"

#define PIECE_BLOCKS (ATTENTION_PIECE / BACKEND_BLOCK_TOKENS)
#define TILE         16 /* queries of a matrix product */
#define MOST_QUERIES 32
#define SMALL_BATCH  64                  /* a step of up to this many rows counts as decoding */
#define PARTIAL_MOST ((size_t)256 << 20) /* bytes of partial results */
#define UNSHARED     UINT32_MAX          /* of an item that goes over all pieces itself */

struct attention_item {
    uint32_t first_row, n_rows;
    uint32_t first_piece, n_pieces; /* of the item */
    uint32_t first_partial;         /* of the tile, whose piece p is partial first_partial + p; or UNSHARED */
    uint32_t n_tile_pieces, tile;
};

/* How a launch divides its work. The host derives it from arguments that plan and attention have in
 * common. */
struct attention_geometry {
    uint32_t group;        /* query heads of a KV head */
    uint32_t n_queries;    /* queries of an item at most: the template's parameter */
    uint32_t heads;        /* query heads of an item: all of the group, or as many as fit */
    uint32_t n_chunks;     /* items that a group is divided into; 1 if it fits */
    uint32_t n_units;      /* KV heads · chunks: each item of the list is done for every unit */
    uint32_t tile_rows;    /* most rows of a tile; a tile begins at every multiple of it */
    uint32_t n_partials;   /* pieces for which there is memory */
    uint32_t padded;       /* dims */
    uint32_t value_stride; /* floats of a query in shared memory: rows of a product conflict only in pairs */
    uint32_t query_stride; /* halves, an odd number of 64 bytes; dims beyond `padded` are zero */
    uint32_t rounds;       /* the kernel that computes outputs also quantizes them */
    uint32_t *n_items;
    struct attention_item *items; /* [max_rows + n_partials] */
    uint32_t *arrived;            /* [max_rows][n_units] of each tile's pieces */
    /* [n_partials][n_units], each: largest [n_queries], sum [n_queries], values [n_queries][padded] */
    float *partials;
};

static inline uint32_t partial_floats(const struct attention_geometry *g)
{
    return g->n_queries * (g->padded + 2);
}

/* Each block of 32 columns belongs to one item if no block spans two heads. */
static inline bool rounds(uint32_t dim)
{
    return dim % 32 == 0;
}

static inline void cut_group(struct attention_geometry *g, const struct device_kv *kv, uint32_t n_heads,
                             uint32_t n_queries)
{
    *g = attention_geometry{};
    g->group = n_heads / kv->n_heads;
    g->n_queries = n_queries;
    g->heads = g->group < n_queries ? g->group : n_queries;
    g->rounds = rounds(kv->dim);
    g->n_chunks = (g->group + g->heads - 1) / g->heads;
    g->n_units = kv->n_heads * g->n_chunks;
    g->tile_rows = n_queries / g->heads;
    g->padded = kv->padded;
    g->value_stride = (g->padded + 23) / 32 * 32 + 8;
    g->query_stride = (kv->dim + 31) / 32 * 32;
    g->query_stride += g->query_stride % 64 == 0 ? 32 : 0;
}

/* The number of pieces that may exist at once: the smaller of those of every row, and those that fill the
 * pool plus one for each row (blocks shared by sequences are counted once; too few cost only speed), but at
 * most what fits in PARTIAL_MOST. */
static inline uint32_t count_partials(const struct attention_geometry *g,
                                      const struct attention_scratch *scratch)
{
    uint64_t pieces = (scratch->n_context + ATTENTION_PIECE - 1) / ATTENTION_PIECE;
    uint64_t every = pieces * scratch->max_rows,
             pool = scratch->n_blocks / PIECE_BLOCKS + scratch->max_rows + 1ull;
    uint64_t fit = PARTIAL_MOST / (g->n_units * partial_floats(g) * sizeof(float));
    uint64_t n = every < pool ? every : pool;
    return (uint32_t)(n < fit ? n : fit);
}

static inline size_t align_16(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* Lays the memory out; returns its size. */
static inline size_t lay_out(struct attention_geometry *g, const struct device_kv *kv,
                             const struct attention_scratch *scratch, uint32_t n_queries)
{
    cut_group(g, kv, scratch->n_heads, n_queries);
    g->n_partials = count_partials(g, scratch);
    size_t items = 16;
    size_t arrived = align_16(items + (scratch->max_rows + g->n_partials) * sizeof(struct attention_item));
    size_t partials = align_16(arrived + (size_t)scratch->max_rows * g->n_units * sizeof(uint32_t));
    g->n_items = (uint32_t *)scratch->memory;
    g->items = (struct attention_item *)(scratch->memory + items);
    g->arrived = (uint32_t *)(scratch->memory + arrived);
    g->partials = (float *)(scratch->memory + partials);
    return partials + (size_t)g->n_partials * g->n_units * partial_floats(g) * sizeof(float);
}

/* A decoding row has the heads of one group; rows of a prompt come many at a time, and share their reads if
 * their heads are not too large for the shared memory of small devices. */
static inline uint32_t queries_for(uint32_t dim, uint32_t n_rows)
{
    return n_rows > SMALL_BATCH && dim <= 192 ? MOST_QUERIES : TILE;
}

#endif
