/* SPDX-License-Identifier: MIT */
/* The sums that an embedding is made of are the same bytes however the prompt is cut, on any number of
 * threads, alone or beside sequences that decode, and anew after the slot was taken away. That they are right
 * at all test_forward.c holds. */

#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"
#include "engine/backend/backend.h"

#include <errno.h>

#define N_IDS  200
#define N_EMBD 256
#define OTHERS 3 /* slots that do something else */

struct rig {
    struct backend *backend;
    uint32_t next;             /* block that nobody has */
    uint32_t blocks[4][32];    /* of each slot */
    uint32_t held[4], told[4]; /* of those, taken, and told of */
};

static struct rig open_rig(const struct model *model, uint32_t n_threads)
{
    /* One type for all poolings, which are compared: of a model that ranks the default is another. */
    const struct backend_config config = {.model = model,
                                          .n_slots = 4,
                                          .n_context = 1024,
                                          .n_blocks = 128,
                                          .kv_type = BACKEND_KV_F16,
                                          .cpu = {.n_threads = n_threads}};
    struct rig rig = {0};
    struct error err = {0};
    ck_assert_msg(backend_cpu.open(&config, &rig.backend, &err) == 0, "%s", err.text);
    return rig;
}

static void open_slot(struct rig *rig, uint32_t slot, bool embeds)
{
    const struct backend_slot params = {.sampling = {SAMPLING_OFF}, .end_position = 10000, .embeds = embeds};
    rig->held[slot] = rig->told[slot] = 0;
    ck_assert_int_eq(backend_cpu.slot_open(rig->backend, slot, &params), 0);
}

static struct backend_row_set set_of(struct rig *rig, uint32_t slot, const int32_t *ids, uint32_t position,
                                     uint32_t n, enum backend_output output)
{
    while (rig->held[slot] < backend_blocks_for(position + n)) {
        ck_assert_uint_lt(rig->next, 128);
        rig->blocks[slot][rig->held[slot]++] = rig->next++;
    }
    const struct backend_row_set set = {.slot = slot,
                                        .ids = ids ? ids + position : NULL,
                                        .n_ids = n,
                                        .position = position,
                                        .output = output,
                                        .blocks = {{rig->blocks[slot] + rig->told[slot],
                                                    rig->held[slot] - rig->told[slot], rig->told[slot]}}};
    rig->told[slot] = rig->held[slot];
    return set;
}

static const struct backend_result *run(struct rig *rig, const struct backend_row_set *sets, uint32_t n)
{
    const struct backend_step step = {sets, n};
    const struct backend_result *results;
    uint64_t ticket;
    ck_assert_int_eq(backend_cpu.submit(rig->backend, &step, &ticket), 0);
    ck_assert_int_eq(backend_cpu.poll(rig->backend, ticket, 0, &results, NULL), 0);
    return results;
}

/* The sums of slot 0 in chunks; with `beside`, the other slots read and decode in the same steps. */
static void feed(struct rig *rig, const int32_t *ids, uint32_t chunk, bool beside, double ret_sums[N_EMBD])
{
    const struct backend_result *results = NULL;
    uint32_t others[OTHERS] = {0};
    for (uint32_t at = 0, n; at < N_IDS; at += n) {
        struct backend_row_set sets[1 + OTHERS];
        uint32_t n_sets = 0, own;
        n = N_IDS - at < chunk ? N_IDS - at : chunk;
        for (uint32_t i = 0; beside && i < OTHERS; i++) {
            const uint32_t rows = others[i] == 0 ? 5 + i : 1;
            if (others[i] < 300) /* as many blocks as there are */
                sets[n_sets++] = set_of(rig, 1 + i, others[i] == 0 ? ids + 50 * i : NULL, others[i], rows,
                                        BACKEND_SAMPLE_LAST);
            others[i] += others[i] < 300 ? rows : 0;
        }
        own = n_sets++;
        sets[own] = set_of(rig, 0, ids, at, n, at + n < N_IDS ? BACKEND_OUTPUT_NONE : BACKEND_SUM_LAST);
        results = run(rig, sets, n_sets) + own;
        ck_assert_uint_eq(results->n_ids, 0);
        ck_assert_int_eq(results->sums != NULL, at + n == N_IDS);
    }
    memcpy(ret_sums, results->sums, N_EMBD * sizeof *ret_sums);
}

static void fill_ids(int32_t ids[N_IDS])
{
    for (uint32_t i = 0; i < N_IDS; i++)
        ids[i] = (int32_t)((i * i * 17 + i * 3) % 360);
}

static void must_be_equal(const double *sums, const double *again, const char *what)
{
    for (uint32_t i = 0; i < N_EMBD; i++)
        ck_assert_msg(memcmp(&sums[i], &again[i], sizeof *sums) == 0, "%s: sum %u is %.17g, was %.17g", what,
                      i, again[i], sums[i]);
}

START_TEST(sums_are_the_same_bytes_however_a_prompt_is_cut)
{
    static const char *const types[] = {"Q4_K_M", "F32"};
    static const uint32_t chunks[] = {1, 7, 32, 512};
    struct model *model = make_model(&small_shape, types[_i]);
    double alone[N_EMBD], again[N_EMBD];
    int32_t ids[N_IDS];
    fill_ids(ids);
    for (uint32_t n_threads = 1; n_threads <= 2; n_threads++)
        for (uint32_t i = 0; i < 4; i++)
            for (int beside = 0; beside < 2; beside++) {
                const bool first = n_threads == 1 && i == 0 && !beside;
                if (test_is_scaled() && n_threads == 1 && !first)
                    continue;
                char what[64];
                struct rig rig = open_rig(model, n_threads);
                for (uint32_t slot = 0; slot <= OTHERS; slot++)
                    open_slot(&rig, slot, slot == 0);
                feed(&rig, ids, beside && chunks[i] == 512 ? 480 : chunks[i], beside, first ? alone : again);
                snprintf(what, sizeof what, "chunks of %u on %u threads%s", chunks[i], n_threads,
                         beside ? " beside others" : "");
                if (!first)
                    must_be_equal(alone, again, what);
                backend_cpu.close(rig.backend);
            }
    model_free(model);
}
END_TEST

/* Of one row only, wherever the prompt is cut: the first, or the last. */
START_TEST(a_pooling_takes_the_rows_that_it_names)
{
    static const uint32_t chunks[] = {1, 7, 512};
    struct model *model = make_model(&small_shape, "F32");
    double all[N_EMBD], first[N_EMBD], last[N_EMBD], again[N_EMBD];
    int32_t ids[N_IDS], one[N_IDS];
    fill_ids(ids);
    for (uint32_t i = 0; i < 3; i++) {
        static const enum pooling_kind kinds[] = {POOLING_UNSAID, POOLING_MEAN, POOLING_FIRST, POOLING_LAST,
                                                  POOLING_RANK};
        double *const sums[] = {i == 0 ? all : again, again, i == 0 ? first : again, i == 0 ? last : again,
                                again};
        double *const expected[] = {all, all, first, last, last};
        for (uint32_t k = 0; k < 5; k++) {
            struct rig rig = open_rig(model, 2);
            model->params.pooling = kinds[k];
            open_slot(&rig, 0, true);
            feed(&rig, ids, chunks[i], false, sums[k]);
            must_be_equal(expected[k], sums[k], pooling_name(kinds[k]));
            backend_cpu.close(rig.backend);
        }
    }
    /* The first row of a causal model knows nothing of what follows, the last one does. */
    fill_ids(one);
    one[N_IDS - 1] = ids[N_IDS - 1] ^ 1;
    for (int k = 0; k < 2; k++) {
        struct rig rig = open_rig(model, 2);
        model->params.pooling = k == 0 ? POOLING_FIRST : POOLING_LAST;
        open_slot(&rig, 0, true);
        feed(&rig, one, 32, false, again);
        ck_assert_int_eq(memcmp(again, k == 0 ? first : last, sizeof again) == 0, k == 0);
        backend_cpu.close(rig.backend);
    }
    ck_assert_int_ne(memcmp(all, first, sizeof all), 0);
    model_free(model);
}
END_TEST

START_TEST(a_slot_that_is_opened_again_sums_from_nothing)
{
    struct model *model = make_model(&small_shape, "Q8_0");
    struct rig rig = open_rig(model, 2);
    double once[N_EMBD], again[N_EMBD];
    int32_t ids[N_IDS];
    fill_ids(ids);
    open_slot(&rig, 0, true);
    struct backend_row_set part = set_of(&rig, 0, ids, 0, 100, BACKEND_OUTPUT_NONE);
    run(&rig, &part, 1);
    backend_cpu.slot_close(rig.backend, 0);
    open_slot(&rig, 0, true);
    feed(&rig, ids, 64, false, once);
    backend_cpu.slot_close(rig.backend, 0);
    open_slot(&rig, 0, true);
    feed(&rig, ids, 200, false, again);
    must_be_equal(once, again, "the second time");
    backend_cpu.close(rig.backend);
    model_free(model);
}
END_TEST

START_TEST(what_a_slot_was_not_opened_for_is_refused)
{
    static const struct {
        bool embeds;
        enum backend_output output;
    } wrong[] = {{false, BACKEND_SUM_LAST}, {true, BACKEND_SAMPLE_LAST}, {true, BACKEND_LOGITS_LAST}};
    struct model *model = make_model(&small_shape, "Q8_0");
    float *logits = calloc(small_shape.n_vocab, sizeof *logits);
    struct backend_slot hit = {.end_position = 100, .position = 32, .embeds = true};
    int32_t ids[N_IDS];
    fill_ids(ids);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct rig rig = open_rig(model, 1);
        uint64_t ticket;
        open_slot(&rig, 0, wrong[i].embeds);
        struct backend_row_set set = set_of(&rig, 0, ids, 0, 3, wrong[i].output);
        set.logits = logits;
        ck_assert_int_eq(backend_cpu.submit(rig.backend, &(struct backend_step){&set, 1}, &ticket), -EINVAL);
        ck_assert_int_eq(backend_cpu.slot_open(rig.backend, 1, &hit), -EINVAL);
        backend_cpu.close(rig.backend);
    }
    free(logits);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, sums_are_the_same_bytes_however_a_prompt_is_cut, 0,
                        test_is_for_races() ? 1 : 2);
    if (test_is_for_races())
        return;
    tcase_add_test(tests, a_pooling_takes_the_rows_that_it_names);
    tcase_add_test(tests, a_slot_that_is_opened_again_sums_from_nothing);
    tcase_add_test(tests, what_a_slot_was_not_opened_for_is_refused);
}

int main(void)
{
    return run_tests("embedding", add);
}
