/* SPDX-License-Identifier: MIT */
/* DRY, as engine/sampling/dry.c: notes beside the uses of a slot how long a repeat each id would continue.
 *
 * It looks at ids alone, so it runs before the layers of a step, and only in steps that have such a slot. A
 * block takes a set. First the notes of the step before go: they are of ids in the window, which has moved by
 * no more than one. Then the last breaker is looked for, and every place that ends like the whole. */

#include "cuda/kernels/kernels.h"
#include "cuda/device/simt.h"
#include "cuda/kernels/sampling/uses.h"
#include "engine/backend/backend.h"
#include "engine/sampling/units.h"

#define THREADS 256

struct repeats_shared {
    uint32_t broken; /* one more than the place of the last breaker's end; 0: there is none */
};

/* The ids that are looked at: [first, n) of the history. */
struct window {
    const int32_t *ids;
    uint32_t first, n;
};

__device__ static inline bool breaks(const struct slots *slots, uint32_t slot, const struct window *window,
                                     uint32_t at)
{
    const struct slot_sequences *list = &slots->sequences[slot];
    const uint32_t *mask = slots->breakers + (size_t)slot * ((slots->n_vocab + 31) / 32);
    const uint32_t id = (uint32_t)window->ids[at];
    if (mask[id / 32] >> id % 32 & 1)
        return true;
    for (uint32_t i = list->n_bad_words; i < list->n; i++) {
        const int32_t *items = list->items + list->starts[i];
        const uint32_t n = (uint32_t)items[0];
        bool same = n <= at + 1 - window->first;
        for (uint32_t j = 0; same && j < n; j++)
            same = items[1 + j] == window->ids[at + 1 - n + j];
        if (same)
            return true;
    }
    return false;
}

/* How many ids before and at `at` are those at the end. */
__device__ static inline uint32_t repeat_at(const struct window *window, uint32_t at, uint32_t most)
{
    uint32_t length = 0;
    while (length < most && length <= at - window->first &&
           window->ids[at - length] == window->ids[window->n - 1 - length])
        length++;
    return length;
}

/* grid (sets) */
static __global__ void __launch_bounds__(THREADS) repeats(struct slots slots, struct step_memory memory)
{
    simt_start();
    struct repeats_shared *shared = simt_shared<struct repeats_shared>();
    const struct step_set *set = &memory.sets[blockIdx.x];
    const struct slot_state *slot = &slots.states[set->slot];
    if (slot->dry_last == 0 || slot->end != BACKEND_RUNNING || set->output == BACKEND_OUTPUT_NONE)
        return;
    struct token_use *uses = slots.uses + (size_t)set->slot * slots.n_vocab;
    const uint32_t n = slot->position + set->n_rows;
    const struct window window = {slots.history + (size_t)set->slot * slots.n_history,
                                  n > slot->dry_last ? n - slot->dry_last : 0, n};
    for (uint32_t i = window.first + threadIdx.x; i < n; i += THREADS)
        use_forget_repeat(&uses[window.ids[i]]);
    if (threadIdx.x == 0)
        shared->broken = 0;
    simt_barrier();
    const uint32_t near = n - window.first > DRY_LONGEST ? n - DRY_LONGEST : window.first;
    for (uint32_t i = near + threadIdx.x; i < n; i += THREADS)
        if (breaks(&slots, set->slot, &window, i))
            simt_atomic_max(&shared->broken, i + 1);
    simt_barrier();
    const uint32_t most = n - (shared->broken > near ? shared->broken : near);
    if (most < slot->dry_allowed)
        return;
    for (uint32_t i = window.first + threadIdx.x; i + 1 < n; i += THREADS) {
        const uint32_t length = repeat_at(&window, i, most);
        if (length >= slot->dry_allowed)
            use_note_repeat(&uses[window.ids[i + 1]], length);
    }
}

int kernels_repeats(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                    uint32_t n_sets)
{
    return simt_launch(queue, "repeats", repeats, {n_sets, 1, 1}, {THREADS, 1, 1},
                       sizeof(struct repeats_shared), *slots, *memory);
}
