/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_ENGINE_BACKEND_BACKEND_CONTRACT_FIXTURE_H
#define TESTS_UNIT_ENGINE_BACKEND_BACKEND_CONTRACT_FIXTURE_H

/* Shared by the tests of backend_contract.h: a backend that computes a small model, and a prompt for it. */

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/backend/backend.h"

extern const struct backend_ops *contract_ops; /* of the tested backend */
extern bool contract_exact;                    /* it promises the same bits, however rows are batched */

#define N_BLOCKS 6

static const int32_t prompt[] = {5, 17, 300, 44, 44, 9, 201, 33, 8, 120};
#define N_PROMPT ((uint32_t)(sizeof prompt / sizeof *prompt))

struct fixture {
    struct model *model;
    struct backend *backend;
    bool abandon;
    uint32_t seen;
    uint64_t loaded, total; /* bytes of the weights, as last reported */
};

static const struct backend_slot greedy = {.sampling = {SAMPLING_OFF}, .end_position = 100};

/* Opens the backend with two slots for a small model with matrices of this type. */
void contract_set_up(struct fixture *f, const char *type);

void contract_tear_down(struct fixture *f);

/* Polls until the ticket is done. */
int contract_wait(struct fixture *f, uint64_t ticket, const struct backend_result **ret_results);

/* Submits a step of these sets, and waits for it. */
int contract_run(struct fixture *f, const struct backend_row_set *sets, uint32_t n,
                 const struct backend_result **ret_results);

/* Opens slot 0 with block 2 and feeds the prompt; returns the sampled ids. */
const struct backend_result *contract_feed_prompt(struct fixture *f, const struct backend_slot *params);

/* The logits after `id` at a position of slot 0, which is then before that position; its blocks are in
 * `told`. */
void contract_logits_of(struct fixture *f, uint32_t position, int32_t id, float *logits);

/* Checks that logits are equal: bit for bit if the backend promises that. */
void contract_check_same_logits(const float *a, const float *b);

/* A decode: the id that slot 0 sampled last, in its first block. */
static inline struct backend_row_set next_at(uint32_t position, enum backend_output output)
{
    return (struct backend_row_set){
        .position = position, .n_ids = 1, .blocks = {{.told = 1}}, .output = output};
}

/* Adds the tests of backend_contract_sampling.c. */
void contract_add_sampling(TCase *tests);

#endif
