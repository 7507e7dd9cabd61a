/* SPDX-License-Identifier: MIT */
#ifndef CPU_STEP_H
#define CPU_STEP_H

/* One step of the backend: row sets in, results out. */

#include "cpu/forward/forward.h"
#include "cpu/slots.h"

/* A row set during its step. */
struct step_set {
    struct stepper *stepper;
    struct slot *slot;
    const struct backend_row_set *set;
    uint32_t first_row, n_rows; /* in the pass; no rows if the slot had already ended */
    uint32_t position;          /* of the first */
    struct backend_result *result;
    int32_t *ids;             /* room for its samples */
    struct logprob *logprobs; /* the same */
};

/* The results of the last step. */
struct step_results {
    uint64_t ticket;                /* 0 after they were taken */
    int status;                     /* 0 or -ECANCELED */
    struct backend_result *results; /* [max_rows] */
    int32_t *ids;                   /* [max_rows] */
    struct logprob *logprobs;       /* [logprobs_size], grown when requests need more */
    size_t logprobs_size;
};

struct stepper {
    const struct model *model;
    struct forward *forward;
    struct slot *slots;
    uint32_t n_slots, max_rows;
    struct sampler **samplers; /* [threads] */
    bool (*progress)(void *arg);
    void *progress_arg;

    uint64_t tickets; /* given so far */
    uint64_t checks;  /* steps checked so far */
    struct step_results results;
    struct step_set *sets;            /* [max_rows] */
    struct forward_row *rows;         /* [max_rows] */
    struct forward_segment *segments; /* [max_rows] */
    struct forward_sum *sums;         /* [max_rows] */
};

/* The caller sets the first six fields. 0 or -ENOMEM. */
int stepper_init(struct stepper *stepper);
void stepper_deinit(struct stepper *stepper);

/* Runs a step to its end. 0; -EINVAL if the step violates the contract (a closed or spoiled slot, a position
 * other than the slot's or beyond its blocks, too many rows, an id outside the vocabulary); -ENOMEM. */
int stepper_run(struct stepper *stepper, const struct backend_step *step, uint64_t *ret_ticket);

/* The results of a ticket, only once, valid until the next step runs; NULL: they are gone. */
const struct step_results *stepper_take(struct stepper *stepper, uint64_t ticket);

#endif
