/* SPDX-License-Identifier: MIT */
/* The CPU backend: what it says of itself, and the contract of engine/backend/backend.h. */

#include "engine/backend/backend.h"
#include "engine/backend/give_back.h"
#include "tests/unit/run.h"
#include "tests/unit/engine/backend/backend_contract.h"
#include "tests/unit/cpu/small_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define N_BLOCKS 6

struct fixture {
    struct model *model;
    struct backend *backend;
    uint32_t layers_seen;
};

static bool progress(void *arg)
{
    struct fixture *f = arg;
    f->layers_seen++;
    return false;
}

static void set_up(struct fixture *f, const char *type)
{
    *f = (struct fixture){.model = make_model(&small_shape, type)};
    struct backend_config config = {.model = f->model,
                                    .n_slots = 2,
                                    .n_context = 96,
                                    .n_blocks = N_BLOCKS,
                                    .max_rows = 64,
                                    .cpu = {.n_threads = 2},
                                    .progress = progress,
                                    .progress_arg = f};
    struct error err = {0};
    ck_assert_msg(backend_cpu.open(&config, &f->backend, &err) == 0, "%s", err.text);
    /* Each matrix packed is progress, and so are the head and the embeddings. */
    ck_assert_uint_eq(f->layers_seen, 7 * small_shape.n_layers + 2);
    f->layers_seen = 0;
}

static void tear_down(struct fixture *f)
{
    backend_cpu.close(f->backend);
    model_free(f->model);
}

START_TEST(the_backend_says_what_it_is)
{
    struct fixture f;
    struct backend_info info;
    set_up(&f, "F32");
    backend_cpu.info(f.backend, &info);
    ck_assert_ptr_nonnull(strstr(info.device, "cpu "));
    ck_assert_ptr_nonnull(strstr(info.device, "2 threads"));
    ck_assert_uint_eq(info.n_groups, 1);
    ck_assert_uint_eq(info.groups[0].n_blocks, N_BLOCKS);
    ck_assert_uint_eq(info.groups[0].n_layers, 2);
    ck_assert_uint_eq(info.groups[0].block_bytes,
                      2 * 2 * 2 * 64 * 32 * 2); /* layers · K and V · heads · dim · tokens · f16 */
    ck_assert_uint_eq(info.most_flights, 1);
    ck_assert_int_eq(info.kv_type, BACKEND_KV_F16);
    ck_assert(info.kv_layout != 0 && info.weight_layout != 0);
    ck_assert(info.step_ms <= info.alone_ms && info.chunk_least <= info.chunk_most);
    /* Kernels are as fast at eight rows; with more a large model has no step within its budget. */
    ck_assert_uint_le(info.chunk_least, 8);
    struct error err;
    ck_assert_int_eq(backend_cpu.verdict(f.backend, &err), 0);
    size_t matrices =
        2 * (256 * 256 * 2 + 128 * 256 * 2 + 3 * 512 * 256) + (405 + 3) * 256; /* head padded to 8 */
    ck_assert_uint_eq(info.weight_bytes, (matrices + 256) * 4);
    tear_down(&f);
}
END_TEST

static const struct backend_kernel *phase_of(const struct backend_kernel *kernels, uint32_t n,
                                             const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}

/* A prompt of eight ids, in slot 0. */
static void feed_eight(struct backend *backend)
{
    static const int32_t ids[] = {3, 4, 5, 6, 7, 8, 9, 10};
    static const uint32_t block = 0;
    const struct backend_row_set set = {
        .ids = ids, .n_ids = 8, .blocks = {{&block, 1, 0}}, .output = BACKEND_SAMPLE_LAST};
    const struct backend_slot slot = {.sampling = SAMPLING_GREEDY, .end_position = 90};
    const struct backend_step step = {&set, 1};
    const struct backend_result *results;
    struct error err;
    uint64_t ticket;
    ck_assert_int_eq(backend_cpu.slot_open(backend, 0, &slot), 0);
    ck_assert_int_eq(backend_cpu.submit(backend, &step, &ticket), 0);
    ck_assert_int_eq(backend_cpu.poll(backend, ticket, 0, &results, &err), 0);
    backend_cpu.slot_close(backend, 0);
}

START_TEST(a_profile_has_every_phase_of_a_pass_since_the_last_look)
{
    struct model *model = make_model(&small_shape, "Q8_0");
    const struct backend_config config = {.model = model,
                                          .n_slots = 1,
                                          .n_context = 96,
                                          .n_blocks = 3,
                                          .max_rows = 32,
                                          .profile = true,
                                          .cpu = {.n_threads = 2}};
    const struct backend_kernel *kernels, *phase;
    struct backend *backend;
    struct error err = {0};
    ck_assert_msg(backend_cpu.open(&config, &backend, &err) == 0, "%s", err.text);
    feed_eight(backend);
    const uint32_t n = backend_cpu.profile(backend, &kernels);
    phase = phase_of(kernels, n, "q k v Q8_0");
    ck_assert_ptr_nonnull(phase);
    ck_assert_uint_eq(phase->n, small_shape.n_layers);
    ck_assert_uint_eq(phase->macs, 2ull * 8 * (256 + 2 * 128) * 256);
    ck_assert_uint_ge(phase->bytes, 2 * (256 + 2 * 128) * 256 / 32 * 34);
    ck_assert_uint_gt(phase->ns, 0);
    ck_assert_uint_eq(phase_of(kernels, n, "down Q8_0")->n, small_shape.n_layers);
    phase = phase_of(kernels, n, "head Q8_0");
    ck_assert_uint_eq(phase->n, 1);
    ck_assert_uint_eq(phase->macs, 405 * 256);
    ck_assert_uint_eq(phase_of(kernels, n, "attention")->n, small_shape.n_layers);
    ck_assert_uint_eq(backend_cpu.profile(backend, &kernels), 0);
    feed_eight(backend);
    ck_assert_uint_eq(backend_cpu.profile(backend, &kernels), n);
    ck_assert_uint_eq(phase_of(kernels, n, "q k v Q8_0")->n, small_shape.n_layers);
    backend_cpu.close(backend);
    model_free(model);
}
END_TEST

/* In any order of the formats: attention's values have a finer one than queries and keys. */
START_TEST(a_phase_of_several_formats_names_each_once)
{
    struct model *model = make_model(&small_shape, "Q4_K_M");
    const struct backend_config config = {.model = model,
                                          .n_slots = 1,
                                          .n_context = 96,
                                          .n_blocks = 3,
                                          .max_rows = 32,
                                          .profile = true,
                                          .cpu = {.n_threads = 1}};
    const struct backend_kernel *kernels;
    struct backend *backend;
    struct error err = {0};
    ck_assert_msg(backend_cpu.open(&config, &backend, &err) == 0, "%s", err.text);
    feed_eight(backend);
    const uint32_t n = backend_cpu.profile(backend, &kernels);
    ck_assert_ptr_nonnull(phase_of(kernels, n, "q k v Q4_K+Q6_K"));
    ck_assert_ptr_nonnull(phase_of(kernels, n, "output Q4_K"));
    backend_cpu.close(backend);
    model_free(model);
}
END_TEST

/* In the middle of an answer; block 0 is held, and the others of the six are not. */
START_TEST(between_steps_memory_is_given_back_and_answers_stay_the_same)
{
    static const uint32_t block = 0, idle_blocks[] = {1, 2, 3, 4, 5};
    static const int32_t prompt[] = {3, 4, 5, 6, 7, 8, 9, 10};
    const struct backend_idle idle = {.blocks = {idle_blocks}, .n_blocks = {5}};
    const struct backend_slot slot = {.sampling = SAMPLING_GREEDY, .end_position = 90};
    struct backend_given given = {0};
    int32_t ids[2][12];
    struct fixture f;
    set_up(&f, "Q8_0");
    for (int gives = 0; gives < 2; gives++) {
        ck_assert_int_eq(backend_cpu.slot_open(f.backend, 0, &slot), 0);
        for (uint32_t i = 0; i < 12; i++) {
            const struct backend_row_set set = {.ids = i == 0 ? prompt : NULL,
                                                .n_ids = i == 0 ? 8 : 1,
                                                .position = i == 0 ? 0 : 7 + i,
                                                .blocks = {{&block, i == 0, i > 0}},
                                                .output = BACKEND_SAMPLE_LAST};
            const struct backend_step step = {&set, 1};
            const struct backend_result *results;
            struct error err;
            uint64_t ticket;
            ck_assert_int_eq(backend_cpu.submit(f.backend, &step, &ticket), 0);
            ck_assert_int_eq(backend_cpu.poll(f.backend, ticket, 0, &results, &err), 0);
            ids[gives][i] = results[0].ids[0];
            if (gives) {
                ck_assert_int_eq(backend_cpu_give_back(f.backend, &idle, &given), 0);
                ck_assert_uint_gt(given.workspace, 0);
                ck_assert_uint_eq(given.library + given.staging + given.states, 0);
            }
        }
        backend_cpu.slot_close(f.backend, 0);
    }
    ck_assert_mem_eq(ids[0], ids[1], sizeof *ids);
    ck_assert_uint_eq(given.kv, 0); /* none was ever written */
    const struct backend_idle all = {.blocks = {(const uint32_t[]){0}}, .n_blocks = {1}};
    ck_assert_int_eq(backend_cpu_give_back(f.backend, &all, &given), 0);
    ck_assert_uint_gt(given.kv, 0);
    tear_down(&f);
}
END_TEST

START_TEST(what_it_cannot_do_is_refused_by_name)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    const uint32_t second = 1;
    const struct backend_config good = {.model = f.model, .n_slots = 1, .n_context = 32, .max_rows = 8};
    const uint32_t two[] = {0, 0};
    struct backend_config bad[] = {good, good, good, good, good};
    bad[0].devices = &second, bad[0].n_devices = 1;
    bad[1].n_blocks = UINT32_MAX;
    bad[2].n_slots = 0;
    bad[3].n_context = 0;
    bad[4].devices = two, bad[4].n_devices = 2;
    const int expected[] = {-ENODEV, -E2BIG, -EINVAL, -EINVAL, -ENODEV};
    const char *named[] = {"the only cpu device is number 0; requested: 1, from number 1 on",
                           "4294967295 KV blocks of ", "slots and context must be at least 1",
                           "slots and context must be at least 1",
                           "the only cpu device is number 0; requested: 2, from number 0 on"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct backend *unused;
        struct error err = {0};
        ck_assert_int_eq(backend_cpu.open(&bad[i], &unused, &err), expected[i]);
        ck_assert_msg(strstr(err.text, named[i]) != NULL, "%s", err.text);
    }
    tear_down(&f);
}
END_TEST

START_TEST(kernels_that_the_machine_has_not_are_named)
{
    struct fixture f;
    struct backend *unused;
    struct error err = {0};
    set_up(&f, "Q8_0");
    const struct backend_config config = {.model = f.model, .n_slots = 1, .n_context = 32, .max_rows = 8};
    setenv("QUERN_KERNELS", "abacus", 1);
    ck_assert_int_eq(backend_cpu.open(&config, &unused, &err), -EINVAL);
    unsetenv("QUERN_KERNELS");
    ck_assert_str_eq(err.text, "QUERN_KERNELS: no kernels \"abacus\" on this machine");
    tear_down(&f);
}
END_TEST

START_TEST(a_state_begins_at_a_border_of_blocks)
{
    struct backend *backend;
    struct error err = {0};
    struct model *model = make_model(&hybrid_shape, "Q8_0");
    const struct backend_config config = {
        .model = model, .n_slots = 1, .n_context = 96, .max_rows = 8, .n_snapshots = 2};
    struct backend_slot slot = {.sampling = SAMPLING_GREEDY, .end_position = 90, .position = 31};
    ck_assert_msg(backend_cpu.open(&config, &backend, &err) == 0, "%s", err.text);
    ck_assert_int_eq(backend_cpu.slot_open(backend, 0, &slot), -EINVAL);
    slot.position = 33;
    ck_assert_int_eq(backend_cpu.slot_open(backend, 0, &slot), -EINVAL);
    slot.position = 32;
    ck_assert_int_eq(backend_cpu.slot_open(backend, 0, &slot), 0);
    backend_cpu.close(backend);
    model_free(model);
}
END_TEST

START_TEST(a_slot_has_bounds)
{
    struct fixture f;
    struct backend_info info;
    set_up(&f, "Q8_0");
    backend_cpu.info(f.backend, &info);
    int32_t *stop_ids = calloc(info.most_stop_ids + 1, sizeof *stop_ids);
    const struct backend_slot good = {.sampling = SAMPLING_GREEDY,
                                      .end_position = 90,
                                      .stop_ids = stop_ids,
                                      .n_stop_ids = info.most_stop_ids};
    struct backend_slot bad[] = {good, good};
    bad[0].n_stop_ids++;
    bad[1].embeds = true, bad[1].position = BACKEND_BLOCK_TOKENS;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(backend_cpu.slot_open(f.backend, 0, &bad[i]) == -EINVAL, "case %zu was taken", i);
    ck_assert_int_eq(backend_cpu.slot_open(f.backend, 2, &good), -EINVAL);
    ck_assert_int_eq(backend_cpu.slot_open(f.backend, 1, &good), 0);
    ck_assert_int_eq(backend_cpu.slot_open(f.backend, 1, &good), -EINVAL);
    backend_cpu.slot_close(f.backend, 1);
    ck_assert_int_eq(backend_cpu.slot_open(f.backend, 1, &good), 0);
    free(stop_ids);
    tear_down(&f);
}
END_TEST

START_TEST(a_ticket_that_is_not_open_is_named)
{
    struct fixture f;
    struct error err = {0};
    const struct backend_result *results;
    set_up(&f, "Q8_0");
    ck_assert_int_eq(backend_cpu.poll(f.backend, 7, 0, &results, &err), -EINVAL);
    ck_assert_str_eq(err.text, "no ticket 7 is open");
    tear_down(&f);
}
END_TEST

START_TEST(progress_is_called_after_each_layer)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    const struct backend_slot greedy = {.sampling = SAMPLING_GREEDY, .end_position = 100};
    const int32_t ids[] = {5, 17, 300};
    const uint32_t block = 2;
    const struct backend_row_set set = {.ids = ids, .n_ids = 3, .blocks = {{&block, 1, 0}}};
    const struct backend_step step = {&set, 1};
    uint64_t ticket;
    ck_assert_int_eq(backend_cpu.slot_open(f.backend, 0, &greedy), 0);
    ck_assert_int_eq(backend_cpu.submit(f.backend, &step, &ticket), 0);
    ck_assert_uint_eq(f.layers_seen, small_shape.n_layers);
    tear_down(&f);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_backend_says_what_it_is);
    tcase_add_test(tests, a_phase_of_several_formats_names_each_once);
    tcase_add_test(tests, a_profile_has_every_phase_of_a_pass_since_the_last_look);
    tcase_add_test(tests, between_steps_memory_is_given_back_and_answers_stay_the_same);
    tcase_add_test(tests, what_it_cannot_do_is_refused_by_name);
    tcase_add_test(tests, kernels_that_the_machine_has_not_are_named);
    tcase_add_test(tests, a_state_begins_at_a_border_of_blocks);
    tcase_add_test(tests, a_slot_has_bounds);
    tcase_add_test(tests, a_ticket_that_is_not_open_is_named);
    tcase_add_test(tests, progress_is_called_after_each_layer);
    backend_contract_add(tests, &backend_cpu, true);
}

int main(void)
{
    return run_tests("cpu backend", add);
}
