/* SPDX-License-Identifier: MIT */
/* What the pool holds of a layer, and what it should: kv.h and the types behind it, written a second time. */

#include "cuda/check/inspect_parts.h"

#include <math.h>
#include <string.h>

#include "cuda/check/inspect_compare.h"
#include "gguf/format.h"

#define SCALED 32 /* dims that share a scale */

/* What a type does to numbers that share a scale. */
struct rounding {
    double steps;    /* of the scale, to the number farthest from zero */
    double top;      /* beyond this part of that number may be no step */
    double off_top;  /* steps that a number is off there */
    double off_else; /* and elsewhere */
};

static struct rounding rounding_of(enum backend_kv_type type)
{
    if (type == BACKEND_KV_Q4) /* −8 … 7 */
        return (struct rounding){8, 7.4 / 8, 1.01, 0.501};
    return (struct rounding){127, 1, 0.501, 0.501};
}

static uint32_t padded_of(const struct device_kv *kv)
{
    uint32_t unit = 8;
    if (kv->type != BACKEND_KV_F16)
        unit = kv->type == BACKEND_KV_Q8 ? 16 : 32;
    return (kv->dim + unit - 1) / unit * unit;
}

/* Of a part, the keys or the values of one head in a block: its numbers, and its scales behind them. */
static size_t number_bytes(const struct device_kv *kv)
{
    const size_t n = (size_t)padded_of(kv) * 32;
    if (kv->type == BACKEND_KV_F16)
        return n * 2;
    return kv->type == BACKEND_KV_Q8 ? n : n / 2;
}

static uint32_t n_scales(const struct device_kv *kv)
{
    return kv->type == BACKEND_KV_F16 ? 0 : (kv->dim + SCALED - 1) / SCALED * 32;
}

static size_t part_bytes(const struct device_kv *kv)
{
    return number_bytes(kv) + n_scales(kv) * sizeof(uint16_t);
}

/* Where a part has position `at`, dim d: which of its numbers, or in 4 bits which byte. */
static size_t place_of(const struct device_kv *kv, bool value, uint32_t at, uint32_t d)
{
    const size_t padded = padded_of(kv);
    if (kv->type == BACKEND_KV_Q4) /* d and d + 4 are in one byte */
        return value ? (at / 8 * padded / 2 + d / 8 * 4 + d % 4) * 8 + at % 8
                     : (size_t)(d / 8 * 32 + at) * 4 + d % 4;
    return value ? (at / 8 * padded + d) * 8 + at % 8 : (size_t)(d / 8 * 32 + at) * 8 + d % 8;
}

static uint32_t shift_of(uint32_t d) /* in 4 bits */
{
    return d % 8 < 4 ? 0 : 4;
}

static float read_number(const struct device_kv *kv, const uint8_t *part, bool value, uint32_t at, uint32_t d)
{
    const size_t place = place_of(kv, value, at, d);
    if (kv->type == BACKEND_KV_F16)
        return format_f16_to_f32(((const uint16_t *)part)[place]);
    const uint16_t *scales = (const uint16_t *)(part + number_bytes(kv)); /* [⌈dim / 32⌉][32 positions] */
    const int quant =
        kv->type == BACKEND_KV_Q8 ? ((const int8_t *)part)[place] : (part[place] >> shift_of(d) & 15) - 8;
    return format_f16_to_f32(scales[d / SCALED * 32 + at]) * (float)quant;
}

/* A layer's part of a block, from look->block, into keys and values of its positions. */
static void read_block(struct inspection *look, const struct device_kv *kv, uint32_t block)
{
    const uint32_t dim = kv->dim, stride = kv->n_heads * dim;
    for (uint32_t head = 0; head < kv->n_heads; head++) {
        const uint8_t *keys = look->block + head * 2 * part_bytes(kv), *values = keys + part_bytes(kv);
        for (uint32_t at = 0; at < 32; at++) {
            const size_t to = (size_t)(block * 32 + at) * stride + head * dim;
            for (uint32_t d = 0; d < dim; d++) {
                look->keys[to + d] = read_number(kv, keys, false, at, d);
                look->values[to + d] = read_number(kv, values, true, at, d);
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

/* Over what was zeros. */
static void write_number(const struct device_kv *kv, uint8_t *part, bool value, uint32_t at, uint32_t d,
                         int number)
{
    const size_t place = place_of(kv, value, at, d);
    if (kv->type == BACKEND_KV_F16)
        ((uint16_t *)part)[place] = format_f32_to_f16((float)number / 127);
    else if (kv->type == BACKEND_KV_Q8)
        ((int8_t *)part)[place] = (int8_t)number;
    else
        part[place] |= (uint8_t)((number / 16 + 8) << shift_of(d));
}

/* As read_block reads it; dims that are padding are zero. */
static void write_block(struct inspection *look, const struct device_kv *kv, uint32_t block)
{
    const uint16_t scale = format_f32_to_f16((float)(1 / rounding_of(kv->type).steps));
    memset(look->block, 0, kv->layer_bytes);
    for (uint32_t part = 0; part < 2 * kv->n_heads; part++) {
        uint8_t *to = look->block + part * part_bytes(kv);
        for (uint32_t at = 0; at < 32; at++)
            for (uint32_t d = 0; d < padded_of(kv); d++) {
                const uint32_t of = ((block * 32 + at) * 2 * kv->n_heads + part) * kv->dim + d;
                write_number(kv, to, part % 2, at, d, d < kv->dim ? invent(of) : 0);
            }
        for (uint32_t i = 0; i < n_scales(kv); i++)
            ((uint16_t *)(to + number_bytes(kv)))[i] = scale;
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

/* Numbers that share a scale are so many steps of it off, beside what they were off before they were rounded
 * and what the scale is, whose smallest steps are 2^-24. */
static int compare_scaled(struct inspection *look, const struct inspect_site *site, const float *found,
                          uint32_t d, uint32_t n, double before)
{
    const struct rounding rounding = rounding_of(look->pass->pools->layers[site->layer].kv.type);
    const double *expected = look->expected + d, most = magnitude(expected, n);
    const double least = before + rounding.steps / (1 << 25);
    for (uint32_t i = 0; i < n; i++) /* spoils the others too */
        if (isnan(expected[i]))
            return inspect_differ(look, site, d + i, (double)found[d + i], expected[i]);
    for (uint32_t i = 0; i < n; i++) {
        const bool at_top = fabs(expected[i]) > rounding.top * most;
        const double steps = at_top ? rounding.off_top : rounding.off_else;
        if (!inspect_agree((double)found[d + i], expected[i], 1, steps * most / rounding.steps + least))
            return inspect_differ(look, site, d + i, (double)found[d + i], expected[i]);
    }
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
