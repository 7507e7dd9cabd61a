/* SPDX-License-Identifier: MIT */
/* The first kernel of a step: what the host described becomes rows.
 *
 * Only the device knows where a slot stands that is run ahead, so positions, and the ids of rows that go on
 * from a slot, are read from slots here. Sets stand in the order of their rows; each row finds its own by
 * bisection. Rows of a slot that has ended are dead: the blocks that the host told are still appended, for
 * the host counts them. */

#include "cuda/kernels/kernels.h"
#include "cuda/device/simt.h"
#include "engine/backend/backend.h"

#define THREADS 128

/* The last set that begins at or before the row. */
__device__ static inline uint32_t set_of(const struct step_set *sets, uint32_t n_sets, uint32_t row)
{
    uint32_t first = 0, end = n_sets;
    while (end - first > 1) {
        uint32_t middle = (first + end) / 2;
        if (sets[middle].first_row <= row)
            first = middle;
        else
            end = middle;
    }
    return first;
}

__device__ static inline void make_row(const struct slots *slots, const struct step_memory *memory,
                                       uint32_t row)
{
    uint32_t s = set_of(memory->sets, memory->step->n_sets, row);
    const struct step_set *set = &memory->sets[s];
    const struct slot_state *slot = &slots->states[set->slot];
    const uint32_t nth = row - set->first_row;
    struct step_row made = {set->slot, slot->position + nth, 0, s};
    made.id = set->from_slot ? slot->last_id : memory->ids[row];
    if (slot->end != BACKEND_RUNNING || made.id < 0) {
        made.position = ROW_DEAD;
        made.id = 0;
    }
    memory->rows[row] = made;

    bool all = set->output == BACKEND_SAMPLE_ALL || set->output == BACKEND_LOGITS_ALL;
    if (set->output != BACKEND_OUTPUT_NONE && (all || nth + 1 == set->n_rows))
        memory->outputs[set->first_output + (all ? nth : 0)] = row;
}

/* grid: a thread for each row of the bucket, and a warp for each set's blocks in turn. Few bytes: what counts
 * is that it is one launch. */
static __global__ void resolve(struct slots slots, struct step_memory memory, uint32_t n_rows)
{
    simt_start();
    const uint32_t thread = blockIdx.x * THREADS + threadIdx.x, n_threads = gridDim.x * THREADS;
    const struct step *step = memory.step;
    for (uint32_t row = thread; row < n_rows; row += n_threads) {
        if (row < step->n_rows)
            make_row(&slots, &memory, row);
        else
            memory.rows[row] = step_row{0, ROW_DEAD, 0, 0};
        if (row >= step->n_outputs)
            memory.outputs[row] = 0;
    }
    for (uint32_t s = thread / SIMT_LANES; s < step->n_sets; s += n_threads / SIMT_LANES) {
        const struct step_set *set = &memory.sets[s];
        const uint32_t n = set->n_blocks;
        if (n == 0)
            continue;
        uint32_t *table = slots.tables + (size_t)set->slot * slots.table_size + set->told;
        const uint32_t *blocks = memory.blocks + set->first_block;
        for (uint32_t g = 0; g < slots.n_groups; g++) {
            for (uint32_t i = thread % SIMT_LANES; i < n; i += SIMT_LANES)
                table[i] = blocks[i];
            table += (size_t)slots.n_slots * slots.table_size;
            blocks += n;
        }
    }
}

int kernels_resolve(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                    uint32_t n_rows)
{
    uint32_t n_blocks = (n_rows + THREADS - 1) / THREADS;
    return simt_launch(queue, "resolve", resolve, {n_blocks, 1, 1}, {THREADS, 1, 1}, 0, *slots, *memory,
                       n_rows);
}
