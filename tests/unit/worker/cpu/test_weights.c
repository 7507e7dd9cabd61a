/* SPDX-License-Identifier: MIT */
/* What stays in memory of a model's file. */

#include "worker/cpu/weights.h"
#include "tests/unit/run.h"
#include "tests/unit/worker/cpu/small_model.h"

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
    ck_assert_int_eq(matrix_init(&again, &memory, &model->tensors[TENSOR_OUTPUT], NULL), 0);
    matrix_pack(&again, 0, again.n_groups, zeros);
    ck_assert_mem_eq(again.groups, weights.output.groups, again.n_groups * again.group_bytes);
    free(zeros);
    weights_deinit(&weights);
    threads_free(threads);
    memory_deinit(&memory);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, a_packed_model_is_in_memory_once, 0, 2);
}

int main(void)
{
    return run_tests("weights", add);
}
