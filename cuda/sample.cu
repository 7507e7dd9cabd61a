/* SPDX-License-Identifier: MIT */
/* An id for each output that is sampled, by the rules of worker/engine/sampling.h.
 *
 * All outputs are sampled at once, the rows of a draft too: a row is sampled as if the draft had been right
 * before it, and counts the draft's ids as used. accept.cu then drops what follows a wrong one. */

#include "cuda/sample.h"

#include "cuda/descent.h"

/* ---- noise ---- */

/* As worker/engine/philox.c. */
__device__ static inline uint32_t random_word(uint64_t position, uint64_t seed, uint32_t id)
{
    uint32_t a = (uint32_t)position, b = (uint32_t)(position >> 32), c = id / 4, d = 0;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p = 0xD2511F53ull * a, q = 0xCD9E8D57ull * c;
        a = (uint32_t)(q >> 32) ^ b ^ k0;
        c = (uint32_t)(p >> 32) ^ d ^ k1;
        b = (uint32_t)q;
        d = (uint32_t)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const uint32_t nth = id % 4;
    return nth == 0 ? a : nth == 1 ? b : nth == 2 ? c : d;
}

struct winner {
    double score;
    uint64_t key; /* 0: none */
};

__device__ static inline bool beats(struct winner a, struct winner b)
{
    return b.key == 0 || (a.key != 0 && (a.score > b.score || (a.score == b.score && a.key > b.key)));
}

/* Logit / temperature + Gumbel noise against the winner so far; `odds` is e^(−its score). To win, x + noise
 * must be above the score, which needs 1 − u < e^(x − score): most ids lose there, without a logarithm. */
__device__ static inline void compete(const struct sampled_row *row, float logit, uint32_t id, float best,
                                      struct winner *winner, double *odds)
{
    const float temperature = row->slot->temperature;
    const double u = ((double)random_word(row->position, row->slot->seed, id) + 0.5) * 0x1p-32;
    const uint64_t mass = mass_of(logit, best, temperature);
    if (1 - u > ((double)mass + 1) * (1.001 / (double)MASS_ONE) * *odds)
        return;
    const double x = (double)((key_logit(key_of(logit, id)) - best) / temperature);
    const struct winner found = {x - log(-log(u)), key_of(logit, id)};
    if (beats(found, *winner)) {
        *winner = found;
        *odds = exp(-found.score);
    }
}

struct sample_shared {
    struct descent_shared descent;
    struct winner winners[ALL_WARPS];
};

/* The same to all threads. */
__device__ static inline struct winner block_winner(struct sample_shared *shared, struct winner winner)
{
    for (uint32_t mask = SIMT_LANES / 2; mask > 0; mask /= 2) {
        struct winner other = {simt_shuffle_xor(winner.score, mask), simt_shuffle_xor(winner.key, mask)};
        winner = beats(other, winner) ? other : winner;
    }
    simt_barrier();
    if (threadIdx.x % SIMT_LANES == 0)
        shared->winners[threadIdx.x / SIMT_LANES] = winner;
    simt_barrier();
    for (uint32_t i = 0; i < ALL_WARPS; i++)
        winner = beats(shared->winners[i], winner) ? shared->winners[i] : winner;
    return winner;
}

/* ---- filters ---- */

/* The smallest key that top-k and top-p leave, and the smallest mass that min-p does. */
struct filter {
    uint64_t least_key, least_mass;
};

__device__ static inline struct filter make_filter(const struct sampled_row *row,
                                                   struct sample_shared *shared, float best)
{
    const float temperature = row->slot->temperature;
    struct filter filter = {0, 0};
    if (row->slot->top_k > 0)
        filter.least_key =
            key_threshold(row, &shared->descent, 0, row->slot->top_k, [](float) { return (uint64_t)1; });
    if (row->slot->top_p < 1) {
        const uint64_t least = filter.least_key;
        uint64_t own = 0;
        each_candidate(row, &shared->descent, [&](float logit, uint32_t id) {
            own += key_of(logit, id) >= least ? mass_of(logit, best, temperature) : 0;
        });
        const uint64_t total = block_sum(shared->descent.keys, own);
        const uint64_t target = (uint64_t)ceil((double)total * row->slot->top_p);
        const uint64_t key = key_threshold(row, &shared->descent, least, target ? target : 1,
                                           [=](float logit) { return mass_of(logit, best, temperature); });
        filter.least_key = key > least ? key : least;
    }
    if (row->slot->min_p > 0)
        filter.least_mass = (uint64_t)ceil((double)MASS_ONE * row->slot->min_p);
    return filter;
}

__device__ static inline int32_t sample_row(const struct sampled_row *row, struct sample_shared *shared)
{
    uint64_t best_key = 0;
    each_candidate(row, &shared->descent, [&](float logit, uint32_t id) {
        const uint64_t key = key_of(logit, id);
        best_key = key > best_key ? key : best_key;
    });
    best_key = block_max(&shared->descent, best_key);
    if (best_key == 0)
        return -1;
    if (row->slot->temperature == 0 || row->slot->top_k == 1)
        return (int32_t)key_id(best_key);
    const float best = key_logit(best_key), temperature = row->slot->temperature;
    const struct filter filter = make_filter(row, shared, best);
    struct winner winner = {0, 0};
    double odds = INFINITY;
    each_candidate(row, &shared->descent, [&](float logit, uint32_t id) {
        if (key_of(logit, id) >= filter.least_key && mass_of(logit, best, temperature) >= filter.least_mass)
            compete(row, logit, id, best, &winner, &odds);
    });
    return (int32_t)key_id(block_winner(shared, winner).key);
}

/* grid (outputs); a block over the whole vocabulary. */
static __global__ void __launch_bounds__(CANDIDATES_THREADS, 2)
    sample_rows(struct slots slots, struct step_memory memory, struct sample_step sample)
{
    struct sample_shared *shared = simt_shared<struct sample_shared>();
    struct sampled_row row;
    if (!find_sampled_row(&row, &slots, &memory, &sample, blockIdx.x))
        return;
    const int32_t id = sample_row(&row, shared);
    if (threadIdx.x == 0)
        ((struct sampled *)sample.scratch)[blockIdx.x].id = id;
}

int sample_ids(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
               const struct sample_step *sample, uint32_t n_outputs)
{
    return simt_launch(queue, "sample", sample_rows, {n_outputs, 1, 1}, {CANDIDATES_THREADS, 1, 1},
                       sizeof(struct sample_shared), *slots, *memory, *sample);
}

size_t kernels_sample_scratch(uint32_t n_vocab, uint32_t max_outputs)
{
    return max_outputs * sizeof(struct sampled);
}

int kernels_sample(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                   const struct sample_step *sample, uint32_t n_outputs)
{
    int r = n_outputs > 0 ? sample_ids(queue, slots, memory, sample, n_outputs) : 0;
    if (r == 0 && n_outputs > 0)
        r = sample_logprobs(queue, slots, memory, sample, n_outputs);
    return r == 0 ? sample_accept(queue, slots, memory, sample) : r;
}
