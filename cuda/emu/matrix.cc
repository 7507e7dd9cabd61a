/* SPDX-License-Identifier: MIT */
/* Warp matrix products: made once for all 32 lanes, when the last has come. A lane gives the address of its
 * registers, which lie on its stack while it waits.
 *
 * With g = lane / 4, t = lane % 4 and p values to a register: a[i] holds row g + 8 (i % 2), columns t p + 4 p
 * (i / 2) and on; b[i] rows t p + 4 p i and on of column g; d[i] row g + 8 (i / 2), column 2 t + i % 2. */

#include "cuda/emu/emu.h"

#define ROWS    16
#define COLUMNS 8

/* Compiled for wider registers too; the processor decides, and the results are the same. */
#if defined __x86_64__ && defined __GLIBC__
#define FOR_EACH_MACHINE __attribute__((target_clones("default", "avx2")))
#else
#define FOR_EACH_MACHINE
#endif

#if defined(__x86_64__) && !defined(__FMA__)
const bool emu_has_fma = __builtin_cpu_supports("fma");
#endif

static const struct emu_operands *operands_of(const uint64_t *given, uint32_t lane)
{
    return (const struct emu_operands *)(uintptr_t)given[lane];
}

static uint32_t row_of(uint32_t lane, uint32_t i)
{
    return lane / 4 + 8 * i;
}

static uint32_t column_of(uint32_t lane)
{
    return lane % 4 * 2;
}

template <class T> static void take_sums(const uint64_t *given, T ret_d[ROWS][COLUMNS])
{
    for (uint32_t lane = 0; lane < 32; lane++)
        for (uint32_t i = 0; i < 4; i++)
            ret_d[row_of(lane, i / 2)][column_of(lane) + i % 2] = ((const T *)operands_of(given, lane)->d)[i];
}

template <class T> static void give_sums(const uint64_t *given, const T d[ROWS][COLUMNS])
{
    for (uint32_t lane = 0; lane < 32; lane++)
        for (uint32_t i = 0; i < 4; i++)
            ((T *)operands_of(given, lane)->d)[i] = d[row_of(lane, i / 2)][column_of(lane) + i % 2];
}

/* ---- int8: 16 × 32 by 32 × 8 ---- */

/* In 16 bits, which a processor multiplies and adds in pairs. */
static void widen(const int8_t *bytes, int16_t *ret, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ret[i] = bytes[i];
}

FOR_EACH_MACHINE uint64_t emu_mma_s8(const uint64_t given[32])
{
    int8_t a_bytes[ROWS][32], b_bytes[COLUMNS][32];
    int16_t a[ROWS][32], b[COLUMNS][32];
    uint32_t d[ROWS][COLUMNS];
    for (uint32_t lane = 0; lane < 32; lane++) {
        const struct emu_operands *from = operands_of(given, lane);
        for (uint32_t i = 0; i < 4; i++)
            memcpy(&a_bytes[row_of(lane, i % 2)][lane % 4 * 4 + i / 2 * 16], &from->a[i], 4);
        for (uint32_t i = 0; i < 2; i++)
            memcpy(&b_bytes[lane / 4][lane % 4 * 4 + i * 16], &from->b[i], 4);
    }
    widen(a_bytes[0], a[0], ROWS * 32);
    widen(b_bytes[0], b[0], COLUMNS * 32);
    take_sums(given, d);
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t column = 0; column < COLUMNS; column++) {
            int32_t sum = 0; /* at most 2^19 */
            for (uint32_t k = 0; k < 32; k++)
                sum += (int32_t)a[row][k] * (int32_t)b[column][k];
            d[row][column] += (uint32_t)sum;
        }
    give_sums(given, d);
    return 0;
}

/* ---- f16: 16 × 16 by 16 × 8 ---- */

/* Two to a register. */
static void widen(const uint16_t *halves, float *ret, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ret[i] = format_f16_to_f32(halves[i]);
}

FOR_EACH_MACHINE uint64_t emu_mma_f16(const uint64_t given[32])
{
    uint16_t a_halves[ROWS][16], b_halves[16][COLUMNS];
    float a[ROWS][16], b[16][COLUMNS], d[ROWS][COLUMNS];
    for (uint32_t lane = 0; lane < 32; lane++) {
        const struct emu_operands *from = operands_of(given, lane);
        for (uint32_t i = 0; i < 4; i++)
            memcpy(&a_halves[row_of(lane, i % 2)][lane % 4 * 2 + i / 2 * 8], &from->a[i], 4);
        for (uint32_t i = 0; i < 4; i++)
            b_halves[lane % 4 * 2 + i / 2 * 8 + i % 2][lane / 4] = (uint16_t)(from->b[i / 2] >> i % 2 * 16);
    }
    widen(a_halves[0], a[0], ROWS * 16);
    widen(b_halves[0], b[0], 16 * COLUMNS);
    take_sums(given, d);
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t k = 0; k < 16; k++) /* an output's sum goes on from k to k */
            for (uint32_t column = 0; column < COLUMNS; column++)
                d[row][column] += a[row][k] * b[k][column];
    give_sums(given, d);
    return 0;
}
