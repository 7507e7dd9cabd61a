/* SPDX-License-Identifier: MIT */
/* Loops without branches over pieces of a row, for the compiler to make vectors of: once for any machine, and
 * where there is such a choice once for AVX2 and once for AVX-512. Sums are taken in LANES running sums of a
 * piece, whatever the registers hold, and no product is fused with a sum (-ffp-contract=off). */

#include "engine/sampling/logits.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/sampling/units.h"

#define LANES 16
#define PIECE LOGITS_PIECE

/* A sanitizer's code is not ready yet when the loader asks which one to take. */
#if defined __x86_64__ && defined __GLIBC__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define FOR_EACH_MACHINE __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define FOR_EACH_MACHINE
#endif

static inline float finite_or(float logit, float otherwise)
{
    return fabsf(logit) <= FLT_MAX ? logit : otherwise;
}

FOR_EACH_MACHINE
float logits_best(const float *logits, uint32_t n)
{
    float lanes[LANES], best = -INFINITY;
    for (int j = 0; j < LANES; j++)
        lanes[j] = -INFINITY;
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const float logit = finite_or(logits[i + j], -INFINITY);
            lanes[j] = logit > lanes[j] ? logit : lanes[j];
        }
    for (int j = 0; j < LANES; j++)
        best = lanes[j] > best ? lanes[j] : best;
    for (; i < n; i++)
        best = finite_or(logits[i], -INFINITY) > best ? logits[i] : best;
    return best;
}

FOR_EACH_MACHINE
uint32_t logits_find(const float *logits, uint32_t n, float value)
{
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        uint32_t found = 0;
        for (int j = 0; j < LANES; j++)
            found |= logits[i + j] == value;
        if (found)
            break;
    }
    for (; i < n; i++)
        if (logits[i] == value)
            return i;
    return n;
}

/* e^x for x ≤ 0: 2^(whole part of x / ln 2) times a polynomial of the rest r, |r| ≤ ln 2 / 2, which is
 * Taylor's to r⁶ / 720 and so off by less than 2 · 10⁻⁷. Below 2^−126 it is 0. */
static inline float exp_of(float x)
{
    x = x < -104 ? -104 : x;
    const float whole = rintf(x * 1.44269504f);
    const float r = (x - whole * 0.693145752f) - whole * 1.42860677e-6f; /* ln 2 in two parts */
    float p = 1.f / 720;
    p = p * r + 1.f / 120;
    p = p * r + 1.f / 24;
    p = p * r + 1.f / 6;
    p = p * r + 0.5f;
    p = p * r + 1;
    p = p * r + 1;
    const int32_t exponent = (int32_t)(whole < -127 ? -127 : whole);
    const uint32_t bits = (uint32_t)(exponent + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* Of a whole piece, in LANES running sums. */
static inline double sum_of_piece(const float logits[PIECE], float best)
{
    float sums[LANES] = {0};
    double sum = 0;
    for (int i = 0; i < PIECE; i += LANES)
        for (int j = 0; j < LANES; j++)
            sums[j] += exp_of(finite_or(logits[i + j], -INFINITY) - best);
    for (int j = 0; j < LANES; j++)
        sum += (double)sums[j];
    return sum;
}

FOR_EACH_MACHINE
double logits_sum_exp(const float *logits, uint32_t n, float best)
{
    double sum = 0;
    uint32_t at = 0;
    for (; at + PIECE <= n; at += PIECE)
        sum += sum_of_piece(logits + at, best);
    float last[PIECE];
    for (uint32_t i = 0; i < PIECE; i++)
        last[i] = at + i < n ? logits[at + i] : -INFINITY;
    return at < n ? sum + sum_of_piece(last, best) : sum;
}

/* ---- masses ---- */

/* expf by libc is off by 0.002 units of the last place beyond what rounding costs, which is 2.4 · 10⁻¹⁰ of
 * it, and power_of by less than 10⁻¹⁰: where all this much up and down is rounded alike, so is what expf
 * makes. */
#define DOUBT 5e-10

/* 2^z for −1000 ≤ z ≤ 0 to 5.6 · 10⁻¹¹ of it: 2^(whole part) times the polynomial of degree 7 that meets 2^r,
 * for |r| ≤ ½, at the zeros of Chebyshev's polynomial of degree 8. */
static inline double power_of(double z)
{
    const double to_whole = 0x1.8p52; /* added, it leaves the whole part in the lowest bits */
    const double shifted = z + to_whole, r = z - (shifted - to_whole);
    uint64_t bits, whole;
    double p = 1.5303700711365693e-05;
    p = p * r + 0.00015469729214118296;
    p = p * r + 0.0013333478473685416;
    p = p * r + 0.009618025613318034;
    p = p * r + 0.055504109063258665;
    p = p * r + 0.24022651213498092;
    p = p * r + 0.69314718055683244;
    p = p * r + 0.99999999995956179;
    memcpy(&whole, &shifted, sizeof whole);
    memcpy(&bits, &p, sizeof bits);
    bits += whole << 52; /* onto the exponent */
    memcpy(&p, &bits, sizeof p);
    return p;
}

static inline float exponent_of(float logit, float best, float temperature)
{
    const float x = (finite_or(logit, -INFINITY) - best) / temperature;
    return x < -100 ? -100 : x; /* no mass either way */
}

/* ⌊x⌋ of 0 ≤ x ≤ 2⁴⁰; from 2²³ on floats are whole. */
static inline void whole_parts(const float x[PIECE], float ret_whole[PIECE])
{
    float small[PIECE];
    for (uint32_t i = 0; i < PIECE; i++)
        small[i] = x[i] < 0x1p23f ? x[i] : 0x1p23f;
    for (uint32_t i = 0; i < PIECE; i++)
        ret_whole[i] = (float)(int32_t)small[i] + (x[i] - small[i]);
}

/* Of a whole piece; ret_unsure[i]: it may be another float. */
static inline void masses_of_piece(const float logits[PIECE], float best, float temperature,
                                   float ret_masses[PIECE], uint8_t ret_unsure[PIECE])
{
    double z[PIECE];
    float x[PIECE], low[PIECE], high[PIECE];
    uint32_t unsure[PIECE];
    for (uint32_t i = 0; i < PIECE; i++)
        x[i] = exponent_of(logits[i], best, temperature);
    for (uint32_t i = 0; i < PIECE; i++)
        z[i] = power_of((double)x[i] * 1.4426950408889634); /* 1 / ln 2 */
    for (uint32_t i = 0; i < PIECE; i++) {
        low[i] = (float)(z[i] * (1 - DOUBT)) * (float)MASS_ONE;
        high[i] = (float)(z[i] * (1 + DOUBT)) * (float)MASS_ONE;
    }
    whole_parts(low, low);
    whole_parts(high, ret_masses);
    for (uint32_t i = 0; i < PIECE; i++)
        unsure[i] = low[i] != ret_masses[i];
    for (uint32_t i = 0; i < PIECE; i++)
        ret_unsure[i] = (uint8_t)unsure[i];
}

/* Of a piece: exact, for no sum of one reaches 2⁵³. */
static inline uint64_t sum_of_masses(const float masses[PIECE])
{
    double sums[LANES] = {0}, sum = 0;
    for (uint32_t i = 0; i < PIECE; i += LANES)
        for (int j = 0; j < LANES; j++)
            sums[j] += (double)masses[i + j];
    for (int j = 0; j < LANES; j++)
        sum += sums[j];
    return (uint64_t)sum;
}

/* A piece of n ids, filled up with such as are not there. */
static inline const float *whole_piece(const float *floats, uint32_t n, float filling, float room[PIECE])
{
    if (n >= PIECE)
        return floats;
    for (uint32_t i = 0; i < PIECE; i++)
        room[i] = i < n ? floats[i] : filling;
    return room;
}

FOR_EACH_MACHINE
uint64_t logits_masses(const float *logits, uint32_t n, float best, float temperature, float *ret_masses)
{
    uint64_t total = 0;
    uint8_t unsure[PIECE];
    float room[PIECE], masses[PIECE];
    for (uint32_t at = 0; at < n; at += PIECE) {
        const float *piece = whole_piece(logits + at, n - at, -INFINITY, room);
        masses_of_piece(piece, best, temperature, masses, unsure);
        for (uint32_t i = 0; i < PIECE; i += 8) {
            uint64_t eight;
            memcpy(&eight, unsure + i, sizeof eight);
            for (uint32_t j = i; eight && j < i + 8; j++)
                if (unsure[j])
                    masses[j] = truncf(expf(exponent_of(piece[j], best, temperature)) * (float)MASS_ONE);
        }
        total += sum_of_masses(masses);
        memcpy(ret_masses + at, masses, (n - at < PIECE ? n - at : PIECE) * sizeof *masses);
    }
    return total;
}

FOR_EACH_MACHINE
struct logits_part logits_from(const float *logits, const float *masses, uint32_t n, float least)
{
    struct logits_part part = {.least = least};
    float x_room[PIECE], mass_room[PIECE], in[PIECE];
    for (uint32_t at = 0; at < n; at += PIECE) {
        const float *x = whole_piece(logits + at, n - at, -INFINITY, x_room),
                    *mass = whole_piece(masses + at, n - at, 0, mass_room);
        uint32_t counts[LANES] = {0};
        for (uint32_t i = 0; i < PIECE; i++) {
            const float m = mass[i];
            in[i] = x[i] >= least ? m : 0;
        }
        for (uint32_t i = 0; i < PIECE; i += LANES)
            for (int j = 0; j < LANES; j++)
                counts[j] += (x[i + j] >= least) & (x[i + j] <= FLT_MAX);
        for (int j = 0; j < LANES; j++)
            part.n += counts[j];
        part.mass += sum_of_masses(in);
    }
    return part;
}

FOR_EACH_MACHINE
uint32_t logits_between(const float *logits, uint32_t n, float least, float below, uint32_t *ret_indices)
{
    uint32_t found = 0, in[PIECE];
    uint8_t is_in[PIECE];
    float room[PIECE];
    const float most = below <= FLT_MAX ? below : FLT_MAX;
    for (uint32_t at = 0; at < n; at += PIECE) {
        const float *x = whole_piece(logits + at, n - at, -INFINITY, room);
        for (uint32_t i = 0; i < PIECE; i++)
            in[i] = (x[i] >= least) & (x[i] <= most);
        for (uint32_t i = 0; i < PIECE; i++)
            is_in[i] = (uint8_t)in[i];
        for (uint32_t i = 0; i < PIECE; i += 8) {
            uint64_t eight;
            memcpy(&eight, is_in + i, sizeof eight);
            for (uint32_t j = i; eight && j < i + 8; j++)
                if (is_in[j] && x[j] < below)
                    ret_indices[found++] = at + j;
        }
    }
    return found;
}

/* ---- the contest ---- */

/* The words of consecutive blocks: word w of block b is words[w][b]. As philox4x32, lane by lane. */
static inline void draw_words(const struct contest *contest, uint32_t first_block,
                              uint32_t words[4][PIECE / 4])
{
    uint32_t *restrict a = words[0], *restrict b = words[1], *restrict c = words[2], *restrict d = words[3];
    uint32_t k0 = (uint32_t)contest->seed, k1 = (uint32_t)(contest->seed >> 32);
    for (uint32_t i = 0; i < PIECE / 4; i++) {
        a[i] = (uint32_t)contest->position;
        b[i] = (uint32_t)(contest->position >> 32);
        c[i] = first_block + i;
        d[i] = 0;
    }
    for (int round = 0; round < 10; round++) {
        for (uint32_t i = 0; i < PIECE / 4; i++) {
            const uint64_t p = 0xD2511F53ull * a[i], q = 0xCD9E8D57ull * c[i];
            a[i] = (uint32_t)(q >> 32) ^ b[i] ^ k0;
            c[i] = (uint32_t)(p >> 32) ^ d[i] ^ k1;
            b[i] = (uint32_t)q;
            d[i] = (uint32_t)p;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* At least 2^y, at most 1.07 times that, for y ≤ 1: the bits of a float are its logarithm, with straight
 * lines between the powers of two, which lie above the curve. Below 2^−127 it is 0. */
static inline float power_above(float y)
{
    const float scaled = (y + 127) * 8388608.f;
    const int32_t bits = (int32_t)(scaled > 0 ? scaled : 0);
    float power;
    memcpy(&power, &bits, sizeof power);
    return power * 1.01f; /* what was rounded away */
}

/* To be above the highest score, x + noise, noise = −log(−log u), needs 1 − u < −log u < e^x · odds. Both
 * sides are compared after rounding in favour of the id: 1 − u down to 24 bits, the power up. */
FOR_EACH_MACHINE
void logits_contenders(const float *logits, uint32_t first, uint32_t n, const struct contest *contest,
                       uint8_t ret_may[PIECE])
{
    uint32_t words[4][PIECE / 4];
    float x[PIECE], least[PIECE];
    uint32_t may[PIECE];
    const float scale = fminf(1.44269504f / contest->temperature, FLT_MAX), best = contest->best,
                odds = (float)(contest->odds < 1e30 ? contest->odds * 1.01 : 1e30);
    draw_words(contest, first / 4, words);
    for (uint32_t i = 0; i < PIECE / 4; i++)
        for (int w = 0; w < 4; w++)
            least[i * 4 + w] = (float)(int32_t)(~words[w][i] >> 8) * 0x1p-24f;
    for (uint32_t i = 0; i < PIECE; i++)
        x[i] = i < n ? finite_or(logits[i], -INFINITY) : -INFINITY;
    for (uint32_t i = 0; i < PIECE; i++)
        may[i] = (least[i] <= power_above((x[i] - best) * scale) * odds) & (x[i] >= contest->least);
    for (uint32_t i = 0; i < PIECE; i++)
        ret_may[i] = (uint8_t)may[i];
}
