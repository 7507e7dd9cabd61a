/* SPDX-License-Identifier: MIT */
#ifndef GGUF_FORMATS_H
#define GGUF_FORMATS_H

/* The only list of number formats that models may have. Everything that a format needs is named after its id,
 * and tables are generated from the list, so a row that lacks something does not link:
 *
 *     ID_to_float, ID_from_float           plain conversions (gguf/format_*.c)
 *     struct packed_ID, pack_ID, unpack_ID eight rows as the CPU reads them (cpu/kernels/packing_*.c)
 *     multiply_ID                          their product (cpu/kernels/blocks.c, superblocks.c)
 *     fill_ID                              random blocks (model/convert/random_blocks.c)
 *     layout_ID, pack_ID                   planes as a GPU's kernels read them (cuda/kernels/layout.c)
 *     block_kind<FORMAT_NAME>              decoding of these by kernels (cuda/kernels/weight_blocks.h)
 *     ID_value                             one of its elements (cuda/kernels/embed.cu)
 *
 * The tests of formats, packings, products and random blocks run for every row. ROW takes NAME, ID, the
 * number in files, the elements of a block, and its bytes. */

#define FORMATS(ROW)                                                                                         \
    ROW(F32, f32, 0, 1, 4)                                                                                   \
    ROW(F16, f16, 1, 1, 2)                                                                                   \
    ROW(BF16, bf16, 30, 1, 2)                                                                                \
    ROW(Q4_0, q4_0, 2, 32, 18)                                                                               \
    ROW(Q4_1, q4_1, 3, 32, 20)                                                                               \
    ROW(Q5_0, q5_0, 6, 32, 22)                                                                               \
    ROW(Q5_1, q5_1, 7, 32, 24)                                                                               \
    ROW(Q8_0, q8_0, 8, 32, 34)                                                                               \
    ROW(Q2_K, q2_k, 10, 256, 84)                                                                             \
    ROW(Q3_K, q3_k, 11, 256, 110)                                                                            \
    ROW(Q4_K, q4_k, 12, 256, 144)                                                                            \
    ROW(Q5_K, q5_k, 13, 256, 176)                                                                            \
    ROW(Q6_K, q6_k, 14, 256, 210)                                                                            \
    ROW(IQ4_NL, iq4_nl, 20, 32, 18)                                                                          \
    ROW(IQ4_XS, iq4_xs, 23, 256, 136)                                                                        \
    ROW(MXFP4, mxfp4, 39, 32, 17)

#endif
