/* SPDX-License-Identifier: MIT */
/* The promise that a request's logits are the same bytes, whatever it shares the machine with: alone or in a
 * batch, in chunks of any size, on one thread or two, after a preemption. */

#include "engine/backend/backend.h"
#include "cpu/kernels/kernels.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/random_weights.h"
#include "tests/unit/cpu/small_model.h"

#define N_IDS    75
#define N_SLOTS  16
#define N_BLOCKS 64

/* A backend and who holds which of its blocks. */
struct rig {
    struct backend *backend;
    const struct model *model;
    uint32_t order[N_BLOCKS], next; /* blocks in the order they are handed out */
    uint32_t held[N_SLOTS];         /* blocks of each slot */
    uint32_t n_groups;
};

struct variant {
    const char *kernels; /* as $QUERN_KERNELS */
    bool float_activations;
    enum backend_kv_type kv_type;
};

static void open_slot(struct rig *rig, uint32_t slot)
{
    struct backend_slot params = {.sampling = {SAMPLING_OFF}, .end_position = 10000};
    ck_assert_int_eq(backend_cpu.slot_open(rig->backend, slot, &params), 0);
    rig->held[slot] = 0;
}

static struct rig open_rig(const struct model *model, struct variant variant, uint32_t n_threads)
{
    struct backend_config config = {
        .model = model,
        .n_slots = N_SLOTS,
        .n_context = 128,
        .n_blocks = N_BLOCKS,
        .max_rows = 256,
        .kv_type = variant.kv_type,
        .cpu = {.n_threads = n_threads, .float_activations = variant.float_activations}};
    setenv("QUERN_KERNELS", variant.kernels, 1);
    struct rig rig = {.model = model};
    struct error err = {0};
    ck_assert_msg(backend_cpu.open(&config, &rig.backend, &err) == 0, "%s", err.text);
    struct backend_info info;
    backend_cpu.info(rig.backend, &info);
    rig.n_groups = info.n_groups;
    for (uint32_t i = 0; i < N_BLOCKS; i++)
        rig.order[i] = i * 27 % N_BLOCKS; /* 27 and 64 share no factor: each block once, none in order */
    for (uint32_t i = 0; i < N_SLOTS; i++)
        open_slot(&rig, i);
    return rig;
}

/* Ids that differ from slot to slot. */
static const int32_t *ids_of(uint32_t slot, int32_t ids[N_IDS])
{
    for (uint32_t i = 0; i < N_IDS; i++)
        ids[i] = (int32_t)((slot * 131 + i * i * 17 + i * 3) % 360);
    return ids;
}

static struct backend_row_set rows_of(struct rig *rig, uint32_t slot, uint32_t position, uint32_t n,
                                      const int32_t *ids, float *logits)
{
    uint32_t have = rig->held[slot], need = (position + n + 31) / 32;
    struct backend_row_set set = {.slot = slot,
                                  .position = position,
                                  .n_ids = n,
                                  .ids = ids + position,
                                  .blocks = {{rig->order + rig->next, need - have, have}},
                                  .output = BACKEND_LOGITS_ALL,
                                  .logits = logits + (size_t)position * rig->model->params.n_vocab};
    for (uint32_t g = 1; g < rig->n_groups; g++) /* of each as many */
        set.blocks[g] = set.blocks[0];
    rig->next += need - have;
    rig->held[slot] = need;
    ck_assert_uint_le(rig->next, N_BLOCKS);
    return set;
}

static void run_step(struct rig *rig, const struct backend_row_set *sets, uint32_t n)
{
    struct backend_step step = {sets, n};
    const struct backend_result *results;
    uint64_t ticket;
    ck_assert_int_eq(backend_cpu.submit(rig->backend, &step, &ticket), 0);
    ck_assert_int_eq(backend_cpu.poll(rig->backend, ticket, 0, &results, NULL), 0);
}

/* Feeds slot with the ids that are `whose` own. */
static void feed(struct rig *rig, uint32_t slot, uint32_t whose, uint32_t from, uint32_t to, uint32_t chunk,
                 float *logits)
{
    int32_t ids[N_IDS];
    ids_of(whose, ids);
    for (uint32_t position = from; position < to;) {
        uint32_t n = to - position < chunk ? to - position : chunk;
        struct backend_row_set set = rows_of(rig, slot, position, n, ids, logits);
        run_step(rig, &set, 1);
        position += n;
    }
}

struct logits {
    float *alone, *again; /* [N_IDS][n_vocab] */
    size_t bytes;
};

static void must_be_equal(const struct logits *l, const char *what)
{
    for (size_t i = 0; i < l->bytes / sizeof(float); i++)
        ck_assert_msg(memcmp(&l->alone[i], &l->again[i], sizeof(float)) == 0,
                      "%s: logit %zu is %.9g, alone it was %.9g", what, i, l->again[i], l->alone[i]);
    memset(l->again, 0, l->bytes);
}

static void in_chunks(const struct model *model, struct variant variant, const struct logits *l)
{
    static const uint32_t chunks[] = {1, 7, 32, 512};
    /* With eight, attention has fewer tasks than threads and divides its heads. */
    for (uint32_t n_threads = 1; n_threads <= 8; n_threads = n_threads == 2 ? 8 : n_threads + 1) {
        struct rig rig = open_rig(model, variant, n_threads);
        for (uint32_t i = 0; i < 4; i++) {
            feed(&rig, 3 + i, 3, 0, N_IDS, chunks[i], l->again);
            char what[64];
            snprintf(what, sizeof what, "chunks of %u on %u threads", chunks[i], n_threads);
            must_be_equal(l, what);
        }
        backend_cpu.close(rig.backend);
    }
}

/* Slot 3 among fifteen others, each at its own pace. */
static void in_a_batch(const struct model *model, struct variant variant, const struct logits *l)
{
    struct rig rig = open_rig(model, variant, 2);
    float *others = malloc(l->bytes * N_SLOTS); /* several threads hand out logits at once */
    int32_t ids[N_SLOTS][N_IDS];
    uint32_t at[N_SLOTS] = {0};
    while (at[3] < N_IDS) {
        struct backend_row_set sets[N_SLOTS];
        uint32_t n_sets = 0;
        for (uint32_t slot = 0; slot < N_SLOTS; slot++) {
            uint32_t wanted = 1 + (at[3] + slot * 5) % 13,
                     n = N_IDS - at[slot] < wanted ? N_IDS - at[slot] : wanted;
            if (n == 0)
                continue;
            sets[n_sets++] = rows_of(&rig, slot, at[slot], n, ids_of(slot, ids[slot]),
                                     slot == 3 ? l->again : others + slot * (l->bytes / sizeof *others));
            at[slot] += n;
        }
        run_step(&rig, sets, n_sets);
    }
    free(others);
    backend_cpu.close(rig.backend);
    must_be_equal(l, "in a batch of 16");
}

/* The slot is taken away halfway; what it had is computed again in other blocks and other chunks. */
static void after_a_preemption(const struct model *model, struct variant variant, const struct logits *l)
{
    struct rig rig = open_rig(model, variant, 2);
    feed(&rig, 3, 3, 0, 41, 1, l->again);
    backend_cpu.slot_close(rig.backend, 3);
    feed(&rig, 9, 9, 0, N_IDS, 20, l->again);
    memset(l->again, 0, l->bytes);
    open_slot(&rig, 3);
    feed(&rig, 3, 3, 0, 41, 64, l->again);
    feed(&rig, 3, 3, 41, N_IDS, 1, l->again);
    backend_cpu.close(rig.backend);
    must_be_equal(l, "after a preemption");
}

static void check_variant(const struct model *model, struct variant variant)
{
    struct logits l = {.bytes = (size_t)N_IDS * model->params.n_vocab * sizeof(float)};
    l.alone = calloc(1, l.bytes);
    l.again = calloc(1, l.bytes);
    struct rig rig = open_rig(model, variant, 1);
    feed(&rig, 3, 3, 0, N_IDS, 512, l.alone);
    backend_cpu.close(rig.backend);
    in_chunks(model, variant, &l);
    in_a_batch(model, variant, &l);
    after_a_preemption(model, variant, &l);
    free(l.alone);
    free(l.again);
}

/* On the best build of the kernels; with `all` on every build, and with float activations. What a build does
 * to the rows of each format test_products.c holds. */
static void check_kept_in(enum backend_kv_type kv_type, const struct synth_shape *shape, const char *type,
                          bool all)
{
    struct model *model = make_model(shape, type);
    const struct kernels *kernels;
    for (uint32_t i = 0; (kernels = kernels_at(i)) && (all || i == 0); i++)
        check_variant(model, (struct variant){.kernels = kernels->name, .kv_type = kv_type});
    if (all)
        check_variant(model, (struct variant){.kernels = kernels_at(0)->name, .float_activations = true});
    model_free(model);
}

static void check(const struct synth_shape *shape, const char *type, bool all)
{
    check_kept_in(BACKEND_KV_F16, shape, type, all);
}

START_TEST(logits_are_the_same_bytes_whatever_goes_on_beside_them)
{
    static const char *const types[] = {"Q4_K_M", "F32", "Q8_0", "Q4_0", "Q5_K_M"};
    check(&small_shape, types[_i], _i == 0);
}
END_TEST

/* Each row has experts of its own; whoever shares them changes nothing. */
START_TEST(experts_are_no_exception)
{
    static const char *const types[] = {"Q4_K_M", "F32"};
    struct synth_shape shape = _i == 0 ? small_shape : odd_shape;
    shape.n_experts = 7;
    shape.n_experts_used = 3;
    shape.n_expert_ff = _i == 0 ? 256 : 21;
    check(&shape, types[_i], false);
}
END_TEST

/* A state is the same bits however its rows came, and a slot's own. */
START_TEST(recurrent_layers_are_no_exception)
{
    static const char *const types[] = {"Q4_K_M", "F32", "F32"};
    check(_i == 2 ? &odd_hybrid_shape : &hybrid_shape, types[_i], _i == 1);
}
END_TEST

START_TEST(layers_that_differ_are_no_exception)
{
    struct synth_shape shape = _i == 2 ? borrowing_shape : differing_shape;
    if (_i == 1) {
        shape.n_experts = 7;
        shape.n_experts_used = 3;
        shape.n_expert_ff = 64;
    }
    check(&shape, _i == 2 ? "F16" : "Q4_K_M", false);
}
END_TEST

START_TEST(odd_shapes_are_no_exception)
{
    static const char *const types[] = {"F32", "F16", "BF16"};
    check(&odd_shape, types[_i], false);
}
END_TEST

START_TEST(types_of_keys_and_values_are_no_exception)
{
    static const enum backend_kv_type types[] = {BACKEND_KV_Q8, BACKEND_KV_BF16, BACKEND_KV_F32,
                                                 BACKEND_KV_Q4};
    check_kept_in(types[_i / 2], _i % 2 ? &odd_shape : &small_shape, _i % 2 ? "F16" : "Q8_0", false);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, experts_are_no_exception, 0, 2);
    tcase_add_loop_test(tests, logits_are_the_same_bytes_whatever_goes_on_beside_them, 0, 5);
    tcase_add_loop_test(tests, recurrent_layers_are_no_exception, 0, 3);
    tcase_add_loop_test(tests, layers_that_differ_are_no_exception, 0, 3);
    tcase_add_loop_test(tests, odd_shapes_are_no_exception, 0, 3);
    tcase_add_loop_test(tests, types_of_keys_and_values_are_no_exception, 0, 8);
}

int main(void)
{
    return run_tests("invariance", add);
}
