/* SPDX-License-Identifier: MIT */
/* Mixtures are what their names promise to other programs: the numbers of general.file_type, and which layers
 * get more bits, written down from published files' rule and not from ours. */

#include "tests/unit/run.h"
#include "model/convert/mixture.h"

#include <string.h>

START_TEST(file_types_have_the_numbers_of_other_programs)
{
    static const struct {
        const char *name;
        uint32_t number;
    } known[] = {{"F32", 0},     {"F16", 1},     {"Q4_0", 2},      {"Q8_0", 7},    {"Q5_0", 8},
                 {"Q4_K_S", 14}, {"Q4_K_M", 15}, {"Q5_K_S", 16},   {"Q5_K_M", 17}, {"Q6_K", 18},
                 {"BF16", 32},   {"Q4_K", 14},   {"Q5_K", 16},     {"Q4_1", 3},    {"Q5_1", 9},
                 {"Q2_K", 10},   {"Q3_K", 11},   {"Q3_K_S", 11},   {"Q3_K_M", 12}, {"IQ4_NL", 25},
                 {"IQ4_XS", 30}, {"MXFP4", 38},  {"MXFP4_MOE", 38}};
    size_t n = 0;
    for (const struct mixture *m = mixtures; m->name; m++)
        n++;
    ck_assert_uint_eq(n, sizeof known / sizeof known[0]);
    for (size_t i = 0; i < n; i++) {
        const struct mixture *mixture = mixture_by_name(known[i].name);
        ck_assert_msg(mixture && mixture->file_type == known[i].number, "%s", known[i].name);
    }
    ck_assert_ptr_null(mixture_by_name("Q4_K_L"));
}
END_TEST

START_TEST(every_format_can_be_asked_for_by_its_name)
{
    static const char *const names[] = {
#define NAME(name, id, number, elements, bytes) #name,
        FORMATS(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct mixture *mixture = mixture_by_name(names[i]);
        enum format format;
        ck_assert_int_eq(format_by_name(names[i], &format), 0);
        ck_assert_msg(mixture && mixture->base == format, "%s", names[i]);
    }
}
END_TEST

/* One letter a layer: + for more bits. */
static void check(const char *name, enum tensor_role role, const char *layers)
{
    const struct mixture *mixture = mixture_by_name(name);
    uint32_t n = (uint32_t)strlen(layers);
    for (uint32_t i = 0; i < n; i++) {
        const struct mixture_tensor tensor = {
            .role = role, .layer = i, .n_layers = n, .n_dims = 2, .columns = 256};
        ck_assert_msg(mixture_format(mixture, &tensor) == (layers[i] == '+' ? mixture->more : mixture->base),
                      "%s, layer %u of %u", name, i, n);
    }
}

START_TEST(values_and_down_projections_get_more_bits_where_it_counts)
{
    check("Q4_K_M", TENSOR_DOWN, "++--+--+--+--+++");
    check("Q4_K_M", TENSOR_EXPERT_DOWNS, "++--+--+--+--+++");
    check("Q4_K_M", TENSOR_SHARED_DOWN, "++--+--+--+--+++");
    check("Q4_K_M", TENSOR_EXPERT_UPS, "----------------");
    check("Q4_K_M", TENSOR_V, "++--+--+--+--+++");
    check("Q5_K_M", TENSOR_V, "++++--+--+--+--+--+--+--+--+++++");
    check("Q4_K_M", TENSOR_Q, "----------------");
    check("Q4_K_S", TENSOR_V, "++++------------");
    check("Q4_K_S", TENSOR_DOWN, "++--------------");
    check("Q8_0", TENSOR_DOWN, "----------------");
    check("Q3_K_M", TENSOR_V, "++--+--+--+--+++");
    check("IQ4_XS", TENSOR_V, "++++------------");
    check("MXFP4_MOE", TENSOR_V, "++++++++++++++++");
    check("MXFP4_MOE", TENSOR_DOWN, "++++++++++++++++");
    check("MXFP4_MOE", TENSOR_EXPERT_DOWNS, "----------------");
    check("MXFP4_MOE", TENSOR_EXPERT_GATES, "----------------");
}
END_TEST

/* Of 2,048 columns, of 896, which are no multiple of 256, and of 40, which are none of 32. */
START_TEST(rows_that_a_format_does_not_divide_get_the_next_that_does)
{
    static const struct {
        const char *mixture;
        enum format formats[3];
    } cases[] = {{"F32", {FORMAT_F32, FORMAT_F32, FORMAT_F32}},
                 {"BF16", {FORMAT_BF16, FORMAT_BF16, FORMAT_BF16}},
                 {"Q8_0", {FORMAT_Q8_0, FORMAT_Q8_0, FORMAT_F16}},
                 {"Q6_K", {FORMAT_Q6_K, FORMAT_Q8_0, FORMAT_F16}},
                 {"Q5_K", {FORMAT_Q5_K, FORMAT_Q8_0, FORMAT_F16}},
                 {"Q4_K", {FORMAT_Q4_K, FORMAT_Q5_0, FORMAT_F16}},
                 {"Q3_K", {FORMAT_Q3_K, FORMAT_IQ4_NL, FORMAT_F16}},
                 {"Q2_K", {FORMAT_Q2_K, FORMAT_IQ4_NL, FORMAT_F16}},
                 {"IQ4_XS", {FORMAT_IQ4_XS, FORMAT_IQ4_NL, FORMAT_F16}},
                 {"Q4_0", {FORMAT_Q4_0, FORMAT_Q4_0, FORMAT_F16}},
                 {"MXFP4", {FORMAT_MXFP4, FORMAT_MXFP4, FORMAT_F16}}};
    static const uint32_t columns[] = {2048, 896, 40};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int c = 0; c < 3; c++) {
            const struct mixture_tensor tensor = {
                .role = TENSOR_Q, .n_layers = 8, .n_dims = 2, .columns = columns[c]};
            const enum format format = mixture_format(mixture_by_name(cases[i].mixture), &tensor);
            ck_assert_msg(format == cases[i].formats[c], "%s, %u columns: %s", cases[i].mixture, columns[c],
                          format_traits(format)->name);
        }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, file_types_have_the_numbers_of_other_programs);
    tcase_add_test(tests, every_format_can_be_asked_for_by_its_name);
    tcase_add_test(tests, values_and_down_projections_get_more_bits_where_it_counts);
    tcase_add_test(tests, rows_that_a_format_does_not_divide_get_the_next_that_does);
}

int main(void)
{
    return run_tests("mixture", add);
}
