/* SPDX-License-Identifier: MIT */
/* What stays in memory of a model's file. */

#include "common/amount.h"
#include "cpu/memory/weights.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"
#include "tests/unit/cpu/memory/take_matrix.h"

#include <errno.h>
#include <string.h>

/* Bytes of the mapping that `inside` lies in: how many are in memory, or how many there are. */
static size_t mapped(const void *inside, const char *what)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    ck_assert_ptr_nonnull(file);
    char line[512];
    unsigned long start, end, kib = 0;
    bool here = false;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            here = (unsigned long)inside >= start && (unsigned long)inside < end;
        else if (here && strncmp(line, what, strlen(what)) == 0)
            sscanf(line + strlen(what), "%lu", &kib);
    }
    fclose(file);
    return kib * 1024;
}

START_TEST(a_packed_model_is_in_memory_once)
{
    static const char *const architectures[] = {"llama", "phi3"}; /* the second with fused tensors */
    struct synth_shape shape = small_shape;
    shape.architecture = architectures[_i];
    shape.tied = true;
    struct model *model = make_model(&shape, "F32");
    struct memory memory = {0};
    struct threads *threads;
    struct weights weights;
    const struct backend_config config = {0};
    ck_assert_int_eq(threads_new(2, NULL, 0, &threads, NULL), 0);
    ck_assert_int_eq(weights_init(&weights, model, &memory, threads, &config, NULL), 0);
    const struct gguf_tensor *embedding = model->tensors[TENSOR_EMBEDDING].weight;
    size_t size = mapped(embedding->data, "Size:"), resident = mapped(embedding->data, "Rss:");
    ck_assert_uint_gt(size, weights.bytes);
    ck_assert_msg(resident < size / 4, "%zu of %zu bytes are resident", resident, size);

    /* What was given back is read again when it is needed. */
    struct matrix again;
    uint8_t *zeros = calloc(weights.max_columns, 8);
    take_matrix(&again, &memory, &model->tensors[TENSOR_OUTPUT]);
    matrix_pack(&again, 0, again.n_groups, zeros);
    ck_assert_mem_eq(again.groups, weights.output.groups, again.n_groups * again.group_bytes);
    free(zeros);
    weights_deinit(&weights);
    threads_free(threads);
    memory_deinit(&memory);
    model_free(model);
}
END_TEST

static void read_row_of_file(const struct gguf_tensor *tensor, uint32_t row, float *ret_row)
{
    const uint8_t *from = (const uint8_t *)tensor->data + row * matrix_row_bytes(tensor);
    format_traits(tensor->format)->to_float(from, ret_row, tensor->dims[0]);
}

static void check_rows(const struct table *table, const struct gguf_tensor *tensor)
{
    float *wanted = calloc(tensor->dims[0], sizeof *wanted), *row = calloc(tensor->dims[0], sizeof *row);
    for (uint32_t i = 0; i < tensor->dims[1]; i++) {
        read_row_of_file(tensor, i, wanted);
        table_read(table, i, row);
        ck_assert_mem_eq(row, wanted, tensor->dims[0] * sizeof *row);
    }
    free(wanted);
    free(row);
}

START_TEST(embeddings_and_positions_are_those_of_the_file_and_need_it_no_more)
{
    static const struct {
        const char *architecture, *format;
        bool tied;
    } cases[] = {{"llama", "F32", false}, {"llama", "F32", true},   {"llama", "F16", true},
                 {"llama", "Q8_0", true}, {"llama", "Q8_0", false}, {"llama", "Q5_0", true},
                 {"gpt2", "F16", true},   {"gpt2", "F32", false}};
    struct synth_shape shape = small_shape;
    shape.architecture = cases[_i].architecture;
    shape.tied = cases[_i].tied;
    struct model *model = make_model(&shape, cases[_i].format), *other = make_model(&shape, cases[_i].format);
    struct memory memory = {0};
    struct threads *threads;
    struct weights weights;
    const struct backend_config config = {0};
    ck_assert_int_eq(threads_new(2, NULL, 0, &threads, NULL), 0);
    ck_assert_int_eq(weights_init(&weights, model, &memory, threads, &config, NULL), 0);
    ck_assert_int_eq(weights.embedding.rows == NULL, cases[_i].tied);
    model_let_go(model);
    check_rows(&weights.embedding, other->tensors[TENSOR_EMBEDDING].weight);
    if (other->tensors[TENSOR_POSITIONS].weight)
        check_rows(&weights.positions, other->tensors[TENSOR_POSITIONS].weight);
    else
        ck_assert_ptr_null(weights.positions.tensor);
    weights_deinit(&weights);
    threads_free(threads);
    memory_deinit(&memory);
    model_free(model);
    model_free(other);
}
END_TEST

/* What others have together leaves less than these need. */
START_TEST(weights_that_can_never_fit_are_refused_by_their_numbers)
{
    struct model *model = make_model(&small_shape, "F32");
    struct available available;
    struct memory memory = {0};
    struct threads *threads;
    struct weights weights;
    struct error err = {0};
    char says[128];
    const struct backend_config config = {0};
    ck_assert_int_eq(available_read("", &available), 0);
    ck_assert_int_eq(threads_new(1, NULL, 0, &threads, NULL), 0);
    ck_assert_int_eq(weights_init(&weights, model, &memory, threads, &config, NULL), 0);
    const size_t size = memory.total;
    weights_deinit(&weights);
    memory_deinit(&memory);
    memory.reserved = available.total - size; /* just enough */
    ck_assert_int_eq(weights_init(&weights, model, &memory, threads, &config, NULL), 0);
    weights_deinit(&weights);
    memory_deinit(&memory);
    memory.reserved++;
    ck_assert_int_eq(weights_init(&weights, model, &memory, threads, &config, &err), -ENOMEM);
    ck_assert_ptr_null(weights.layers);
    ck_assert_uint_eq(memory.total, 0);
    snprintf(says, sizeof says, "%.40s of weights do not fit: ", amount_of_bytes(size).text);
    ck_assert_msg(strncmp(err.text, says, strlen(says)) == 0, "%s", err.text);
    snprintf(says, sizeof says, "of which the prefix store and other workers' weights use %.30s",
             amount_of_bytes(memory.reserved).text);
    ck_assert_msg(strstr(err.text, says) != NULL, "%s", err.text);
    threads_free(threads);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, a_packed_model_is_in_memory_once, 0, 2);
    tcase_add_loop_test(tests, embeddings_and_positions_are_those_of_the_file_and_need_it_no_more, 0, 8);
    tcase_add_test(tests, weights_that_can_never_fit_are_refused_by_their_numbers);
}

int main(void)
{
    return run_tests("weights", add);
}
