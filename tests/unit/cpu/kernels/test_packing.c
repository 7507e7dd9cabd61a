/* SPDX-License-Identifier: MIT */
#include "cpu/kernels/packing.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/random_weights.h"

START_TEST(a_packed_weight_is_the_same_number)
{
    enum format format = tested_formats[_i];
    const struct packing *packing = packing_of(format);
    ck_assert_ptr_nonnull(packing);
    const struct format_traits *traits = format_traits(format);
    ck_assert_uint_eq(packing->block_columns, traits->block_elements);
    uint32_t n_blocks = 3, n = n_blocks * traits->block_elements;
    uint8_t *rows[8], *packed = malloc(n_blocks * packing->packed_block_bytes);
    for (int r = 0; r < 8; r++)
        rows[r] = random_row(format, n);
    packing->pack((const uint8_t *const *)rows, n_blocks, packed);

    float *unpacked = calloc(n * 8, sizeof *unpacked), *row = calloc(n, sizeof *row);
    packing->unpack(packed, n_blocks, unpacked);
    for (int r = 0; r < 8; r++) {
        traits->to_float(rows[r], row, n);
        for (uint32_t k = 0; k < n; k++)
            ck_assert_msg(memcmp(&row[k], &unpacked[k * 8 + (uint32_t)r], sizeof *row) == 0,
                          "%s row %d column %u: %g became %g", traits->name, r, k, row[k],
                          unpacked[k * 8 + (uint32_t)r]);
        free(rows[r]);
    }
    free(packed);
    free(unpacked);
    free(row);
}
END_TEST

START_TEST(packing_costs_no_more_than_a_few_percent)
{
    for (size_t i = 0; i < N_TESTED_FORMATS; i++) {
        const struct packing *packing = packing_of(tested_formats[i]);
        uint32_t before = format_traits(tested_formats[i])->block_bytes * 8;
        ck_assert_uint_ge(packing->packed_block_bytes, before);
        ck_assert_uint_le(packing->packed_block_bytes * 100, before * 104);
    }
}
END_TEST

START_TEST(a_format_without_kernels_has_no_packing)
{
    ck_assert_ptr_null(packing_of((enum format)9)); /* Q8_1 */
    ck_assert_ptr_null(packing_of((enum format)63));
    ck_assert_ptr_null(packing_of((enum format)1000));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, a_packed_weight_is_the_same_number, 0, (int)N_TESTED_FORMATS);
    tcase_add_test(tests, packing_costs_no_more_than_a_few_percent);
    tcase_add_test(tests, a_format_without_kernels_has_no_packing);
}

int main(void)
{
    return run_tests("packing", add);
}
