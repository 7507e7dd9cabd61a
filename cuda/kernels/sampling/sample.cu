/* SPDX-License-Identifier: MIT */
/* An id for each output that is sampled, by the rules of
 * engine/sampling/sampling.h.
 *
 * All outputs are sampled at once, the rows of a draft too: a row is sampled as
 * if the draft had been right before it, and counts the draft's ids as used.
 * accept.cu then drops what follows a wrong one.
 *
 * A vocabulary is too much for one block of threads, so each takes a chunk, and
 * the last to arrive goes on with what all have found. Three kernels, of which
 * an output needs as many as its parameters ask for, and a step as its outputs:
 *
 *   find_best     the largest key: all that greedy sampling wants
 *   weigh         without filters but min-p: the draw. With them: counts and
 *                 probabilities in bins by distance from the best, and from their
 *                 sums the last bin that may hold a survivor
 *   cut           collects the candidates of those bins, few as a rule, decides
 *                 exactly (filters.h), and draws
 *
 * Bins are of equal width in logit / temperature. The last one has no
 * probability that counts, and no noise lifts an id from there above the best.
 */

#include "cuda/kernels/sampling/sample.h"

#include "cuda/kernels/arrivals.h"
#include "cuda/kernels/sampling/bins.h"
#include "cuda/kernels/sampling/descent.h"
#include "cuda/kernels/sampling/filters.h"
#include "cuda/kernels/sample_parts.h"

/* ---- the draw ---- */

struct winner {
    double score;
    uint64_t key; /* 0: none */
};

__device__ static inline bool beats(struct winner a, struct winner b)
{
    return b.key == 0 || (a.key != 0 && (a.score > b.score || (a.score == b.score && a.key > b.key)));
}

/* Logit / temperature + Gumbel noise against the winner so far; `odds` is
 * e^(−its score). To win, x + noise must be above the score, which needs 1 − u
 * < e^(x − score): most ids lose there, without a logarithm. */
__device__ static inline void compete(float logit, uint32_t id, uint64_t mass, uint32_t random, float best,
                                      float temperature, struct winner *winner, double *odds)
{
    const double u = ((double)random + 0.5) * 0x1p-32;
    if (1 - u > ((double)mass + 1) * (1.001 / (double)MASS_ONE) * *odds)
        return;
    const double x = (double)((key_logit(key_of(logit, id)) - best) / temperature);
    const struct winner found = {x - log(-log(u)), key_of(logit, id)};
    if (beats(found, *winner)) {
        *winner = found;
        *odds = exp(-found.score);
    }
}

#define LIST_MOST 4096

struct sample_shared {
    struct descent_shared descent;
    struct winner winners[ALL_WARPS];
    uint64_t masses[BINS];
    uint32_t counts[BINS];
    uint32_t last; /* whether this block is the last to arrive */
    uint32_t bin;
};

/* Of one output, in scratch: what kernels leave for each other. */
struct sample_memory {
    struct sampled *sampled;
    struct winner *winners; /* [chunks] */
    uint64_t *masses;       /* [BINS] */
    uint64_t *list;         /* [LIST_MOST] keys */
    uint32_t *counts;       /* [BINS] */
};

__device__ static inline struct sample_memory memory_of(struct sampled_outputs outputs, uint32_t output,
                                                        uint32_t n_chunks)
{
    struct sample_memory m;
    m.sampled = sampled_at(outputs, output);
    m.winners = (struct winner *)(m.sampled + 1);
    m.masses = (uint64_t *)(m.winners + n_chunks);
    m.list = m.masses + BINS;
    m.counts = (uint32_t *)(m.list + LIST_MOST);
    return m;
}

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

/* Decides among the row's candidates exactly, and draws. One block. */
__device__ static inline int32_t choose(const struct sampled_row *row, struct sample_shared *shared,
                                        const struct sampled *sampled)
{
    const float best = key_logit(sampled->best);
    const struct filter filter = make_filter(row, &shared->descent, best, sampled->total, sampled->sigma_key);
    if (filter.temperature == 0) /* a dynamic one */
        return (int32_t)key_id(sampled->best);
    struct winner winner = {0, 0};
    double odds = INFINITY;
    each_left(row, &shared->descent, &filter, [&](float logit, uint32_t id, uint64_t mass) {
        uint32_t random[4];
        random_block(row->position, row->slot->seed, id / 4, 0, random);
        const uint32_t low = id % 2 ? random[1] : random[0], high = id % 2 ? random[3] : random[2];
        compete(logit, id, mass, id % 4 < 2 ? low : high, best, filter.temperature, &winner, &odds);
    });
    return (int32_t)key_id(block_winner(shared, winner).key);
}

/* ---- the three kernels: grid (chunks, outputs) ---- */

/* Whether this block is the last of its output's. All threads. */
__device__ static inline bool is_last(struct sampled *sampled, uint32_t *shared_flag)
{
    return last_to_arrive(&sampled->arrived, 1, gridDim.x, shared_flag);
}

/* What is left to be done, once the best is known. */
__device__ static inline enum sampled_path path_of(const struct sampled_row *row, uint64_t best)
{
    const struct slot_state *slot = row->slot;
    if (best == 0 || slot->temperature == 0 || slot->top_k == 1)
        return SAMPLED_DONE;
    const bool all = (slot->top_k == 0 || slot->top_k >= row->n_vocab) && slot->top_p >= 1;
    return all && !filters_are_rare(slot) ? SAMPLED_DRAW : SAMPLED_CUT;
}

struct best_shared {
    struct descent_shared descent;
    uint32_t last;
};

/* Reads every logit once. */
static __global__ void __launch_bounds__(CANDIDATES_THREADS)
    find_best(struct slots slots, struct step_memory memory, struct sample_step sample,
              struct sampled_outputs outputs)
{
    simt_start();
    struct best_shared *shared = simt_shared<struct best_shared>();
    const struct sample_memory m = memory_of(outputs, blockIdx.y, gridDim.x);
    struct sampled *sampled = m.sampled;
    struct sampled_row row;
    if (!find_sampled_row(&row, &slots, &memory, &sample, blockIdx.y))
        return;
    const uint32_t base = blockIdx.x * CANDIDATES_CHUNK, n = take_chunk(&row, base, shared->descent.chunk);
    uint64_t best = 0;
    for (uint32_t i = threadIdx.x; i < n; i += CANDIDATES_THREADS) {
        const float logit = shared->descent.chunk[i];
        const uint64_t key = is_finite(logit) ? key_of(logit, base + i) : 0;
        best = key > best ? key : best;
    }
    best = block_max(&shared->descent, best);
    if (threadIdx.x == 0)
        simt_atomic_max(&sampled->best, best);
    if (!is_last(sampled, &shared->last))
        return;
    best = simt_atomic_max(&sampled->best, (uint64_t)0);
    const enum sampled_path path = path_of(&row, best);
    if (threadIdx.x == 0) {
        sampled->id = best ? (int32_t)key_id(best) : -1;
        sampled->path = path;
        sampled->n_list = 0;
        sampled->n = sampled->sum = sampled->squares = 0;
    }
    for (uint32_t i = threadIdx.x; path == SAMPLED_CUT && i < BINS; i += CANDIDATES_THREADS) {
        m.masses[i] = 0;
        m.counts[i] = 0;
    }
}

/* The draw over a chunk, four neighbouring ids a thread, which share their
 * random words. */
__device__ static inline void draw_chunk(const struct sampled_row *row, struct sample_shared *shared,
                                         uint32_t n, float best, const struct sample_memory *m)
{
    const float temperature = row->slot->temperature;
    const uint32_t base = blockIdx.x * CANDIDATES_CHUNK;
    const uint64_t least = row->slot->min_p > 0 ? (uint64_t)ceil((double)MASS_ONE * row->slot->min_p) : 0;
    struct winner winner = {0, 0};
    double odds = INFINITY;
    for (uint32_t i = threadIdx.x * 4; i < n; i += CANDIDATES_THREADS * 4) {
        uint32_t random[4];
        random_block(row->position, row->slot->seed, (base + i) / 4, 0, random);
        SIMT_UNROLL
        for (uint32_t j = 0; j < 4; j++) {
            const float logit = i + j < n ? shared->descent.chunk[i + j] : NAN;
            const uint64_t mass = is_finite(logit) ? mass_of(logit, best, temperature) : 0;
            if (is_finite(logit) && mass >= least)
                compete(logit, base + i + j, mass, random[j], best, temperature, &winner, &odds);
        }
    }
    winner = block_winner(shared, winner);
    if (threadIdx.x == 0)
        m->winners[blockIdx.x] = winner;
}

__device__ static inline void finish_draw(struct sample_shared *shared, const struct sample_memory *m)
{
    struct winner winner = {0, 0};
    for (uint32_t i = threadIdx.x; i < gridDim.x; i += CANDIDATES_THREADS) {
        const struct winner other = m->winners[i];
        winner = beats(other, winner) ? other : winner;
    }
    winner = block_winner(shared, winner);
    if (threadIdx.x == 0)
        m->sampled->id = (int32_t)key_id(winner.key);
}

/* Bins are by the highest temperature that there can be: what it gives no probability, none does. */
__device__ static inline float bin_temperature(const struct slot_state *slot)
{
    return slot->dynatemp_range > 0 ? (float)(slot->dynatemp_middle + slot->dynatemp_range)
                                    : slot->temperature;
}

__device__ static inline void fill_bins(const struct sampled_row *row, struct sample_shared *shared,
                                        uint32_t n, float best, const struct sample_memory *m)
{
    const float temperature = bin_temperature(row->slot);
    struct spread spread = {0, 0, 0};
    for (uint32_t i = threadIdx.x; i < BINS; i += CANDIDATES_THREADS) {
        shared->masses[i] = 0;
        shared->counts[i] = 0;
    }
    simt_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += CANDIDATES_THREADS) {
        const float logit = shared->descent.chunk[i];
        const uint32_t bin = is_finite(logit) ? bin_of(logit, best, temperature) : BINS - 1;
        if (is_finite(logit) && row->slot->top_n_sigma > 0)
            spread_add(&spread, logit, best);
        if (bin < BINS - 1) {
            simt_atomic_add(&shared->masses[bin], mass_of(logit, best, temperature));
            simt_atomic_add(&shared->counts[bin], 1u);
        }
    }
    simt_barrier();
    for (uint32_t i = threadIdx.x; i < BINS - 1; i += CANDIDATES_THREADS)
        if (shared->counts[i] > 0) {
            simt_atomic_add(&m->masses[i], shared->masses[i]);
            simt_atomic_add(&m->counts[i], shared->counts[i]);
        }
    if (spread.n > 0) {
        simt_atomic_add(&m->sampled->n, spread.n);
        simt_atomic_add(&m->sampled->sum, spread.sum);
        simt_atomic_add(&m->sampled->squares, spread.squares);
    }
}

/* The last bin of those with `k` candidates; BINS − 1, all, where the others have fewer. */
__device__ static inline uint32_t bin_of_top_k(const struct sample_shared *shared, uint32_t k)
{
    uint64_t total;
    const uint32_t bin = find_bin(shared->counts, k, &total);
    return total < k ? BINS - 1 : bin;
}

/* The last bin that may hold a survivor, BINS − 1 where all may: that in which top-k, top-nσ, or else top-p
 * ends. Filters between these need all that top-k leaves. One warp. */
__device__ static inline uint32_t last_bin_of(const struct sampled_row *row,
                                              const struct sample_shared *shared, float best,
                                              struct sampled *sampled)
{
    const struct slot_state *slot = row->slot;
    const bool rare = filters_are_rare(slot);
    uint64_t total = 0, sigma_key = 0, unused;
    uint32_t bin = BINS - 1;
    if (slot->top_n_sigma > 0) {
        const struct spread spread = {sampled->n, sampled->sum, sampled->squares};
        const float least = spread_least(&spread, slot->top_n_sigma, best);
        sigma_key = key_of(least, UINT32_MAX);
        bin = bin_of(least, best, bin_temperature(slot));
    }
    if (slot->top_k > 0) {
        const uint32_t of_k =
            rare ? bin_of_top_k(shared, slot->top_k) : find_bin(shared->counts, slot->top_k, &unused);
        bin = of_k < bin ? of_k : bin;
    } else if (slot->top_n_sigma <= 0 && slot->typical_p >= 1 && slot->dynatemp_range <= 0 &&
               slot->top_p < 1) {
        find_bin(shared->masses, 1, &total);
        const uint64_t target = (uint64_t)ceil((double)total * slot->top_p);
        bin = find_bin(shared->masses, target ? target : 1, &unused);
    }
    if (threadIdx.x == 0) {
        sampled->total = total;
        sampled->sigma_key = sigma_key;
    }
    return bin;
}

/* Bins beyond the last hold no survivor. */
__device__ static inline void find_last_bin(const struct sampled_row *row, struct sample_shared *shared,
                                            float best, const struct sample_memory *m)
{
    for (uint32_t i = threadIdx.x; i < BINS; i += CANDIDATES_THREADS) {
        shared->masses[i] = m->masses[i];
        shared->counts[i] = m->counts[i];
    }
    simt_barrier();
    if (threadIdx.x >= SIMT_LANES)
        return;
    const uint32_t bin = last_bin_of(row, shared, best, m->sampled);
    if (threadIdx.x == 0)
        m->sampled->last_bin = bin;
}

/* Reads every logit once. Nothing to do after a greedy choice. */
static __global__ void __launch_bounds__(CANDIDATES_THREADS, 2)
    weigh(struct slots slots, struct step_memory memory, struct sample_step sample,
          struct sampled_outputs outputs)
{
    simt_start();
    struct sample_shared *shared = simt_shared<struct sample_shared>();
    const struct sample_memory m = memory_of(outputs, blockIdx.y, gridDim.x);
    struct sampled *sampled = m.sampled;
    struct sampled_row row;
    if (!find_sampled_row(&row, &slots, &memory, &sample, blockIdx.y) || sampled->path == SAMPLED_DONE)
        return;
    const bool draws = sampled->path == SAMPLED_DRAW;
    const float best = key_logit(sampled->best);
    const uint32_t n = take_chunk(&row, blockIdx.x * CANDIDATES_CHUNK, shared->descent.chunk);
    if (draws)
        draw_chunk(&row, shared, n, best, &m);
    else
        fill_bins(&row, shared, n, best, &m);
    if (!is_last(sampled, &shared->last))
        return;
    if (draws)
        finish_draw(shared, &m);
    else
        find_last_bin(&row, shared, best, &m);
}

/* Lists the candidates of the bins that may hold a survivor, from a chunk each. Whether this block is the
 * last: then `row` has the list, unless there are too many, and the block decides. */
__device__ static inline bool list_candidates(struct sampled_row *row, struct sample_shared *shared,
                                              float best, const struct sample_memory *m)
{
    struct sampled *sampled = m->sampled;
    const float temperature = bin_temperature(row->slot);
    const uint32_t base = blockIdx.x * CANDIDATES_CHUNK, last_bin = sampled->last_bin;
    const uint32_t n = take_chunk(row, base, shared->descent.chunk);
    for (uint32_t i = threadIdx.x; i < n; i += CANDIDATES_THREADS) {
        const float logit = shared->descent.chunk[i];
        if (!is_finite(logit) || bin_of(logit, best, temperature) > last_bin)
            continue;
        const uint32_t at = simt_atomic_add(&sampled->n_list, 1u);
        if (at < LIST_MOST)
            m->list[at] = key_of(logit, base + i);
    }
    if (!is_last(sampled, &shared->last))
        return false;
    const uint32_t n_list = simt_atomic_add(&sampled->n_list, 0u);
    if (n_list <= LIST_MOST) {
        row->list = m->list;
        row->n_list = n_list;
    }
    return true;
}

/* Reads every logit once, and what the bins leave some twenty times, from the
 * list or, where they are more than it holds, or all, from the logits. */
static __global__ void __launch_bounds__(CANDIDATES_THREADS, 2)
    cut(struct slots slots, struct step_memory memory, struct sample_step sample,
        struct sampled_outputs outputs)
{
    simt_start();
    struct sample_shared *shared = simt_shared<struct sample_shared>();
    const struct sample_memory m = memory_of(outputs, blockIdx.y, gridDim.x);
    struct sampled *sampled = m.sampled;
    struct sampled_row row;
    if (!find_sampled_row(&row, &slots, &memory, &sample, blockIdx.y) || sampled->path != SAMPLED_CUT)
        return;
    const bool all_may_survive = sampled->last_bin == BINS - 1; /* then one block looks at all of them */
    const bool decides =
        all_may_survive ? blockIdx.x == 0 : list_candidates(&row, shared, key_logit(sampled->best), &m);
    if (!decides)
        return;
    const int32_t id = choose(&row, shared, sampled);
    if (threadIdx.x == 0)
        sampled->id = id;
}

/* ---- queueing ---- */

static uint32_t count_chunks(uint32_t n_vocab)
{
    return (n_vocab + CANDIDATES_CHUNK - 1) / CANDIDATES_CHUNK;
}

/* Each output's part and every array in it are multiples of 16 bytes. */
size_t kernels_sample_scratch(uint32_t n_vocab, uint32_t max_outputs)
{
    size_t bytes = sizeof(struct sampled) + count_chunks(n_vocab) * sizeof(struct winner) +
                   (BINS + LIST_MOST) * sizeof(uint64_t) + BINS * sizeof(uint32_t);
    return bytes * max_outputs;
}

int kernels_sample_ids(struct device_stream *queue, const struct slots *slots,
                       const struct step_memory *memory, const struct sample_step *sample, uint32_t n_outputs)
{
    const struct sampled_outputs outputs = sampled_outputs(sample->scratch, slots->n_vocab);
    const struct simt_dim grid = {count_chunks(slots->n_vocab), n_outputs, 1},
                          block = {CANDIDATES_THREADS, 1, 1};
    int r = simt_launch(queue, "find_best", find_best, grid, block, sizeof(struct best_shared), *slots,
                        *memory, *sample, outputs);
    if (r < 0 || sample->greedy)
        return r;
    r = simt_launch(queue, "weigh", weigh, grid, block, sizeof(struct sample_shared), *slots, *memory,
                    *sample, outputs);
    return r < 0 ? r
                 : simt_launch(queue, "cut", cut, grid, block, sizeof(struct sample_shared), *slots, *memory,
                               *sample, outputs);
}

int kernels_accept(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                   const struct sample_step *sample, uint32_t n_outputs)
{
    int r = n_outputs > 0 && !sample->greedy ? sample_logprobs(queue, slots, memory, sample, n_outputs) : 0;
    return r == 0 ? sample_accept(queue, slots, memory, sample, n_outputs) : r;
}

int32_t *kernels_sampled_id(const struct sample_step *sample, uint32_t n_vocab, uint32_t output)
{
    const struct sampled_outputs outputs = sampled_outputs(sample->scratch, n_vocab);
    return &((struct sampled *)(outputs.memory + output * outputs.stride))->id;
}

int kernels_sample(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                   const struct sample_step *sample, uint32_t n_outputs)
{
    int r = n_outputs > 0 ? kernels_sample_ids(queue, slots, memory, sample, n_outputs) : 0;
    return r == 0 ? kernels_accept(queue, slots, memory, sample, n_outputs) : r;
}
