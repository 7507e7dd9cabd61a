/* SPDX-License-Identifier: MIT */
/* Which tables of kernels a machine has, and how they are found. */

#include "cpu/kernels/kernels.h"
#include "tests/unit/run.h"

#include <string.h>

START_TEST(tables_are_found_by_their_names_and_the_last_is_plain_c)
{
    uint32_t n = 0;
    for (const struct kernels *kernels; (kernels = kernels_at(n)); n++) {
        ck_assert_ptr_nonnull(kernels->name);
        ck_assert(kernels_by_name(kernels->name) == kernels); /* no name twice */
    }
    ck_assert_uint_ge(n, 1);
    ck_assert_str_eq(kernels_at(n - 1)->name, "portable");
    ck_assert(kernels_by_name(NULL) == kernels_at(0));
    ck_assert_ptr_null(kernels_by_name("abacus"));
    ck_assert_ptr_null(kernels_by_name(""));
    ck_assert_ptr_null(kernels_at(UINT32_MAX));
}
END_TEST

/* $QUERN_EXPECTED_KERNELS, for who runs this as a processor that is known: names with a blank between. */
START_TEST(a_processor_has_the_tables_that_are_expected_of_it)
{
    const char *expected = getenv("QUERN_EXPECTED_KERNELS");
    char found[128] = "";
    const struct kernels *kernels;
    for (uint32_t i = 0; (kernels = kernels_at(i)); i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i ? " " : "", kernels->name);
    if (expected)
        ck_assert_str_eq(found, expected);
}
END_TEST

START_TEST(every_table_has_every_kernel)
{
    static const enum format formats[] = {
#define FORMAT(name, id, number, elements, bytes) FORMAT_##name,
        FORMATS(FORMAT)
#undef FORMAT
    };
    const struct kernels *k;
    for (uint32_t i = 0; (k = kernels_at(i)); i++) {
        for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
            ck_assert_ptr_nonnull(k->multiply[formats[f]]);
            if (k->multiply_many[formats[f]]) {
                ck_assert(k->has_tiles);
                ck_assert(k->many_groups == 1 || (k->many_groups == 2 && k->multiply_pair[formats[f]]));
                ck_assert_uint_gt(k->many_rows, 0);
                ck_assert_uint_eq(k->many_rows % KERNELS_MANY, 0);
            }
        }
        ck_assert(k->quantize && k->rms_norm && k->layer_norm && k->soft_cap && k->add && k->attend);
        ck_assert(k->halves_to_floats && k->floats_to_halves && k->scale_each && k->scale_all);
        for (size_t a = 0; a < KINDS_OF(ACTIVATIONS); a++)
            ck_assert_ptr_nonnull(k->activate[a]);
        ck_assert_uint_le(k->attend_halves, KERNELS_QUERIES);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, tables_are_found_by_their_names_and_the_last_is_plain_c);
    tcase_add_test(tests, a_processor_has_the_tables_that_are_expected_of_it);
    tcase_add_test(tests, every_table_has_every_kernel);
}

int main(void)
{
    return run_tests("tables", add);
}
