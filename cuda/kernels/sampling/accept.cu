/* SPDX-License-Identifier: MIT */
/* The last kernel of a step: sampled ids become what their sequences have more, slots move on, and the host
 * is told.
 *
 * A warp takes a set. Its rows are met in order, and those after a wrong draft or an end are dropped. The
 * mailbox is pinned memory of the host, which looks at the step's number: every writer's fence comes before
 * the barrier, the number after it. */

#include "cuda/kernels/sampling/sample.h"
#include "cuda/device/simt.h"
#include "engine/backend/backend.h"

#define WARPS   32 /* a set's reads depend on each other: the more sets at once, the better */
#define THREADS (WARPS * SIMT_LANES)

/* What a set has made of its slot so far. Every lane of its warp holds the same. */
struct progress {
    struct slot_state slot;
    uint32_t n_ids, n_accepted;
};

/* The window of the penalties has gone on by an id, so the one before it counts no more. All lanes. */
__device__ static inline void leave_window(const struct slots *slots, uint32_t slot, uint32_t length,
                                           const struct slot_state *state)
{
    const int32_t *history = slots->history + (size_t)slot * slots->n_history;
    const uint32_t lane = threadIdx.x % SIMT_LANES, left = length - state->window - 1;
    const uint32_t end = state->n_prompt < length ? state->n_prompt : length;
    const int32_t id = history[left];
    struct token_use *use = &slots->uses[(size_t)slot * slots->n_vocab + (uint32_t)id];
    bool again = false; /* as an id of the prompt that still counts */
    for (uint32_t i = left + 1 + lane; i < end; i += SIMT_LANES)
        again |= history[i] == id;
    again = simt_ballot(again) != 0;
    if (lane == 0 && left >= state->n_prompt)
        use->in_output--;
    else if (lane == 0 && !again)
        use->in_prompt = 0;
}

/* One id, by which the sequence has `length` ids. All lanes. */
__device__ static inline void accept_id(const struct slots *slots, uint32_t slot, int32_t id, uint32_t length,
                                        struct progress *progress)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES;
    const int32_t *stop_ids = slots->stop_ids + (size_t)slot * STATE_MOST_STOP_IDS;
    bool stops = false;
    for (uint32_t i = lane; i < progress->slot.n_stop_ids; i += SIMT_LANES)
        stops |= stop_ids[i] == id;
    progress->n_ids++;
    progress->slot.last_id = id;
    if (length >= progress->slot.end_position)
        progress->slot.end = BACKEND_END_LENGTH;
    if (simt_ballot(stops))
        progress->slot.end = BACKEND_END_STOP;
    if (lane == 0 && progress->slot.keeps_uses) {
        struct token_use *use = &slots->uses[(size_t)slot * slots->n_vocab + (uint32_t)id];
        use->in_output += use->in_output < TOKEN_USE_MOST;
    }
    if (lane == 0 && progress->slot.keeps_history && length <= slots->n_history)
        slots->history[(size_t)slot * slots->n_history + length - 1] = id;
    simt_warp_barrier();
    if (progress->slot.window < length)
        leave_window(slots, slot, length, &progress->slot);
}

__device__ static inline void accept_samples(const struct slots *slots, const struct step_memory *memory,
                                             const struct step_set *set, struct sampled_outputs sampled,
                                             int32_t *to, struct progress *progress)
{
    const bool all = set->output == BACKEND_SAMPLE_ALL;
    const uint32_t n = all ? set->n_rows : 1, position = progress->slot.position;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = all ? i : set->n_rows - 1;
        const int32_t id = sampled_at(sampled, set->first_output + i)->id;
        if (id < 0) {
            progress->slot.end = BACKEND_END_FAULT;
            break;
        }
        if (threadIdx.x % SIMT_LANES == 0)
            to[i] = id;
        accept_id(slots, set->slot, id, position + row + 2, progress);
        if (i + 1 == n || memory->ids[set->first_row + i + 1] != id || progress->slot.end != BACKEND_RUNNING)
            break;
        progress->n_accepted++;
    }
}

__device__ static inline void finish_set(const struct slots *slots, const struct step_memory *memory,
                                         uint32_t s, struct sampled_outputs sampled,
                                         const struct mailbox *mailbox)
{
    const struct step_set *set = &memory->sets[s];
    struct progress progress = {slots->states[set->slot], 0, 0};
    if (memory->rows[set->first_row].position != ROW_DEAD) {
        const bool samples = set->output == BACKEND_SAMPLE_LAST || set->output == BACKEND_SAMPLE_ALL;
        if (samples)
            accept_samples(slots, memory, set, sampled, mailbox->ids + set->first_output, &progress);
        else
            progress.slot.last_id = -1; /* it was fed, or others took its place */
        progress.slot.position += set->output == BACKEND_SAMPLE_ALL ? progress.n_accepted + 1 : set->n_rows;
    }
    simt_warp_barrier(); /* all lanes have read the slot */
    if (threadIdx.x % SIMT_LANES == 0) {
        struct slot_state *slot = &slots->states[set->slot];
        slot->position = progress.slot.position;
        slot->last_id = progress.slot.last_id;
        slot->end = progress.slot.end;
        mailbox->sets[s] =
            set_result{progress.n_ids, progress.n_accepted, progress.slot.end, set->first_output};
    }
}

/* One block, which has a multiprocessor for itself: a warp for each set in turn. */
static __global__ void __launch_bounds__(THREADS, 1)
    accept(struct slots slots, struct step_memory memory, struct sample_step sample,
           struct sampled_outputs sampled, uint32_t n_outputs)
{
    simt_start();
    const struct mailbox *mailbox = &sample.mailboxes[memory.step->mailbox];
    for (uint32_t i = threadIdx.x; i < n_outputs; i += THREADS)
        sampled_at(sampled, i)->best = 0; /* for the next step */
    for (uint32_t s = threadIdx.x / SIMT_LANES; s < memory.step->n_sets; s += WARPS)
        finish_set(&slots, &memory, s, sampled, mailbox);
    simt_barrier();
    if (threadIdx.x == 0) {
        simt_fence_system(); /* for what all threads have written */
        *(volatile uint64_t *)mailbox->number = memory.step->number;
    }
}

int sample_accept(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                  const struct sample_step *sample, uint32_t n_outputs)
{
    return simt_launch(queue, "accept", accept, {1, 1, 1}, {THREADS, 1, 1}, 0, *slots, *memory, *sample,
                       sampled_outputs(sample->scratch, slots->n_vocab), n_outputs);
}
