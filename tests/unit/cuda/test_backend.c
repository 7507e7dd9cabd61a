/* SPDX-License-Identifier: MIT */
/* The CUDA backend on the emulated device: what it says of itself and refuses, two steps in flight, and the
 * contract of engine/backend/backend.h.
 *
 * With an argument, a type of keys and values, the contract alone, of backends that keep them in it. */

#include "cuda/backend.h"
#include "tests/unit/run.h"
#include "tests/unit/engine/backend/backend_contract.h"
#include "tests/unit/cpu/small_model.h"
#include "engine/backend/kv_type.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_BLOCKS 6

struct fixture {
    struct model *model;
    struct backend *backend;
    uint32_t progressed;
};

static bool progress(void *arg)
{
    struct fixture *f = arg;
    f->progressed++;
    return false;
}

static void set_up(struct fixture *f, const char *type)
{
    *f = (struct fixture){.model = make_model(&small_shape, type)};
    const struct backend_config config = {.model = f->model,
                                          .n_slots = 3,
                                          .n_context = 96,
                                          .n_blocks = N_BLOCKS,
                                          .max_rows = 64,
                                          .progress = progress,
                                          .progress_arg = f};
    struct error err = {0};
    ck_assert_msg(quern_backend.open(&config, &f->backend, &err) == 0, "%s", err.text);
}

static void tear_down(struct fixture *f)
{
    quern_backend.close(f->backend);
    model_free(f->model);
}

START_TEST(the_backend_says_what_it_is)
{
    struct fixture f;
    struct backend_info info;
    set_up(&f, "F32");
    quern_backend.info(f.backend, &info);
    ck_assert_str_eq(info.device, "emulated (GPU 0)");
    ck_assert_uint_eq(info.n_groups, 1);
    ck_assert_uint_eq(info.groups[0].n_blocks, N_BLOCKS);
    ck_assert_uint_eq(info.groups[0].n_layers, 2);
    ck_assert_uint_eq(info.groups[0].block_bytes,
                      2 * 2 * 2 * 64 * 32 * 2); /* layers · K and V · heads · dim · tokens · f16 */
    ck_assert_uint_eq(info.most_flights, 2);
    ck_assert_uint_eq(info.max_rows, 64);
    ck_assert_int_eq(info.kv_type, BACKEND_KV_F16);
    ck_assert(info.kv_layout != 0 && info.weight_layout == 0);
    ck_assert(info.step_ms <= info.alone_ms && info.chunk_least <= info.chunk_most);
    ck_assert_uint_eq(info.memory_bytes, device_counts(backend_device(f.backend)).bytes);
    struct error err;
    ck_assert_int_eq(quern_backend.verdict(f.backend, &err), 0);
    tear_down(&f);
}
END_TEST

static struct backend_info info_of(const struct backend_ops *ops, const struct model *model,
                                   enum backend_kv_type kv_type)
{
    const struct backend_config config = {.model = model,
                                          .n_slots = 1,
                                          .n_context = 64,
                                          .n_blocks = 1024, /* some times what memory is rounded up to */
                                          .max_rows = 8,
                                          .kv_type = kv_type,
                                          .cpu = {.n_threads = 1}};
    struct backend *backend;
    struct backend_info info;
    struct error err = {0};
    ck_assert_msg(ops->open(&config, &backend, &err) == 0, "%s", err.text);
    ops->info(backend, &info);
    ops->close(backend);
    return info;
}

/* Blocks of one kind are never taken for those of another: nor the CPU's, which lie otherwise. */
START_TEST(blocks_in_8_bits_are_smaller_and_have_a_layout_of_their_own)
{
    struct model *model = make_model(&small_shape, "F32");
    const struct backend_info f16 = info_of(&quern_backend, model, BACKEND_KV_F16);
    const struct backend_info q8 = info_of(&quern_backend, model, BACKEND_KV_Q8);
    const struct backend_info q4 = info_of(&quern_backend, model, BACKEND_KV_Q4);
    const struct backend_info cpu = info_of(&backend_cpu, model, BACKEND_KV_Q8);
    const struct backend_info otherwise = info_of(&quern_backend, model, BACKEND_KV_DEFAULT);
    ck_assert_int_eq(f16.kv_type, BACKEND_KV_F16);
    ck_assert_int_eq(q8.kv_type, BACKEND_KV_Q8);
    ck_assert_uint_eq(q8.groups[0].block_bytes, f16.groups[0].block_bytes * 17 / 32);
    ck_assert_int_eq(q4.kv_type, BACKEND_KV_Q4);
    ck_assert_uint_eq(q4.groups[0].block_bytes, f16.groups[0].block_bytes * 9 / 32);
    ck_assert_uint_lt(q8.memory_bytes, f16.memory_bytes);
    ck_assert_uint_lt(q4.memory_bytes, q8.memory_bytes);
    ck_assert(q8.kv_layout != f16.kv_layout && q8.kv_layout != cpu.kv_layout);
    ck_assert(q4.kv_layout != f16.kv_layout && q4.kv_layout != q8.kv_layout);
    ck_assert(otherwise.kv_type == f16.kv_type && otherwise.kv_layout == f16.kv_layout);
    model_free(model);
}
END_TEST

START_TEST(what_it_cannot_do_is_refused_by_name)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    const uint32_t second[] = {1, 2};
    const struct backend_config good = {.model = f.model, .n_slots = 1, .n_context = 32, .max_rows = 8};
    struct backend_config bad[] = {good, good, good, good};
    bad[0].devices = second, bad[0].n_devices = 1;
    bad[1].devices = second, bad[1].n_devices = 2;
    bad[2].kv_type = BACKEND_KV_BF16;
    bad[3].n_slots = 0;
    const int expected[] = {-ENODEV, -ENODEV, -ENOTSUP, -EINVAL};
    const char *named[] = {"no emulated device 1", "one device", "not bf16", "slots"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct backend *unused;
        struct error err = {0};
        ck_assert_int_eq(quern_backend.open(&bad[i], &unused, &err), expected[i]);
        ck_assert_msg(strstr(err.text, named[i]) != NULL, "%s", err.text);
    }
    tear_down(&f);
}
END_TEST

/* The emulated device has 8 GiB. */
START_TEST(what_does_not_fit_is_refused_with_what_would)
{
    struct model *model = make_model(&small_shape, "Q8_0");
    const struct backend_config good = {.model = model, .n_slots = 1, .n_context = 1024, .max_rows = 8};
    struct backend_config bad[] = {good, good, good};
    bad[0].n_blocks = 10000000;
    bad[1].n_context = 4000000000u; /* its table alone */
    bad[1].n_blocks = 1;
    bad[2].max_rows = 100000000;
    const char *named[] = {"a context of 1024, shared by 1 sequences, would fit", " would fit",
                           "not even one sequence"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct backend *unused;
        struct error err = {0};
        ck_assert_int_eq(quern_backend.open(&bad[i], &unused, &err), -ENOMEM);
        ck_assert_msg(strstr(err.text, named[i]) != NULL, "%s", err.text);
        ck_assert_msg(strstr(err.text, "MiB are free") != NULL, "%s", err.text);
    }
    model_free(model);
}
END_TEST

/* Of a device that has room for one worker with all the blocks that it wants, and hardly more. */
START_TEST(sharers_take_a_part_each_of_what_there_is)
{
    struct model *model = make_model(&small_shape, "Q8_0");
    struct backend_config config = {.model = model, .n_slots = 4, .n_context = 8192, .max_rows = 8};
    const uint32_t n_wanted = 4 * 8192 / 32;
    char bytes[32];
    size_t total = 0;
    for (uint32_t n_sharers = 0; n_sharers <= 3; n_sharers++) {
        struct backend *backend;
        struct backend_info info;
        struct error err = {0};
        config.n_sharers = n_sharers;
        ck_assert_msg(quern_backend.open(&config, &backend, &err) == 0, "%s", err.text);
        quern_backend.info(backend, &info);
        quern_backend.close(backend);
        const size_t room = n_sharers ? (total - total / 32) / n_sharers : SIZE_MAX;
        const size_t block = info.groups[0].block_bytes;
        ck_assert_uint_le(info.memory_bytes, room);
        if (n_sharers <= 1) {
            ck_assert_uint_eq(info.groups[0].n_blocks, n_wanted);
        } else {
            ck_assert_uint_lt(info.groups[0].n_blocks, n_wanted);
            /* No other block would have fit. */
            ck_assert_uint_gt(info.memory_bytes + 2 * block + DEVICE_GRANULE, room);
        }
        if (n_sharers == 0) {
            total = info.memory_bytes + info.memory_bytes / 16;
            snprintf(bytes, sizeof bytes, "%zu", total);
            setenv("QUERN_EMU_BYTES", bytes, 1);
        }
    }
    unsetenv("QUERN_EMU_BYTES");
    model_free(model);
}
END_TEST

static struct backend_info info_with(const struct backend_config *config, const char *device_bytes)
{
    struct backend *backend;
    struct backend_info info;
    struct error err = {0};
    setenv("QUERN_EMU_BYTES", device_bytes, 1);
    setenv("QUERN_UNCHECKED", "1", 1);
    ck_assert_msg(quern_backend.open(config, &backend, &err) == 0, "%s", err.text);
    quern_backend.info(backend, &info);
    quern_backend.close(backend);
    unsetenv("QUERN_EMU_BYTES"); /* unchecked are those of other tests, too */
    return info;
}

/* The 32 blocks of a sequence take 1 MiB. */
START_TEST(slots_are_as_many_as_memory_holds_sequences_between_two_bounds)
{
    struct model *model = make_model(&small_shape, "Q8_0");
    const struct backend_config config = {
        .model = model, .n_slots = 3, .most_slots = 7, .n_context = 1024, .max_rows = 8};
    struct backend_config exact = config, few_rows = config, given = config;
    ck_assert_uint_eq(info_with(&config, "800000000").n_slots, 7);
    ck_assert_uint_eq(info_with(&config, "800000000").groups[0].n_blocks, 7 * 32);
    const uint32_t step = test_is_scaled() ? 2 : 1;
    uint32_t least = 7, between = 0;
    char bytes[24];
    /* With less memory never more slots, nor fewer than were asked for. */
    for (uint32_t half_mib = 80; half_mib > 0 && least > 3; half_mib -= step) {
        snprintf(bytes, sizeof bytes, "%u", half_mib << 19);
        const struct backend_info info = info_with(&config, bytes);
        ck_assert_uint_le(info.n_slots, least);
        ck_assert_uint_ge(info.n_slots, 3);
        if (info.n_slots > 3)
            ck_assert_uint_ge(info.groups[0].n_blocks, info.n_slots * 32);
        between += info.n_slots > 3 && info.n_slots < 7;
        least = info.n_slots;
    }
    ck_assert_uint_eq(least, 3);
    ck_assert_uint_gt(between, 0);
    exact.most_slots = 0;
    ck_assert_uint_eq(info_with(&exact, "800000000").n_slots, 3);
    few_rows.max_rows = 5; /* a step has a row for each */
    ck_assert_uint_eq(info_with(&few_rows, "800000000").n_slots, 5);
    given.n_blocks = 4 * 32 + 31;
    ck_assert_uint_eq(info_with(&given, "800000000").n_slots, 4);
    ck_assert_uint_eq(info_with(&given, "800000000").groups[0].n_blocks, 4 * 32 + 31);
    model_free(model);
}
END_TEST

/* ---- flights ---- */

#define N_PROMPT 40

static const uint32_t blocks[] = {3, 5, 1, 0};
static const struct backend_slot greedy = {.sampling = {SAMPLING_OFF}, .end_position = 90};

static struct backend_row_set whole_prompt(const int32_t *prompt)
{
    return (struct backend_row_set){
        .ids = prompt, .n_ids = N_PROMPT, .blocks = {{blocks, 2, 0}}, .output = BACKEND_SAMPLE_LAST};
}

static struct backend_row_set next_at(uint32_t position)
{
    return (struct backend_row_set){
        .position = position, .n_ids = 1, .blocks = {{.told = 2}}, .output = BACKEND_SAMPLE_LAST};
}

static uint64_t submit(struct fixture *f, const struct backend_row_set *set)
{
    const struct backend_step step = {set, 1};
    uint64_t ticket;
    ck_assert_int_eq(quern_backend.submit(f->backend, &step, &ticket), 0);
    return ticket;
}

static const struct backend_result *read_it(struct fixture *f, uint64_t ticket)
{
    const struct backend_result *results;
    int r;
    do
        r = quern_backend.poll(f->backend, ticket, 100, &results, NULL);
    while (r == -EAGAIN);
    ck_assert_int_eq(r, 0);
    return results;
}

static void make_prompt(int32_t prompt[N_PROMPT])
{
    for (int32_t i = 0; i < N_PROMPT; i++)
        prompt[i] = (7 + i * 31) % 400;
}

START_TEST(a_step_is_submitted_before_the_one_ahead_is_read)
{
    struct fixture f;
    int32_t prompt[N_PROMPT], ids[6], ahead[6];
    set_up(&f, "Q8_0");
    make_prompt(prompt);
    /* One after the other, then each while the one before is under way. */
    ck_assert_int_eq(quern_backend.slot_open(f.backend, 0, &greedy), 0);
    struct backend_row_set set = whole_prompt(prompt);
    ids[0] = read_it(&f, submit(&f, &set))->ids[0];
    for (uint32_t i = 1; i < 6; i++) {
        set = next_at(N_PROMPT + i - 1);
        ids[i] = read_it(&f, submit(&f, &set))->ids[0];
    }
    quern_backend.slot_close(f.backend, 0);
    ck_assert_int_eq(quern_backend.slot_open(f.backend, 0, &greedy), 0);
    set = whole_prompt(prompt);
    uint64_t first = submit(&f, &set);
    for (uint32_t i = 1; i < 6; i++) {
        set = next_at(N_PROMPT + i - 1);
        uint64_t second = submit(&f, &set);
        const struct backend_step third = {&set, 1};
        ck_assert_int_eq(quern_backend.submit(f.backend, &third, &(uint64_t){0}), -EINVAL);
        ahead[i - 1] = read_it(&f, first)->ids[0];
        first = second;
    }
    ahead[5] = read_it(&f, first)->ids[0];
    ck_assert_mem_eq(ids, ahead, sizeof ids);
    tear_down(&f);
}
END_TEST

START_TEST(what_was_on_its_way_at_the_end_is_surplus)
{
    struct fixture f;
    int32_t prompt[N_PROMPT];
    struct backend_slot ending = greedy;
    ending.end_position = N_PROMPT + 2;
    set_up(&f, "Q8_0");
    make_prompt(prompt);
    ck_assert_int_eq(quern_backend.slot_open(f.backend, 0, &ending), 0);
    struct backend_row_set set = whole_prompt(prompt);
    uint64_t first = submit(&f, &set);
    set = next_at(N_PROMPT);
    uint64_t second = submit(&f, &set);
    ck_assert_int_eq(read_it(&f, first)->end, BACKEND_RUNNING);
    set = next_at(N_PROMPT + 1);
    uint64_t third = submit(&f, &set);
    const struct backend_result *result = read_it(&f, second);
    ck_assert_uint_eq(result->n_ids, 1);
    ck_assert_int_eq(result->end, BACKEND_END_LENGTH);
    result = read_it(&f, third);
    ck_assert_uint_eq(result->n_ids, 0);
    ck_assert_int_eq(result->end, BACKEND_END_LENGTH);
    /* It did not move: the slot goes on from where it ended. */
    quern_backend.trim(f.backend, 0, N_PROMPT + 1, 0);
    set = next_at(N_PROMPT + 1);
    set.ids = prompt;
    ck_assert_uint_eq(read_it(&f, submit(&f, &set))->n_ids, 1);
    tear_down(&f);
}
END_TEST

START_TEST(a_prompt_is_fed_in_chunks_that_are_not_waited_for)
{
    struct fixture f;
    int32_t prompt[N_PROMPT];
    float whole[405], cut[405];
    set_up(&f, "Q8_0");
    make_prompt(prompt);
    for (int chunked = 0; chunked < 2; chunked++) {
        struct backend_row_set set = whole_prompt(prompt);
        uint64_t first = 0;
        ck_assert_int_eq(quern_backend.slot_open(f.backend, 0, &greedy), 0);
        if (chunked) {
            set.n_ids = 23;
            set.output = BACKEND_OUTPUT_NONE;
            first = submit(&f, &set);
            set = next_at(23);
            set.ids = prompt + 23;
            set.n_ids = N_PROMPT - 23;
        }
        set.output = BACKEND_LOGITS_LAST;
        set.logits = chunked ? cut : whole;
        uint64_t last = submit(&f, &set);
        if (chunked)
            ck_assert_uint_eq(read_it(&f, first)->n_ids, 0);
        read_it(&f, last);
        quern_backend.slot_close(f.backend, 0);
    }
    for (int i = 0; i < 405; i++)
        ck_assert_float_eq_tol(whole[i], cut[i], 1e-3f);
    tear_down(&f);
}
END_TEST

START_TEST(logits_of_all_rows_are_those_of_each)
{
    struct fixture f;
    int32_t prompt[N_PROMPT];
    static float all[N_PROMPT][405], last[405]; /* more rows than go to the host at once */
    set_up(&f, "Q8_0");
    make_prompt(prompt);
    struct backend_row_set set = whole_prompt(prompt);
    set.output = BACKEND_LOGITS_ALL;
    set.logits = all[0];
    ck_assert_int_eq(quern_backend.slot_open(f.backend, 0, &greedy), 0);
    read_it(&f, submit(&f, &set));
    for (uint32_t i = N_PROMPT; i-- > 0;) {
        if (i % 13 != 0)
            continue;
        const uint32_t told = backend_blocks_for(i);
        quern_backend.trim(f.backend, 0, i, 0);
        set = next_at(i);
        set.ids = prompt + i;
        set.blocks[0] = (struct backend_blocks){blocks + told, backend_blocks_for(i + 1) - told, told};
        set.output = BACKEND_LOGITS_LAST;
        set.logits = last;
        read_it(&f, submit(&f, &set));
        for (int j = 0; j < 405; j++)
            ck_assert_float_eq_tol(all[i][j], last[j], 1e-3f);
    }
    tear_down(&f);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, the_backend_says_what_it_is);
    tcase_add_test(tests, blocks_in_8_bits_are_smaller_and_have_a_layout_of_their_own);
    tcase_add_test(tests, what_it_cannot_do_is_refused_by_name);
    tcase_add_test(tests, what_does_not_fit_is_refused_with_what_would);
    tcase_add_test(tests, sharers_take_a_part_each_of_what_there_is);
    tcase_add_test(tests, slots_are_as_many_as_memory_holds_sequences_between_two_bounds);
    tcase_add_test(tests, a_step_is_submitted_before_the_one_ahead_is_read);
    tcase_add_test(tests, what_was_on_its_way_at_the_end_is_surplus);
    tcase_add_test(tests, a_prompt_is_fed_in_chunks_that_are_not_waited_for);
    tcase_add_test(tests, logits_of_all_rows_are_those_of_each);
    backend_contract_add(tests, &quern_backend, false);
}

static enum backend_kv_type kept_in;

static int open_with_kv(const struct backend_config *config, struct backend **ret_backend, struct error *err)
{
    struct backend_config with_kv = *config;
    with_kv.kv_type = kept_in;
    return quern_backend.open(&with_kv, ret_backend, err);
}

static void add_contract(TCase *tests)
{
    static struct backend_ops ops;
    ops = quern_backend;
    ops.open = open_with_kv;
    tcase_set_timeout(tests, 240);
    backend_contract_add(tests, &ops, false);
}

int main(int argc, char **argv)
{
    struct error err = {0};
    if (argc > 1 && kv_type_by_name(argv[1], &kept_in, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    return run_tests("cuda backend", argc > 1 ? add_contract : add);
}
