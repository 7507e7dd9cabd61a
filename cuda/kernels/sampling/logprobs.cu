/* SPDX-License-Identifier: MIT */
/* Log probabilities of what was sampled, and of the most likely ids: of the
 * model's own logits, before masks, penalties and filters. Straight into the
 * mailbox; of rows that are not accepted nobody reads them. */

#include "cuda/kernels/sampling/bins.h"
#include "cuda/kernels/sampling/descent.h"
#include "cuda/kernels/sampling/sample.h"

#define MOST_TOP  256 /* the most likely ids of a row */
#define LIST_MOST 1024

struct logprobs_shared {
    struct descent_shared descent;
    uint64_t keys[MOST_TOP];
    uint64_t list[LIST_MOST]; /* keys among which those are */
    uint32_t counts[BINS];
    uint64_t n_counted;
    uint32_t n, last_bin;
};

/* Makes the row's list of the bins that have the n largest keys; none where
 * they are more than it holds, or reach into the last bin. `counts` are of all
 * candidates. */
__device__ static inline void list_top(struct sampled_row *row, struct logprobs_shared *shared, uint32_t n,
                                       float best)
{
    if (threadIdx.x < SIMT_LANES) {
        uint64_t total;
        const uint32_t bin = find_bin(shared->counts, n, &total);
        if (threadIdx.x == 0) {
            shared->last_bin = bin;
            shared->n_counted = total;
            shared->n = 0;
        }
    }
    simt_barrier();
    if (shared->n_counted < n)
        return;
    each_candidate(row, &shared->descent, [=](float logit, uint32_t id) {
        if (bin_of(logit, best, 1) > shared->last_bin)
            return;
        const uint32_t at = simt_atomic_add(&shared->n, 1u);
        if (at < LIST_MOST)
            shared->list[at] = key_of(logit, id);
    });
    if (shared->n <= LIST_MOST) {
        row->list = shared->list;
        row->n_list = shared->n;
    }
    simt_barrier(); /* n has been read */
}

/* The n ids with the largest logits, by their place in the order. 1 ≤ n ≤
 * MOST_TOP. */
__device__ static inline void write_top(const struct sampled_row *row, struct logprobs_shared *shared,
                                        uint32_t n, double base, struct logprob *to)
{
    const uint64_t least = key_threshold(
        row, &shared->descent, n, [](float logit, uint32_t id) { return key_of(logit, id); },
        [](float) { return (uint64_t)1; });
    if (threadIdx.x == 0)
        shared->n = 0;
    simt_barrier();
    each_candidate(row, &shared->descent, [=](float logit, uint32_t id) {
        const uint64_t key = key_of(logit, id);
        if (key >= least)
            shared->keys[simt_atomic_add(&shared->n, 1u)] = key;
    });
    for (uint32_t i = threadIdx.x; i < n; i += CANDIDATES_THREADS) {
        uint32_t place = i; /* those beyond what there is come last */
        struct logprob entry = {-1, -INFINITY};
        if (i < shared->n) {
            const uint64_t key = shared->keys[i];
            place = 0;
            for (uint32_t j = 0; j < shared->n; j++)
                place += shared->keys[j] > key;
            entry.id = (int32_t)key_id(key);
            entry.logprob = (float)((double)key_logit(key) - base);
        }
        to[place] = entry;
    }
}

/* grid (outputs). Reads the row's logits three times where the slot wants log
 * probabilities, not at all where it does not. */
static __global__ void __launch_bounds__(CANDIDATES_THREADS, 2)
    logprobs(struct slots slots, struct step_memory memory, struct sample_step sample,
             struct sampled_outputs sampled)
{
    simt_start();
    struct logprobs_shared *shared = simt_shared<struct logprobs_shared>();
    struct sampled_row row;
    if (!find_sampled_row(&row, &slots, &memory, &sample, blockIdx.x) || row.slot->n_logprobs == 0)
        return;
    row.mask = row.allowed = NULL;
    row.uses = NULL;
    row.n_biases = 0;
    row.too_early = false;
    row.sequences = NULL;
    const int32_t id = sampled_at(sampled, blockIdx.x)->id;
    uint64_t best_key = 0;
    each_candidate(&row, &shared->descent, [&](float logit, uint32_t i) {
        const uint64_t key = key_of(logit, i);
        best_key = key > best_key ? key : best_key;
    });
    best_key = block_max(&shared->descent, best_key);
    const float best = key_logit(best_key);
    double sum = 0;
    for (uint32_t i = threadIdx.x; i < BINS; i += CANDIDATES_THREADS)
        shared->counts[i] = 0;
    each_candidate(&row, &shared->descent, [&](float logit, uint32_t) {
        const uint32_t bin = bin_of(logit, best, 1);
        sum += (double)expf(logit - best);
        if (bin < BINS - 1)
            simt_atomic_add(&shared->counts[bin], 1u);
    });
    sum = block_sum(shared->descent.sums, sum);
    const double base = best_key ? (double)best + log(sum) : 0;

    const uint32_t n = row.slot->n_logprobs;
    struct logprob *to =
        sample.mailboxes[memory.step->mailbox].logprobs + row.set->first_logprob + (size_t)row.nth * n;
    if (threadIdx.x == 0) {
        const bool known = id >= 0 && is_finite(row.logits[id]);
        to[0].id = id;
        to[0].logprob = known ? (float)((double)row.logits[id] - base) : -INFINITY;
    }
    const uint32_t n_top = n - 1 < MOST_TOP ? n - 1 : MOST_TOP;
    if (n_top > 0) {
        list_top(&row, shared, n_top, best);
        write_top(&row, shared, n_top, base, to + 1);
    }
    simt_fence_system(); /* each thread for what it has written: the host reads it behind the step's number */
}

int sample_logprobs(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                    const struct sample_step *sample, uint32_t n_outputs)
{
    return simt_launch(queue, "logprobs", logprobs, {n_outputs, 1, 1}, {CANDIDATES_THREADS, 1, 1},
                       sizeof(struct logprobs_shared), *slots, *memory, *sample,
                       sampled_outputs(sample->scratch, slots->n_vocab));
}
