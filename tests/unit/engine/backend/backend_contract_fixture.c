/* SPDX-License-Identifier: MIT */
#include "tests/unit/engine/backend/backend_contract_fixture.h"
#include "tests/unit/cpu/small_model.h"

#include <errno.h>

const struct backend_ops *contract_ops;
bool contract_exact;

static bool progress(void *arg)
{
    struct fixture *f = arg;
    f->seen++;
    return f->abandon;
}

static void loaded(void *arg, uint64_t done, uint64_t total)
{
    struct fixture *f = arg;
    ck_assert_uint_ge(done, f->loaded);
    ck_assert(f->total == 0 || total == f->total);
    ck_assert_uint_le(done, total);
    f->loaded = done;
    f->total = total;
}

void contract_set_up(struct fixture *f, const char *type)
{
    *f = (struct fixture){.model = make_model(&small_shape, type)};
    struct backend_config config = {.model = f->model,
                                    .n_slots = 2,
                                    .n_context = 96,
                                    .n_blocks = N_BLOCKS,
                                    .max_rows = 64,
                                    .cpu = {.n_threads = 2},
                                    .progress = progress,
                                    .progress_arg = f,
                                    .loaded = loaded,
                                    .loaded_arg = f};
    struct error err = {0};
    ck_assert_msg(contract_ops->open(&config, &f->backend, &err) == 0, "%s", err.text);
    ck_assert_uint_ge(f->seen, 7 * small_shape.n_layers + 1); /* each matrix packed is progress */
    ck_assert_uint_gt(f->total, 0);
    ck_assert_uint_eq(f->loaded, f->total);
    f->seen = 0;
}

void contract_tear_down(struct fixture *f)
{
    contract_ops->close(f->backend);
    model_free(f->model);
}

int contract_wait(struct fixture *f, uint64_t ticket, const struct backend_result **ret_results)
{
    int r;
    do
        r = contract_ops->poll(f->backend, ticket, 100, ret_results, NULL);
    while (r == -EAGAIN);
    return r;
}

int contract_run(struct fixture *f, const struct backend_row_set *sets, uint32_t n,
                 const struct backend_result **ret_results)
{
    struct backend_step step = {sets, n};
    uint64_t ticket;
    int r = contract_ops->submit(f->backend, &step, &ticket);
    return r < 0 ? r : contract_wait(f, ticket, ret_results);
}

const struct backend_result *contract_feed_prompt(struct fixture *f, const struct backend_slot *params)
{
    static const uint32_t block = 2;
    const struct backend_result *results;
    ck_assert_int_eq(contract_ops->slot_open(f->backend, 0, params), 0);
    struct backend_row_set set = {
        .ids = prompt, .n_ids = N_PROMPT, .blocks = {{&block, 1, 0}}, .output = BACKEND_SAMPLE_LAST};
    ck_assert_int_eq(contract_run(f, &set, 1, &results), 0);
    return results;
}

void contract_logits_of(struct fixture *f, uint32_t position, int32_t id, float *logits)
{
    struct backend_row_set set = {.position = position,
                                  .ids = &id,
                                  .n_ids = 1,
                                  .blocks = {{.told = 1}},
                                  .output = BACKEND_LOGITS_LAST,
                                  .logits = logits};
    const struct backend_result *results;
    contract_ops->trim(f->backend, 0, position, 0);
    ck_assert_int_eq(contract_run(f, &set, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 0);
    contract_ops->trim(f->backend, 0, position, 0);
}

void contract_check_same_logits(const float *a, const float *b)
{
    if (contract_exact)
        ck_assert_mem_eq(a, b, 405 * sizeof *a);
    for (int i = 0; i < 405; i++)
        ck_assert_float_eq_tol(a[i], b[i], 1e-3f);
}
