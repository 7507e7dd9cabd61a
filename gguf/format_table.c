/* SPDX-License-Identifier: MIT */
/* Formats whose quants are places in a table of values: IQ4_NL, IQ4_XS and MXFP4, to float and back.
 *
 * The IQ4 table is denser around zero, where most weights are; MXFP4's is a floating point of 4 bits. Which
 * entry is nearest is counted, not searched for, so that loops over a block become vector code: as many
 * thresholds as a value is above. Scales are fitted as in format_k_quantize.c. Pure functions. */

#include <math.h>
#include <string.h>

#include "gguf/blocks.h"

const int8_t block_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
const int8_t block_mxfp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* ---- to float ---- */

static void from_table(const int8_t values[16], float scale, const uint8_t quants[16], float out[BLOCK_SMALL])
{
    for (int i = 0; i < 16; i++) {
        out[i] = scale * (float)values[quants[i] & 15];
        out[i + 16] = scale * (float)values[quants[i] >> 4];
    }
}

void iq4_nl_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_iq4_nl *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, out += BLOCK_SMALL)
        from_table(block_iq4_values, format_f16_to_f32(block->scale), block->quants, out);
}

void mxfp4_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_mxfp4 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, out += BLOCK_SMALL)
        from_table(block_mxfp4_values, block_mxfp4_scale(block->exponent), block->quants, out);
}

void iq4_xs_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_iq4_xs *block = blocks;
    for (size_t b = 0; b < n / BLOCK_K; b++, block++) {
        float scale = format_f16_to_f32(block->scale);
        for (int g = 0; g < 8; g++, out += 32)
            from_table(block_iq4_values, scale * (float)block_iq4_xs_scale(block, g), block->quants + g * 16,
                       out);
    }
}

/* ---- IQ4 from float ---- */

static inline int nearest_iq4(float value)
{
    int entry = 0;
    for (int k = 0; k < 15; k++)
        entry += value > 0.5f * (float)(block_iq4_values[k] + block_iq4_values[k + 1]);
    return entry;
}

static float iq4_error(const float x[BLOCK_SMALL], float scale)
{
    float inverse = block_inverse(scale), error = 0;
    for (int i = 0; i < BLOCK_SMALL; i++) {
        float d = x[i] - scale * (float)block_iq4_values[nearest_iq4(x[i] * inverse)];
        error += d * d;
    }
    return error;
}

/* The scale of least squared error for the entries that `scale` gives. */
static float iq4_solve(const float x[BLOCK_SMALL], float scale)
{
    float inverse = block_inverse(scale), xv = 0, vv = 0;
    for (int i = 0; i < BLOCK_SMALL; i++) {
        float value = (float)block_iq4_values[nearest_iq4(x[i] * inverse)];
        xv += x[i] * value;
        vv += value * value;
    }
    return xv / vv; /* no entry is 0 */
}

/* Of scales that put the largest magnitude near either end of the table. */
static float iq4_fit(const float x[BLOCK_SMALL], float largest)
{
    float best = 0, best_error = INFINITY;
    for (int start = 0; start < 14 && largest > 0; start++) {
        float scale = largest / (113.0f * (0.85f + 0.05f * (float)(start / 2)));
        scale = iq4_solve(x, start & 1 ? -scale : scale);
        float error = iq4_error(x, scale);
        if (error < best_error) {
            best_error = error;
            best = scale;
        }
    }
    return best;
}

static void put_iq4(const float x[BLOCK_SMALL], float scale, uint8_t ret_quants[16])
{
    float inverse = block_inverse(scale);
    for (int i = 0; i < 16; i++)
        ret_quants[i] = (uint8_t)(nearest_iq4(x[i] * inverse) | nearest_iq4(x[i + 16] * inverse) << 4);
}

void iq4_nl_from_float(const float *in, void *blocks, size_t n)
{
    struct block_iq4_nl *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, in += BLOCK_SMALL) {
        float x[BLOCK_SMALL];
        float largest = block_take_finite(in, BLOCK_SMALL, x);
        block->scale = block_half_scale(iq4_fit(x, largest));
        put_iq4(x, format_f16_to_f32(block->scale), block->quants);
    }
}

/* Under the block's scale, the integer near a group's own scale that errs least. */
static int iq4_assign(const float x[BLOCK_SMALL], float wanted, float scale, float *error)
{
    float middle = block_nearest(wanted * block_inverse(scale), -32, 31), best_error = INFINITY;
    int best = 0;
    for (int d = -1; d <= 1; d++) {
        int s = (int)middle + d;
        if (s < -32 || s > 31)
            continue;
        float e = iq4_error(x, scale * (float)s);
        if (e < best_error) {
            best_error = e;
            best = s;
        }
    }
    *error += best_error;
    return best;
}

struct iq4_block {
    uint16_t scale;
    int scales[8];
    float error;
};

static void iq4_assign_all(const float x[BLOCK_K], const float wanted[8], struct iq4_block *block)
{
    block->error = 0;
    for (int g = 0; g < 8; g++)
        block->scales[g] = iq4_assign(x + 32 * g, wanted[g], format_f16_to_f32(block->scale), &block->error);
}

/* The block's scale of least squared error, all integers held; taken if it is better. */
static void iq4_refine(const float x[BLOCK_K], const float wanted[8], struct iq4_block *block)
{
    float scale = format_f16_to_f32(block->scale), xa = 0, aa = 0;
    for (int i = 0; i < BLOCK_K; i++) {
        float inverse = block_inverse(scale * (float)block->scales[i / 32]);
        float a = (float)block->scales[i / 32] * (float)block_iq4_values[nearest_iq4(x[i] * inverse)];
        xa += x[i] * a;
        aa += a * a;
    }
    if (!(aa > 0))
        return;
    struct iq4_block refined = {.scale = block_half_scale(xa / aa)};
    iq4_assign_all(x, wanted, &refined);
    if (refined.error < block->error)
        *block = refined;
}

void iq4_xs_from_float(const float *in, void *blocks, size_t n)
{
    struct block_iq4_xs *out = blocks;
    for (size_t b = 0; b < n / BLOCK_K; b++, out++, in += BLOCK_K) {
        float x[BLOCK_K], wanted[8], largest = 0;
        for (int g = 0; g < 8; g++) {
            wanted[g] = iq4_fit(x + 32 * g, block_take_finite(in + 32 * g, 32, x + 32 * g));
            largest = fabsf(wanted[g]) > fabsf(largest) ? wanted[g] : largest;
        }
        struct iq4_block block = {.scale = block_half_scale(largest / -32)};
        iq4_assign_all(x, wanted, &block);
        iq4_refine(x, wanted, &block);
        memset(out, 0, sizeof *out);
        out->scale = block.scale;
        for (int g = 0; g < 8; g++) {
            int stored = block.scales[g] + 32;
            out->scales_low[g / 2] |= (uint8_t)((stored & 15) << (g % 2 * 4));
            out->scales_high |= (uint16_t)((stored >> 4) << (g * 2));
            put_iq4(x + 32 * g, format_f16_to_f32(block.scale) * (float)block.scales[g],
                    out->quants + 16 * g);
        }
    }
}

/* ---- MXFP4 from float ---- */

static inline int nearest_mxfp4(float value)
{
    int entry = 0;
    for (int k = 0; k < 7; k++)
        entry += fabsf(value) > 0.5f * (float)(block_mxfp4_values[k] + block_mxfp4_values[k + 1]);
    return value < 0 ? entry | 8 : entry;
}

static float mxfp4_error(const float x[BLOCK_SMALL], int exponent)
{
    float scale = block_mxfp4_scale((uint8_t)exponent), inverse = 1 / scale, error = 0;
    for (int i = 0; i < BLOCK_SMALL; i++) {
        float d = x[i] - scale * (float)block_mxfp4_values[nearest_mxfp4(x[i] * inverse)];
        error += d * d;
    }
    return error;
}

/* The largest magnitude is some m · 2^e with m in 0.5 … 1, and the table's largest entry 12 = 0.75 · 2^4: it
 * comes to stand above 8, cut to 12, or above 4. Neither a scale nor its inverse is subnormal. */
void mxfp4_from_float(const float *in, void *blocks, size_t n)
{
    struct block_mxfp4 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, in += BLOCK_SMALL) {
        float x[BLOCK_SMALL];
        int e;
        frexpf(block_take_finite(in, BLOCK_SMALL, x), &e);
        int low = e + 124 < 2 ? 2 : e + 124;
        int best = mxfp4_error(x, low + 1) < mxfp4_error(x, low) ? low + 1 : low;
        block->exponent = (uint8_t)best;
        float inverse = 1 / block_mxfp4_scale(block->exponent);
        for (int i = 0; i < 16; i++)
            block->quants[i] =
                (uint8_t)(nearest_mxfp4(x[i] * inverse) | nearest_mxfp4(x[i + 16] * inverse) << 4);
    }
}
