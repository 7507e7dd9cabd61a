/* SPDX-License-Identifier: MIT */
/* The recurrence of gated delta nets (struct delta_net in model/description.h).
 *
 * Rows of S, one a lane, do not depend on one another: as many as a vector holds, or twice as many where
 * there are registers, stay in the first cache while all rows of a sequence go by. What a row recalls, S k,
 * is summed while the row before it changes S, so that S is read once a row and not twice. Sums over a key
 * run in four chains, for one would wait for each addition, and are added up in one order, whatever the width
 * of vectors and wherever a prompt was cut.
 *
 * In chunks, as products of matrices, it would be more additions and multiplications than this (for heads of
 * 128 and chunks of 64 rows 91,000 a row where these are 66,000), and other bits with each way to cut. */

#include "cpu/kernels/build.h"

#if defined(LANES_PAIR)
#include "cpu/lanes/rows.h"

/* Two groups of eight rows of S, `apart` floats apart. */
typedef rows_f32 vector;
#define LANES                     16
#define MOST_VECTORS              2
#define vector_load(p, apart)     rows_f32_load(p, (apart) * sizeof(float))
#define vector_store(p, apart, v) rows_f32_store_apart(p, (apart) * sizeof(float), v)
#define vector_splat              rows_f32_splat
#define vector_fma                rows_f32_fma
#define the_rest(rows, state)     delta_rule_avx512(rows, state)
#else
typedef f32x8 vector;
#define LANES                     8
#define MOST_VECTORS              1
#define vector_load(p, apart)     f32x8_load(p)
#define vector_store(p, apart, v) f32x8_store(p, v)
#define vector_splat              f32x8_splat
#define vector_fma                f32x8_fma
#define the_rest(rows, state)     (void)(state)
#endif

#define CHAINS 4

/* Sums of one vector; arrays of more than one are taken apart by loops that the compiler unrolls. */
LANES_INLINE vector total(const vector chains[CHAINS])
{
    return (chains[0] + chains[1]) + (chains[2] + chains[3]);
}

LANES_INLINE void begin(vector chains[MOST_VECTORS][CHAINS])
{
    for (uint32_t v = 0; v < MOST_VECTORS; v++)
        for (uint32_t c = 0; c < CHAINS; c++)
            chains[v][c] = vector_splat(0);
}

/* S k. */
LANES_INLINE void recall(const float *state, const float *key, uint32_t key_dim, const uint32_t n_vectors,
                         vector *ret_recalled)
{
    vector sums[MOST_VECTORS][CHAINS];
    begin(sums);
    for (uint32_t i = 0; i < key_dim; i += CHAINS) {
        UNROLLED
        for (uint32_t c = 0; c < CHAINS; c++) {
            const vector k = vector_splat(key[i + c]);
            for (uint32_t v = 0; v < n_vectors; v++) {
                const float *at = state + (size_t)v * LANES * key_dim + 8 * (i + c);
                sums[v][c] = vector_fma(vector_load(at, 8 * key_dim), k, sums[v][c]);
            }
        }
    }
    for (uint32_t v = 0; v < n_vectors; v++)
        ret_recalled[v] = total(sums[v]);
}

/* S ← α S + d kᵀ; S q; and S k' of the next row's key, if there is one (NULL: none). */
LANES_INLINE void update(float *state, const vector decay, const vector *delta, const float *key,
                         const float *query, const float *next, uint32_t key_dim, const uint32_t n_vectors,
                         vector *ret_values, vector *ret_recalled)
{
    vector asked[MOST_VECTORS][CHAINS], recalled[MOST_VECTORS][CHAINS];
    begin(asked);
    begin(recalled);
    for (uint32_t i = 0; i < key_dim; i += CHAINS) {
        UNROLLED
        for (uint32_t c = 0; c < CHAINS; c++) {
            const vector k = vector_splat(key[i + c]), q = vector_splat(query[i + c]);
            for (uint32_t v = 0; v < n_vectors; v++) {
                float *at = state + (size_t)v * LANES * key_dim + 8 * (i + c);
                const vector s = vector_fma(k, delta[v], decay * vector_load(at, 8 * key_dim));
                vector_store(at, 8 * key_dim, s);
                asked[v][c] = vector_fma(s, q, asked[v][c]);
                if (next)
                    recalled[v][c] = vector_fma(s, vector_splat(next[i + c]), recalled[v][c]);
            }
        }
    }
    for (uint32_t v = 0; v < n_vectors; v++) {
        ret_values[v] = total(asked[v]);
        if (next)
            ret_recalled[v] = total(recalled[v]);
    }
}

/* One row, whose S k is known, and becomes that of the next row unless it is the last. */
LANES_INLINE void run_row(const struct delta_rows *rows, uint32_t r, float *state, const uint32_t n_vectors,
                          const bool is_last, vector *recalled)
{
    vector delta[MOST_VECTORS], out[MOST_VECTORS];
    const vector beta = vector_splat(rows->betas[r * rows->gate_stride]);
    const vector decay = vector_splat(rows->decays[r * rows->gate_stride]);
    const float *key = rows->keys + r * rows->key_stride, *query = rows->queries + r * rows->key_stride;
    float *values = rows->values + r * rows->value_stride;
    for (uint32_t v = 0; v < n_vectors; v++)
        delta[v] = beta * (vector_load(values + v * LANES, 8) - decay * recalled[v]);
    if (is_last)
        update(state, decay, delta, key, query, NULL, rows->key_dim, n_vectors, out, recalled);
    else
        update(state, decay, delta, key, query, key + rows->key_stride, rows->key_dim, n_vectors, out,
               recalled);
    for (uint32_t v = 0; v < n_vectors; v++)
        vector_store(values + v * LANES, 8, out[v]);
}

/* Through as many rows of S as the vectors hold. */
LANES_INLINE void run(const struct delta_rows *rows, float *state, const uint32_t n_vectors)
{
    vector recalled[MOST_VECTORS];
    recall(state, rows->keys, rows->key_dim, n_vectors, recalled);
    for (uint32_t r = 0; r + 1 < rows->n; r++)
        run_row(rows, r, state, n_vectors, false, recalled);
    run_row(rows, rows->n - 1, state, n_vectors, true, recalled);
}

void LANES_NAMED(delta_rule)(const struct delta_rows *rows, float *state)
{
    struct delta_rows some = *rows;
    const uint32_t key_dim = rows->key_dim;
    uint32_t d = 0;
    for (; d + MOST_VECTORS * LANES <= rows->value_dim; d += MOST_VECTORS * LANES) {
        some.values = rows->values + d;
        run(&some, state + (size_t)d * key_dim, MOST_VECTORS);
    }
    for (; d + LANES <= rows->value_dim; d += LANES) {
        some.values = rows->values + d;
        run(&some, state + (size_t)d * key_dim, 1);
    }
    some.values = rows->values + d;
    some.value_dim = rows->value_dim - d;
    if (some.value_dim > 0)
        the_rest(&some, state + (size_t)d * key_dim);
}
