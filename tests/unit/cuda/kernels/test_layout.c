/* SPDX-License-Identifier: MIT */
/* Planes of weights, read back as layout.h describes them and not as layout.c makes them. */

#include "cuda/kernels/layout.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/random_weights.h"
#include "gguf/blocks.h"

#define ROWS 3

struct packed {
    const struct layout *layout;
    uint32_t n_columns;
    uint8_t *file, *memory; /* ROWS rows; all planes */
    void *planes[LAYOUT_PLANES];
};

static struct packed pack(enum format format, uint32_t n_columns)
{
    struct packed packed = {.layout = layout_of(format), .n_columns = n_columns};
    size_t bytes = layout_bytes(packed.layout, ROWS, n_columns);
    packed.file = random_row(format, (size_t)ROWS * n_columns);
    packed.memory = aligned_alloc(256, bytes);
    memset(packed.memory, 0xa5, bytes);
    layout_place(packed.layout, ROWS, n_columns, packed.memory, packed.planes);
    uint8_t *planes[LAYOUT_PLANES];
    for (int p = 0; p < LAYOUT_PLANES; p++)
        planes[p] = packed.planes[p];
    layout_pack(format, packed.file, ROWS, n_columns, planes);
    return packed;
}

static void release(struct packed *packed)
{
    free(packed->file);
    free(packed->memory);
}

static const uint8_t *plane(const struct packed *packed, uint32_t p, uint32_t row)
{
    return (const uint8_t *)packed->planes[p] + row * layout_row_bytes(packed->layout, p, packed->n_columns);
}

static float half_at(const uint8_t *plane, uint32_t i)
{
    uint16_t half;
    memcpy(&half, plane + 2 * (size_t)i, 2);
    return format_f16_to_f32(half);
}

/* The byte `at` of a plane's part for block k / 32, which has `each` bytes. */
static int byte_of(const struct packed *packed, uint32_t p, uint32_t row, uint32_t k, uint32_t each,
                   uint32_t at)
{
    return plane(packed, p, row)[k / 32 * each + at];
}

/* Of column k: the low four bits, or two. */
static int nibble_at(const struct packed *packed, uint32_t row, uint32_t k)
{
    return byte_of(packed, 0, row, k, 16, k % 16) >> (k % 32 < 16 ? 0 : 4) & 15;
}

static int pair_at(const struct packed *packed, uint32_t p, uint32_t row, uint32_t k)
{
    return byte_of(packed, p, row, k, 8, k % 32 / 16 * 4 + k % 4) >> (k % 16 / 4 * 2) & 3;
}

static int top_at(const struct packed *packed, uint32_t row, uint32_t k)
{
    return byte_of(packed, 2, row, k, 4, k % 4) >> k % 32 / 4 & 1;
}

/* What a place in a table says. */
static float table_at(const struct packed *packed, const int8_t values[16], uint32_t row, uint32_t k)
{
    uint32_t c = k % 32 / 4;
    return (
        float)values[byte_of(packed, 0, row, k, 16, c % 4 * 4 + c / 4 * 2 + k % 4 / 2) >> (k % 2 * 4) & 15];
}

static int quant_at(const struct packed *packed, enum format format, uint32_t row, uint32_t k)
{
    switch (format) {
    case FORMAT_Q2_K:
        return pair_at(packed, 0, row, k);
    case FORMAT_Q3_K:
        return pair_at(packed, 0, row, k) | top_at(packed, row, k) << 2;
    case FORMAT_Q5_0:
    case FORMAT_Q5_1:
    case FORMAT_Q5_K:
        return nibble_at(packed, row, k) | top_at(packed, row, k) << 4;
    case FORMAT_Q6_K:
        return nibble_at(packed, row, k) | pair_at(packed, 2, row, k) << 4;
    default:
        return nibble_at(packed, row, k);
    }
}

/* The header of Q4_K and Q5_K. */
static float k_weight_at(const uint8_t *header, uint32_t b, int quant)
{
    uint32_t tops;
    memcpy(&tops, header + 12, 4);
    int scale = (header[4 + b] & 15) | (int)(tops >> 4 * b & 3) << 4;
    int min = header[4 + b] >> 4 | (int)(tops >> (4 * b + 2) & 3) << 4;
    return half_at(header, 0) * (float)scale * (float)quant - half_at(header, 1) * (float)min;
}

static float weight_at(const struct packed *packed, enum format format, uint32_t row, uint32_t k)
{
    const uint8_t *scales = packed->layout->n_planes > 1 ? plane(packed, 1, row) : NULL;
    const int quant = format_traits(format)->block_elements > 1 ? quant_at(packed, format, row, k) : 0;
    uint32_t bits;
    switch (format) {
    case FORMAT_F32:
        memcpy(&bits, plane(packed, 0, row) + 4 * (size_t)k, 4);
        return format_float_of_bits(bits);
    case FORMAT_F16:
        return half_at(plane(packed, 0, row), k);
    case FORMAT_BF16: {
        uint16_t bf16;
        memcpy(&bf16, plane(packed, 0, row) + 2 * (size_t)k, 2);
        return format_bf16_to_f32(bf16);
    }
    case FORMAT_Q8_0: {
        uint32_t at = k / 256 * 256 + k % 32 / 16 * 128 + k % 256 / 32 * 16 + k % 16;
        return half_at(scales, k / 32) * (float)(int8_t)plane(packed, 0, row)[at];
    }
    case FORMAT_Q4_0:
        return half_at(scales, k / 32) * (float)(quant - 8);
    case FORMAT_Q5_0:
        return half_at(scales, k / 32) * (float)(quant - 16);
    case FORMAT_Q4_1:
    case FORMAT_Q5_1:
        return half_at(scales, k / 32 * 2) * (float)quant + half_at(scales, k / 32 * 2 + 1);
    case FORMAT_IQ4_NL:
        return half_at(scales, k / 32) * table_at(packed, block_iq4_values, row, k);
    case FORMAT_MXFP4:
        return block_mxfp4_scale(scales[k / 32]) * table_at(packed, block_mxfp4_values, row, k);
    case FORMAT_IQ4_XS:
        return half_at(plane(packed, 2, row), k / 256) * (float)(int8_t)scales[k / 32] *
               table_at(packed, block_iq4_values, row, k);
    case FORMAT_Q2_K: {
        const uint8_t *both = plane(packed, 2, row) + k / 256 * 4;
        return half_at(both, 0) * (float)(scales[k / 16] & 15) * (float)quant -
               half_at(both, 1) * (float)(scales[k / 16] >> 4);
    }
    case FORMAT_Q3_K:
        return half_at(plane(packed, 3, row), k / 256) * (float)(int8_t)scales[k / 16] * (float)(quant - 4);
    case FORMAT_Q6_K:
        return half_at(plane(packed, 3, row), k / 256) * (float)(int8_t)scales[k / 16] * (float)(quant - 32);
    case FORMAT_Q4_K:
    case FORMAT_Q5_K:
        return k_weight_at(scales + k / 256 * 16, k / 32 % 8, quant);
    default:
        ck_abort_msg("%s: what do its planes hold?", format_traits(format)->name);
    }
}

static uint32_t block_columns(enum format format, uint32_t blocks, uint32_t floats)
{
    uint32_t block = format_traits(format)->block_elements;
    return block == 1 ? floats : block * blocks;
}

START_TEST(planes_hold_what_the_format_means)
{
    for (size_t f = 0; f < N_TESTED_FORMATS; f++) {
        enum format format = tested_formats[f];
        uint32_t n = block_columns(format, 3, 301);
        struct packed packed = pack(format, n);
        float *expected = malloc(n * sizeof *expected);
        for (uint32_t row = 0; row < ROWS; row++) {
            const uint8_t *file = packed.file + row * format_bytes(format, n);
            format_traits(format)->to_float(file, expected, n);
            for (uint32_t k = 0; k < n; k++) {
                float weight = weight_at(&packed, format, row, k);
                ck_assert_msg(memcmp(&weight, &expected[k], 4) == 0 || (weight == 0 && expected[k] == 0) ||
                                  (weight != weight && expected[k] != expected[k]),
                              "%s row %u column %u: %g for %g", format_traits(format)->name, row, k, weight,
                              expected[k]);
            }
        }
        free(expected);
        release(&packed);
    }
}
END_TEST

START_TEST(what_is_beyond_the_columns_is_zero)
{
    for (size_t f = 0; f < N_TESTED_FORMATS; f++) {
        enum format format = tested_formats[f];
        uint32_t n = block_columns(format, 3, 301);
        if (n == layout_padded(n))
            continue;
        struct packed packed = pack(format, n);
        bool has_offset = format == FORMAT_Q4_0 || format == FORMAT_Q5_0; /* times a scale of 0 */
        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t k = n; k < layout_padded(n); k++) {
                ck_assert_float_eq(weight_at(&packed, format, row, k), 0);
                if (has_offset)
                    ck_assert_int_eq(quant_at(&packed, format, row, k), 0);
            }
        release(&packed);
    }
}
END_TEST

START_TEST(a_matrix_can_be_packed_in_pieces)
{
    for (size_t f = 0; f < N_TESTED_FORMATS; f++) {
        enum format format = tested_formats[f];
        uint32_t n = block_columns(format, 5, 77);
        struct packed packed = pack(format, n);
        size_t bytes = layout_bytes(packed.layout, ROWS, n);
        uint8_t *pieces = aligned_alloc(256, bytes);
        void *places[LAYOUT_PLANES];
        layout_place(packed.layout, ROWS, n, pieces, places);
        for (uint32_t row = 0; row < ROWS; row++) {
            uint8_t *planes[LAYOUT_PLANES] = {0};
            for (uint32_t p = 0; p < packed.layout->n_planes; p++)
                planes[p] = (uint8_t *)places[p] + row * layout_row_bytes(packed.layout, p, n);
            layout_pack(format, packed.file + row * format_bytes(format, n), 1, n, planes);
        }
        for (uint32_t p = 0; p < packed.layout->n_planes; p++)
            ck_assert_mem_eq(places[p], packed.planes[p], ROWS * layout_row_bytes(packed.layout, p, n));
        free(pieces);
        release(&packed);
    }
}
END_TEST

START_TEST(planes_are_aligned_and_do_not_overlap)
{
    for (size_t f = 0; f < N_TESTED_FORMATS; f++) {
        const struct layout *layout = layout_of(tested_formats[f]);
        void *planes[LAYOUT_PLANES];
        uint8_t *end = NULL;
        layout_place(layout, 7, 1000, NULL, planes);
        for (uint32_t p = 0; p < layout->n_planes; p++) {
            ck_assert_uint_eq((uintptr_t)planes[p] % 256, 0);
            ck_assert((uint8_t *)planes[p] >= end);
            end = (uint8_t *)planes[p] + 7 * layout_row_bytes(layout, p, 1000);
        }
        ck_assert_uint_le((size_t)(uintptr_t)end, layout_bytes(layout, 7, 1000));
    }
}
END_TEST

START_TEST(every_format_that_models_may_have_has_a_layout_and_no_other_number)
{
    for (int format = 0; format < FORMAT_LIMIT; format++)
        ck_assert_msg((layout_of((enum format)format) != NULL) ==
                          (format_traits((uint32_t)format)->to_float != NULL),
                      "format %d", format);
    ck_assert_ptr_null(layout_of((enum format)1000));
}
END_TEST

START_TEST(places_of_quants_are_each_column_once)
{
    uint8_t seen[1024] = {0};
    for (uint32_t k = 0; k < 1024; k++) {
        ck_assert_uint_eq(layout_quant_place(k) / 256, k / 256);
        ck_assert_uint_eq(seen[layout_quant_place(k)]++, 0);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, planes_hold_what_the_format_means);
    tcase_add_test(tests, what_is_beyond_the_columns_is_zero);
    tcase_add_test(tests, a_matrix_can_be_packed_in_pieces);
    tcase_add_test(tests, planes_are_aligned_and_do_not_overlap);
    tcase_add_test(tests, every_format_that_models_may_have_has_a_layout_and_no_other_number);
    tcase_add_test(tests, places_of_quants_are_each_column_once);
}

int main(void)
{
    return run_tests("layout", add);
}
