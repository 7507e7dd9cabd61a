/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_STEP_LOGITS_H
#define CUDA_HOST_STEP_LOGITS_H

/* Copies logits to the host inside submit: a few rows at a time, through pinned memory, and the host waits
 * for each part. For diagnostics and host sampling, not for serving. */

#include "cuda/host/step.h"

static inline bool step_samples(enum backend_output output)
{
    return output == BACKEND_SAMPLE_LAST || output == BACKEND_SAMPLE_ALL;
}

/* Rows with logits. */
static inline uint32_t step_outputs_of(const struct backend_row_set *set)
{
    bool all = set->output == BACKEND_SAMPLE_ALL || set->output == BACKEND_LOGITS_ALL;
    return all ? set->n_ids : set->output != BACKEND_OUTPUT_NONE;
}

/* Words of a mask over the ids. */
static inline size_t step_mask_words(const struct steps *steps)
{
    return (steps->slots->on_device.n_vocab + 31) / 32;
}

/* The flight being submitted, and its description. */
static inline struct flight *step_flight(struct steps *steps)
{
    return &steps->flights[steps->submitted % MAILBOXES];
}
static inline const struct step_set *step_sets(struct steps *steps)
{
    return (const struct step_set *)((const uint8_t *)step_flight(steps)->image + steps->offsets.sets);
}

/* Waits for a mark or a flag, alternating with the progress hook, at most until `until` on the clock. 0,
 * -EAGAIN or a fault. */
int steps_wait_until(struct steps *steps, uint32_t mark, const uint64_t *flag, uint64_t value,
                     uint64_t until);

/* Copies n ≤ STEPS_LOGITS_ROWS rows of the workspace's logits, from `row` on, to steps->logits, and waits for
 * all queued work. 0, -ETIMEDOUT or a fault. */
int steps_bring_logits(struct steps *steps, uint32_t row, uint32_t n);

/* Computes the logits of the step's outputs first … end − 1, which are not sampled, and copies them to their
 * sets. Results as above. */
int steps_hand_out_logits(struct steps *steps, const struct backend_step *step, uint32_t first, uint32_t end);

#endif
