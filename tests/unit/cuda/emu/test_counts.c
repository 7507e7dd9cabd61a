/* SPDX-License-Identifier: MIT */
/* What the kernels do to memory, counted on the emulated device, beside kernel_counts.txt: a transaction, a
 * pass over shared memory or a bank conflict more than there is seen here, without a GPU.
 *
 * The counts are those of accesses that the host's compiler leaves, so another compiler's may differ a
 * little: TOLERANCE. After a change that means it, the program writes the file anew with QUERN_COUNTS=write.
 */

#include "cuda/backend.h"
#include "tests/unit/child.h"
#include "tests/unit/cuda/emu/counting_kernels.h"
#include "tests/unit/cuda/kernels/on_device.h"
#include "tests/unit/cuda/run_step.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TOLERANCE 5 /* per cent, and as many more */
#define SLOTS     8
#define PROMPT    40 /* rows: enough for wide tiles */

/* ---- by hand ---- */

static struct backend_kernel counted(const char *name)
{
    const struct backend_kernel *kernels;
    ck_assert_int_eq(device_synchronize(queue), 0);
    ck_assert_uint_eq(device_kernels(device, &kernels), 1);
    ck_assert_str_eq(kernels[0].name, name);
    return kernels[0];
}

START_TEST(words_take_a_pass_for_each_that_meets_others_in_a_bank)
{
    static const struct {
        uint32_t stride, sectors, passes;
    } cases[] = {{1, 4, 1}, {2, 8, 2}, {3, 12, 1}, {4, 16, 4}, {8, 32, 8}, {32, 32, 32}, {33, 32, 1}};
    open_device();
    uint32_t *memory = on_device(NULL, 33 * 32 * sizeof *memory);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(counting_kernels_words(queue, memory, cases[i].stride), 0);
        const struct backend_kernel kernel = counted("words");
        ck_assert_uint_eq(kernel.sectors, cases[i].sectors);
        ck_assert_uint_eq(kernel.asked, 128);
        ck_assert_uint_eq(kernel.passes, cases[i].passes);
        ck_assert_uint_eq(kernel.conflicts, cases[i].passes - 1);
    }
    close_device();
}
END_TEST

START_TEST(sixteen_bytes_a_thread_take_four_passes_without_conflicts)
{
    open_device();
    uint8_t *memory = on_device(NULL, 2 * 32 * 16);
    ck_assert_int_eq(counting_kernels_vectors(queue, memory, 1), 0);
    struct backend_kernel kernel = counted("vectors");
    ck_assert_uint_eq(kernel.sectors, 16);
    ck_assert_uint_eq(kernel.passes, 4);
    ck_assert_uint_eq(kernel.conflicts, 0);
    ck_assert_int_eq(counting_kernels_vectors(queue, memory, 2), 0);
    kernel = counted("vectors");
    ck_assert_uint_eq(kernel.sectors, 32);
    ck_assert_uint_eq(kernel.passes, 8);
    ck_assert_uint_eq(kernel.conflicts, 4);
    close_device();
}
END_TEST

START_TEST(one_word_for_all_is_one_pass_and_half_a_warp_is_a_warp)
{
    open_device();
    uint32_t *memory = on_device(NULL, 32 * sizeof *memory);
    ck_assert_int_eq(counting_kernels_broadcast(queue, memory), 0);
    const struct backend_kernel kernel = counted("broadcast");
    ck_assert_uint_eq(kernel.passes, 2); /* the write, the read */
    ck_assert_uint_eq(kernel.conflicts, 0);
    ck_assert_uint_eq(kernel.sectors, 4);
    ck_assert_uint_eq(kernel.asked, 64);
    close_device();
}
END_TEST

START_TEST(rounds_of_a_loop_are_put_together_whoever_is_still_in_it)
{
    open_device();
    uint32_t *memory = on_device(NULL, 32 * sizeof *memory);
    ck_assert_int_eq(counting_kernels_loop(queue, memory), 0);
    const struct backend_kernel kernel = counted("loop");
    ck_assert_uint_eq(kernel.passes, 31);
    ck_assert_uint_eq(kernel.conflicts, 0);
    ck_assert_uint_eq(kernel.sectors, 4);
    close_device();
}
END_TEST

/* Alone it may, for nothing runs beside it. */
static void read_early(uint32_t n_launches)
{
    open_device();
    uint32_t *memory = on_device(NULL, 2 * 32 * sizeof *memory);
    for (uint32_t i = 0; i < n_launches; i++)
        counting_kernels_early(queue, memory, memory + 32);
    device_synchronize(queue);
    close_device();
}

/* Of a child that reads early; what it says is said[]. */
static int status_of_early(uint32_t n_launches, char said[1024])
{
    struct child child;
    if (child_begin(&child)) {
        read_early(n_launches);
        _exit(0);
    }
    return child_end(&child, said, 1024);
}

START_TEST(memory_that_the_launch_before_may_write_is_not_touched_before_its_end)
{
    char said[1024];
    ck_assert_msg(status_of_early(1, said) == 0, "%s", said);
    ck_assert_int_ne(status_of_early(2, said), 0);
    ck_assert_msg(
        strstr(said, "kernel early, block 0,0,0, thread 0,0,0: it touches the device's memory before"), "%s",
        said);
}
END_TEST

/* ---- the table ---- */

static struct backend *backend;
static FILE *written; /* the file made anew; NULL: it is compared with */

static void open_slot(uint32_t s, uint32_t n_prompt)
{
    int32_t ids[PROMPT];
    const uint32_t blocks[] = {2 * s, 2 * s + 1};
    const struct backend_slot params = {.sampling = SAMPLING_GREEDY,
                                        .end_position = 64,
                                        .history = ids,
                                        .n_history = n_prompt,
                                        .n_prompt = n_prompt};
    for (uint32_t i = 0; i < n_prompt; i++)
        ids[i] = (int32_t)(3 + (s * 31 + i * 17) % 300);
    ck_assert_int_eq(quern_backend.slot_open(backend, s, &params), 0);
    const struct backend_row_set prompt = {
        .slot = s, .ids = ids, .n_ids = n_prompt, .output = BACKEND_SAMPLE_LAST, .blocks = {{blocks, 2, 0}}};
    run_step(backend, &prompt, 1);
}

/* The next token of slots 0 … n − 1; slot 0 has the prompt and what was decoded of it. */
static void decode(uint32_t n, const uint32_t *positions)
{
    struct backend_row_set sets[SLOTS];
    for (uint32_t s = 0; s < n; s++)
        sets[s] = (struct backend_row_set){.slot = s,
                                           .n_ids = 1,
                                           .position = positions[s],
                                           .output = BACKEND_SAMPLE_LAST,
                                           .blocks = {{NULL, 0, 2}}};
    run_step(backend, sets, n);
}

/* Whether `found` is what was expected, as far as a compiler leaves it. */
static bool is_about(uint64_t found, uint64_t expected)
{
    const uint64_t slack = expected * TOLERANCE / 100 + TOLERANCE;
    return found <= expected + slack && found + slack >= expected;
}

/* The line of the file that begins with the step and the kernel. False: there is none. */
static bool find_expected(const char *step, const char *kernel, struct backend_kernel *ret_expected)
{
    char line[256], of_step[64], of_kernel[64];
    FILE *file = fopen(QUERN_KERNEL_COUNTS, "r");
    ck_assert_msg(file != NULL, "%s: %s", QUERN_KERNEL_COUNTS, strerror(errno));
    bool found = false;
    while (!found && fgets(line, sizeof line, file))
        found = sscanf(line, "%63s %63s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
                       of_step, of_kernel, &ret_expected->n, &ret_expected->n_blocks, &ret_expected->sectors,
                       &ret_expected->asked, &ret_expected->passes, &ret_expected->conflicts) == 8 &&
                strcmp(of_step, step) == 0 && strcmp(of_kernel, kernel) == 0;
    fclose(file);
    return found;
}

static uint32_t n_wrong;

static void look(const char *step, const struct backend_kernel *k)
{
    struct backend_kernel e = {0};
    if (written) {
        fprintf(written,
                "%-16s %-20s %8" PRIu64 " %8" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64
                "\n",
                step, k->name, k->n, k->n_blocks, k->sectors, k->asked, k->passes, k->conflicts);
        return;
    }
    const bool is_known = find_expected(step, k->name, &e);
    if (is_known && k->n == e.n && k->n_blocks == e.n_blocks && is_about(k->sectors, e.sectors) &&
        is_about(k->asked, e.asked) && is_about(k->passes, e.passes) && is_about(k->conflicts, e.conflicts))
        return;
    n_wrong++;
    fprintf(stderr,
            "%s, %s:\n  %8" PRIu64 " launches %8" PRIu64 " blocks %10" PRIu64 " sectors %10" PRIu64
            " asked %10" PRIu64 " passes %10" PRIu64 " conflicts, where there should be\n  %8" PRIu64
            "          %8" PRIu64 "        %10" PRIu64 "         %10" PRIu64 "       %10" PRIu64
            "        %10" PRIu64 "\n",
            step, k->name, k->n, k->n_blocks, k->sectors, k->asked, k->passes, k->conflicts, e.n, e.n_blocks,
            e.sectors, e.asked, e.passes, e.conflicts);
}

/* All that ran since the last look; `only` these kernels, up to a NULL, or all. */
static void look_at(const char *type, const char *what, const char *const *only)
{
    const struct backend_kernel *kernels;
    char step[64];
    const uint32_t n = quern_backend.profile(backend, &kernels);
    ck_assert_uint_gt(n, 0);
    snprintf(step, sizeof step, "%s/%s", type, what);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (only && only[k] && strcmp(only[k], kernels[i].name) != 0)
            k++;
        if (!only || only[k])
            look(step, &kernels[i]);
    }
}

/* The kernels to which it makes a difference what keys and values are kept in. */
static const char *const kv_kernels[] = {"heads", "attention", NULL};

/* And those of recurrent layers and of gates. */
static const char *const hybrid_kernels[] = {"delta_prepare", "delta_rule", "delta_gate", "gate", NULL};

static struct backend *open_of(const struct model *model, enum backend_kv_type kv_type)
{
    const struct backend_config config = {.model = model,
                                          .n_slots = SLOTS,
                                          .n_context = 64,
                                          .n_blocks = SLOTS * 2,
                                          .max_rows = 64,
                                          .kv_type = kv_type,
                                          .profile = true};
    const struct backend_kernel *unused;
    struct backend *opened = NULL;
    struct error err = {0};
    ck_assert_msg(quern_backend.open(&config, &opened, &err) == 0, "%s", err.text);
    quern_backend.profile(opened, &unused);
    return opened;
}

/* One recurrent layer and one that attends. */
static void count_hybrid_steps(void)
{
    struct synth_shape shape = hybrid_shape;
    uint32_t positions[SLOTS];
    const struct backend_kernel *unused;
    shape.n_layers = 2;
    shape.n_ff = 256;
    struct model *model = make_model(&shape, "Q8_0");
    backend = open_of(model, BACKEND_KV_F16);
    for (uint32_t s = 0; s < SLOTS; s++)
        positions[s] = s == 0 ? PROMPT : 6;
    open_slot(0, positions[0]);
    look_at("hybrid", "prefill-40", hybrid_kernels);
    for (uint32_t s = 1; s < SLOTS; s++)
        open_slot(s, positions[s]);
    quern_backend.profile(backend, &unused);
    decode(8, positions);
    look_at("hybrid", "decode-8", hybrid_kernels);
    quern_backend.close(backend);
    model_free(model);
}

/* With `all` a long prompt and a batch of three too; else what differs from format to format. */
static void count_steps(const char *type, enum backend_kv_type kv_type, bool all)
{
    const char *const *only = kv_type == BACKEND_KV_F16 ? NULL : kv_kernels;
    const char *name = type;
    if (kv_type != BACKEND_KV_F16)
        name = kv_type == BACKEND_KV_Q8 ? "KV-q8_0" : "KV-q4_0";
    struct synth_shape shape = small_shape;
    uint32_t positions[SLOTS];
    const struct backend_kernel *unused;
    shape.n_layers = 1;
    shape.n_ff = 256;
    struct model *model = make_model(&shape, type);
    backend = open_of(model, kv_type);
    for (uint32_t s = 0; s < SLOTS; s++)
        positions[s] = s == 0 && all ? PROMPT : 6;
    open_slot(0, positions[0]);
    look_at(name, all ? "prefill-40" : "prefill-6", only);
    decode(1, positions);
    positions[0]++;
    look_at(name, "decode-1", only);
    for (uint32_t s = 1; s < SLOTS; s++)
        open_slot(s, positions[s]);
    quern_backend.profile(backend, &unused);
    if (all) {
        decode(3, positions);
        look_at(name, "decode-3", only);
        for (uint32_t s = 0; s < 3; s++)
            positions[s]++;
    }
    decode(8, positions);
    look_at(name, "decode-8", only);
    quern_backend.close(backend);
    model_free(model);
}

START_TEST(no_kernel_touches_more_memory_than_it_did)
{
    n_wrong = 0;
    if (written)
        fprintf(
            written,
            "# SPDX-License-Identifier: MIT\n"
            "# What kernels do to memory in one step (test_counts.c): launches, blocks of threads, sectors "
            "of 32\n"
            "# bytes, bytes that threads asked for, passes over shared memory, of them bank conflicts.\n");
    count_steps("Q4_K_M", BACKEND_KV_F16, true);
    count_steps("Q4_K_M", BACKEND_KV_Q8, true);
    count_steps("Q4_K_M", BACKEND_KV_Q4, true);
    count_steps("Q8_0", BACKEND_KV_F16, false);
    count_steps("BF16", BACKEND_KV_F16, false);
    count_hybrid_steps();
    ck_assert_uint_eq(n_wrong, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    if (!written) {
        tcase_add_test(tests, words_take_a_pass_for_each_that_meets_others_in_a_bank);
        tcase_add_test(tests, sixteen_bytes_a_thread_take_four_passes_without_conflicts);
        tcase_add_test(tests, one_word_for_all_is_one_pass_and_half_a_warp_is_a_warp);
        tcase_add_test(tests, rounds_of_a_loop_are_put_together_whoever_is_still_in_it);
        tcase_add_test(tests, memory_that_the_launch_before_may_write_is_not_touched_before_its_end);
    }
    tcase_add_test(tests, no_kernel_touches_more_memory_than_it_did);
}

int main(void)
{
    const char *wanted = getenv("QUERN_COUNTS");
    if (wanted && strcmp(wanted, "write") == 0)
        written = fopen(QUERN_KERNEL_COUNTS, "w");
    int failed = run_tests("counts", add);
    if (written)
        fclose(written);
    return failed;
}
