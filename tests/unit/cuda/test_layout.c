/* SPDX-License-Identifier: MIT */
/* Planes of weights, read back as layout.h describes them and not as layout.c makes them. */

#include "cuda/layout.h"
#include "tests/unit/run.h"
#include "tests/unit/cuda/device_formats.h"

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

/* Low four bits of column k, with what the tops say of the others. */
static int quant_at(const struct packed *packed, enum format format, uint32_t row, uint32_t k)
{
    uint32_t block = k / 32, i = k % 32, c = i / 4, byte = i % 4;
    int q = plane(packed, 0, row)[block * 16 + i % 16] >> (i < 16 ? 0 : 4) & 15;
    if (format == FORMAT_Q5_0 || format == FORMAT_Q5_K)
        q |= (plane(packed, 2, row)[block * 4 + byte] >> c & 1) << 4;
    if (format == FORMAT_Q6_K)
        q |= (plane(packed, 2, row)[block * 8 + i / 16 * 4 + byte] >> (2 * (c % 4)) & 3) << 4;
    return q;
}

static float weight_at(const struct packed *packed, enum format format, uint32_t row, uint32_t k)
{
    const uint8_t *scales = packed->layout->n_planes > 1 ? plane(packed, 1, row) : NULL;
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
        return half_at(scales, k / 32) * (float)(quant_at(packed, format, row, k) - 8);
    case FORMAT_Q5_0:
        return half_at(scales, k / 32) * (float)(quant_at(packed, format, row, k) - 16);
    case FORMAT_Q6_K:
        return half_at(plane(packed, 3, row), k / 256) * (float)(int8_t)scales[k / 16] *
               (float)(quant_at(packed, format, row, k) - 32);
    default: { /* Q4_K, Q5_K */
        const uint8_t *header = scales + k / 256 * 16;
        uint32_t b = k / 32 % 8, tops;
        memcpy(&tops, header + 12, 4);
        int scale = (header[4 + b] & 15) | (int)(tops >> 4 * b & 3) << 4;
        int min = header[4 + b] >> 4 | (int)(tops >> (4 * b + 2) & 3) << 4;
        return half_at(header, 0) * (float)scale * (float)quant_at(packed, format, row, k) -
               half_at(header, 1) * (float)min;
    }
    }
}

static uint32_t block_columns(enum format format, uint32_t blocks, uint32_t floats)
{
    uint32_t block = format_traits(format)->block_elements;
    return block == 1 ? floats : block * blocks;
}

START_TEST(planes_hold_what_the_format_means)
{
    for (size_t f = 0; f < N_DEVICE_FORMATS; f++) {
        enum format format = device_formats[f];
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
    for (size_t f = 0; f < N_DEVICE_FORMATS; f++) {
        enum format format = device_formats[f];
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
    for (size_t f = 0; f < N_DEVICE_FORMATS; f++) {
        enum format format = device_formats[f];
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
    for (size_t f = 0; f < N_DEVICE_FORMATS; f++) {
        const struct layout *layout = layout_of(device_formats[f]);
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

START_TEST(formats_that_the_device_lacks_have_no_layout)
{
    size_t n = 0;
    for (int format = 0; format < FORMAT_LIMIT; format++)
        n += layout_of((enum format)format) != NULL;
    ck_assert_uint_eq(n, N_DEVICE_FORMATS);
    ck_assert_ptr_null(layout_of(FORMAT_IQ4_XS));
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
    tcase_add_test(tests, formats_that_the_device_lacks_have_no_layout);
    tcase_add_test(tests, places_of_quants_are_each_column_once);
}

int main(void)
{
    return run_tests("layout", add);
}
