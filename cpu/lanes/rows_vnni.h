/* SPDX-License-Identifier: MIT */
#ifndef CPU_LANES_ROWS_VNNI_H
#define CPU_LANES_ROWS_VNNI_H

/* A part of rows.h, which includes it: the dot products (portable.h defines each) with instructions that add
 * four products of bytes, or two of words, to every 32-bit lane, for rows of either width. An offset of the
 * weights is subtracted first, by one such instruction on the half sums of the activations. */

/* Σ w · x over n_chunks chunks, on top of `sum`. */
LANES_INLINE rows_i32 rows_add_chunks(rows_i32 sum, const rows_u8 *w, int n_chunks, const int8_t *x)
{
    UNROLLED
    for (int c = 0; c < n_chunks; c++)
        sum = rows_add_bytes(sum, w[c], x + 4 * c);
    return sum;
}

/* −(first · halves[0] + last · halves[1]) in every lane. */
LANES_INLINE rows_i32 rows_taken_off(int first, int last, const int16_t halves[2])
{
    return rows_add_words(rows_i32_splat(0), (-first & 0xffff) | -last * 65536, halves);
}

LANES_INLINE rows_f32 rows_dot_scaled(const rows_u8 w[8], int max_weight, const int8_t *x, rows_i32 factor)
{
    (void)max_weight;
    rows_i32 sum = rows_add_chunks(rows_i32_splat(0), w, 4, x);
    sum += rows_add_chunks(rows_i32_splat(0), w + 4, 4, x + 16);
    return rows_f32_from_i32(sum) * rows_f32_from_i32(factor);
}

LANES_INLINE rows_f32 rows_dot_offset(const rows_u8 w[8], int max_weight, int offset, const int8_t *x,
                                      const int16_t halves[2])
{
    (void)max_weight;
    rows_i32 sum = rows_add_chunks(rows_taken_off(offset, offset, halves), w, 8, x);
    return rows_f32_from_i32(sum);
}

LANES_INLINE rows_f32 rows_dot_signed(const rows_u8 w[8], const int8_t *x, const int16_t halves[2])
{
    rows_u8 raised[8]; /* w + 128 */
    UNROLLED
    for (int c = 0; c < 8; c++)
        raised[c] = w[c] ^ 0x80;
    return rows_dot_offset(raised, 255, 128, x, halves);
}

LANES_INLINE rows_f32 rows_dot_halves(const rows_u8 w[8], int max_weight, int offset, const int8_t *x,
                                      const int16_t halves[2], const rows_i32 factors[2])
{
    (void)max_weight;
    rows_i32 first = rows_add_chunks(rows_taken_off(offset, 0, halves), w, 4, x);
    rows_i32 last = rows_add_chunks(rows_taken_off(0, offset, halves), w + 4, 4, x + 16);
    return rows_f32_fma(rows_f32_from_i32(last), rows_f32_from_i32(factors[1]),
                        rows_f32_from_i32(first) * rows_f32_from_i32(factors[0]));
}

#endif
