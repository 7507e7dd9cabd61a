/* SPDX-License-Identifier: MIT */
/* What the pool holds of a layer, and what it should: kv.h and the types behind it, written a second time. */

#include "cuda/check/inspect_parts.h"

#include <math.h>
#include <string.h>

#include "cuda/check/inspect_compare.h"
#include "gguf/format.h"

#define SCALED 32            /* dims that share a scale */
#define OFF_Q8 (0.501 / 127) /* half a step, of the largest of those */
#define LEAST_OFF                                                                                            \
    (127.0 / (1 << 25)) /* scales as small as that are rounded to the next of f16's smallest                 \
                         */

/* Where a part, the keys or the values of one head in a block, has position `at`, dim d. */
static size_t key_place(uint32_t at, uint32_t d)
{
    return (d / 8 * 32 + at) * 8 + d % 8;
}

static size_t value_place(uint32_t padded, uint32_t at, uint32_t d)
{
    return (at / 8 * padded + d) * 8 + at % 8;
}

static float read_half(const uint8_t *part, size_t place)
{
    return format_f16_to_f32(((const uint16_t *)part)[place]);
}

/* Scales stand behind the quants, [⌈dim / 32⌉][32 positions]. */
static float read_q8(const uint8_t *part, uint32_t padded, size_t place, uint32_t at, uint32_t d)
{
    const uint16_t *scales = (const uint16_t *)(part + (size_t)padded * 32);
    return format_f16_to_f32(scales[d / SCALED * 32 + at]) * ((const int8_t *)part)[place];
}

/* A layer's part of a block, from look->block, into keys and values of its positions. */
static void read_block(struct inspection *look, const struct device_kv *kv, uint32_t block)
{
    const bool q8 = kv->type == BACKEND_KV_Q8;
    const uint32_t dim = kv->dim, unit = q8 ? 16 : 8, padded = (dim + unit - 1) / unit * unit;
    const uint32_t stride = kv->n_heads * dim;
    const size_t part_bytes = q8 ? padded * 32 + (dim + SCALED - 1) / SCALED * 64 : padded * 64;
    for (uint32_t head = 0; head < kv->n_heads; head++) {
        const uint8_t *keys = look->block + head * 2 * part_bytes, *values = keys + part_bytes;
        for (uint32_t at = 0; at < 32; at++) {
            const size_t to = (size_t)(block * 32 + at) * stride + head * dim;
            for (uint32_t d = 0; d < dim; d++) {
                const size_t key = key_place(at, d), value = value_place(padded, at, d);
                look->keys[to + d] = q8 ? read_q8(keys, padded, key, at, d) : read_half(keys, key);
                look->values[to + d] = q8 ? read_q8(values, padded, value, at, d) : read_half(values, value);
            }
        }
    }
}

/* The sequence has blocks 0, 1 … of each group, and so those are where its positions are. */
int inspect_bring_kv(struct inspection *look, uint32_t layer)
{
    const struct device_kv *kv = &look->pass->pools->layers[layer].kv;
    const uint32_t n = backend_blocks_for(look->first + look->n_rows);
    int r = 0;
    for (uint32_t block = 0; block < n && r == 0; block++) {
        r = inspection_bring(look, kv->pool + block * kv->block_bytes + kv->offset, kv->layer_bytes,
                             look->block);
        if (r == 0)
            read_block(look, kv, block);
    }
    return r;
}

/* ---- made up ---- */

/* −1 … 1 in steps of 1/127, without any order that one sees. */
static int invent(uint32_t of)
{
    uint32_t x = (of + 1) * 2654435761u;
    x = (x ^ x >> 15) * 2246822519u;
    return (int)((x ^ x >> 13) % 255) - 127;
}

static void write_number(uint8_t *part, size_t place, bool q8, int number)
{
    if (q8)
        ((int8_t *)part)[place] = (int8_t)number;
    else
        ((uint16_t *)part)[place] = format_f32_to_f16((float)number / 127);
}

/* As read_block reads it; dims that are padding are zero. */
static void write_block(struct inspection *look, const struct device_kv *kv, uint32_t block)
{
    const bool q8 = kv->type == BACKEND_KV_Q8;
    const uint32_t dim = kv->dim, unit = q8 ? 16 : 8, padded = (dim + unit - 1) / unit * unit;
    const uint32_t n_scales = q8 ? (dim + SCALED - 1) / SCALED * 32 : 0;
    const size_t part_bytes = (size_t)padded * (q8 ? 32 : 64) + n_scales * 2;
    const uint16_t scale = format_f32_to_f16(1.0f / 127);
    memset(look->block, 0, kv->layer_bytes);
    for (uint32_t part = 0; part < 2 * kv->n_heads; part++) {
        uint8_t *to = look->block + part * part_bytes;
        for (uint32_t at = 0; at < 32; at++)
            for (uint32_t d = 0; d < dim; d++)
                write_number(to, part % 2 ? value_place(padded, at, d) : key_place(at, d), q8,
                             invent(((block * 32 + at) * 2 * kv->n_heads + part) * dim + d));
        for (uint32_t i = 0; i < n_scales; i++)
            ((uint16_t *)(to + (size_t)padded * 32))[i] = scale;
    }
}

int inspection_invent_kv(struct inspection *look, uint32_t layer, uint32_t n_blocks)
{
    const struct device_kv *kv = &look->pass->pools->layers[layer].kv;
    int r = 0;
    for (uint32_t block = 0; block < n_blocks && r == 0; block++) {
        write_block(look, kv, block);
        r = inspection_send(look, look->block, kv->layer_bytes,
                            kv->pool + block * kv->block_bytes + kv->offset);
    }
    return r;
}

/* ---- what is compared ---- */

static double magnitude(const double *x, uint32_t n)
{
    double most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

/* Numbers that share a scale are half a step of it off, beside what they were off before they were rounded.
 */
static int compare_scaled(struct inspection *look, const struct inspect_site *site, const float *found,
                          uint32_t d, uint32_t n, double before)
{
    const double *expected = look->expected + d;
    const double off = OFF_Q8 * magnitude(expected, n) + before + LEAST_OFF;
    for (uint32_t i = 0; i < n; i++) /* spoils the others too */
        if (isnan(expected[i]))
            return inspect_differ(look, site, d + i, (double)found[d + i], expected[i]);
    for (uint32_t i = 0; i < n; i++)
        if (!inspect_agree((double)found[d + i], expected[i], 1, off))
            return inspect_differ(look, site, d + i, (double)found[d + i], expected[i]);
    return 0;
}

int inspect_stored(struct inspection *look, const struct inspect_site *site, const float *found)
{
    const struct device_kv *kv = &look->pass->pools->layers[site->layer].kv;
    struct inspect_site stored = *site;
    for (uint32_t d = 0; d < kv->dim; d++) {
        const double x = look->expected[d];
        look->expected[d] = x > 65504 ? 65504 : x < -65504 ? -65504 : x;
    }
    stored.off = OFF_HALF;
    if (kv->type == BACKEND_KV_F16)
        return inspect_compare(look, &stored, found, look->expected, kv->dim);
    const double before = site->off * magnitude(look->expected, kv->dim);
    int r = 0;
    for (uint32_t d = 0; d < kv->dim && r == 0 && !look->broken; d += SCALED) {
        const uint32_t left = kv->dim - d;
        r = compare_scaled(look, &stored, found, d, left < SCALED ? left : SCALED, before);
    }
    return r;
}
