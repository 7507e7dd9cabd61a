/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_SAMPLING_CANDIDATES_H
#define CUDA_KERNELS_SAMPLING_CANDIDATES_H

/* Ids as sampling sees them, for kernels only: a row's logits after masks, penalties and biases, a chunk of
 * ids at a time, and each as a key of engine/sampling/candidates.h, in the order of the contract: likely
 * first, the lower id first among equals.
 *
 * Nothing is stored between passes: each pass recomputes its chunks in shared memory, because reading a logit
 * costs less than writing it. Only rows with penalties read uses, and only rows with biases read the list.
 * The arithmetic is that of sampling.c, operation by operation. */

#include "cuda/kernels/kernels.h"
#include "cuda/device/simt.h"
#include "engine/backend/backend.h"
#include "engine/sampling/units.h"

#define CANDIDATES_THREADS 256
#define CANDIDATES_CHUNK   4096 /* ids */
#define FLOAT_MOST         3.402823466e+38f

/* An output of a step, of a set that samples. */
struct sampled_row {
    const float *logits;            /* [n_vocab], from the model */
    const uint32_t *allowed;        /* of a grammar, or NULL */
    const struct token_use *uses;   /* NULL: no penalty */
    const struct slot_bias *biases; /* [n_biases] */
    uint32_t n_biases;
    const int32_t *stop_ids; /* [slot->n_stop_ids], distinct */
    bool too_early;          /* stop ids may not be sampled here */
    const int32_t *drafts;   /* [n_drafts] ids of the set that count as sampled before this row */
    uint32_t n_drafts;
    uint32_t n_vocab;
    const uint32_t *mask; /* NULL: all */
    const struct slot_state *slot;
    const struct step_set *set;
    uint32_t nth;                           /* index among the set's sampled rows */
    uint32_t position;                      /* the index that the new id will have */
    const int32_t *history;                 /* [position], if the slot keeps it */
    const struct slot_sequences *sequences; /* NULL: no bad words */
    const uint64_t *list; /* [n_list] keys: the only candidates; NULL: all of the vocabulary */
    uint32_t n_list;
};

/* False: the output is not sampled, because it is padding, of a slot that has ended, or for the host. */
__device__ static inline bool find_sampled_row(struct sampled_row *row, const struct slots *slots,
                                               const struct step_memory *memory,
                                               const struct sample_step *sample, uint32_t output)
{
    if (output >= memory->step->n_outputs)
        return false;
    const uint32_t r = memory->outputs[output];
    const struct step_row step_row = memory->rows[r];
    if (step_row.position == ROW_DEAD)
        return false;
    const struct step_set *set = &memory->sets[step_row.set];
    if (set->output != BACKEND_SAMPLE_LAST && set->output != BACKEND_SAMPLE_ALL)
        return false;
    row->list = NULL;
    row->n_list = 0;
    const size_t words = (slots->n_vocab + 31) / 32;
    row->set = set;
    row->slot = &slots->states[set->slot];
    row->nth = output - set->first_output;
    row->position = step_row.position + 1;
    row->n_vocab = slots->n_vocab;
    row->logits = sample->logits + (size_t)output * sample->stride;
    row->mask = slots->mask;
    row->allowed = sample->masks && set->first_mask != UINT32_MAX
                       ? sample->masks + (set->first_mask + row->nth) * words
                       : NULL;
    row->uses = row->slot->keeps_uses ? slots->uses + (size_t)set->slot * slots->n_vocab : NULL;
    row->biases = slots->biases + (size_t)set->slot * STATE_MOST_BIASES;
    row->n_biases = row->slot->n_biases;
    row->stop_ids = slots->stop_ids + (size_t)set->slot * STATE_MOST_STOP_IDS;
    row->too_early = row->position < row->slot->stops_from;
    row->history = slots->history + (size_t)set->slot * slots->n_history;
    row->sequences = row->slot->has_bad_words ? &slots->sequences[set->slot] : NULL;
    row->drafts = memory->ids + set->first_row + 1;
    row->n_drafts = set->output == BACKEND_SAMPLE_ALL ? row->nth : 0;
    return true;
}

/* ---- keys ---- */

__device__ static inline uint64_t key_of(float logit, uint32_t id)
{
    uint32_t bits = simt_bits(logit + 0.0f); /* −0 and 0 are a tie */
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t)~id;
}

__device__ static inline float key_logit(uint64_t key)
{
    uint32_t bits = (uint32_t)(key >> 32);
    return simt_of_bits(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

__device__ static inline uint32_t key_id(uint64_t key)
{
    return ~(uint32_t)key;
}

__device__ static inline bool is_finite(float x)
{
    return fabsf(x) <= FLOAT_MOST;
}

/* ---- a chunk ---- */

/* DRY's penalty for a repeat of this many ids, as dry_penalty of engine/sampling/dry.c. */
__device__ static inline float repeat_penalty(const struct slot_state *slot, uint32_t length)
{
    const double most = (double)DRY_MOST;
    double penalty = slot->dry_multiplier, power = slot->dry_base;
    for (uint32_t left = length - slot->dry_allowed; left > 0; left >>= 1) {
        if (left & 1)
            penalty *= power;
        power *= power;
    }
    return penalty < most ? (float)penalty : (float)most;
}

__device__ static inline float penalized(const struct slot_state *slot, float logit, bool in_prompt,
                                         uint32_t in_output)
{
    if (!is_finite(logit) || !(in_prompt || in_output > 0))
        return logit;
    logit = logit > 0 ? logit / slot->repetition_penalty : simt_multiply(logit, slot->repetition_penalty);
    logit = logit > FLOAT_MOST ? FLOAT_MOST : logit < -FLOAT_MOST ? -FLOAT_MOST : logit;
    return in_output > 0
               ? logit - (slot->presence_penalty + simt_multiply(slot->frequency_penalty, (float)in_output))
               : logit;
}

/* The logit of an id before biases; NaN: it must not be sampled. */
__device__ static inline float logit_of(const struct sampled_row *row, uint32_t id, uint32_t times_drafted)
{
    const uint32_t bit = 1u << id % 32;
    if ((row->mask && !(row->mask[id / 32] & bit)) || (row->allowed && !(row->allowed[id / 32] & bit)))
        return NAN;
    if (!row->uses)
        return row->logits[id];
    const struct token_use use = row->uses[id];
    const float logit = penalized(row->slot, row->logits[id], use.in_prompt, use.in_output + times_drafted);
    return use.repeat > 0 && is_finite(logit) ? logit - repeat_penalty(row->slot, use.repeat) : logit;
}

/* Whether the last id of a bad word would complete it. */
__device__ static inline bool completes(const struct sampled_row *row, uint32_t word, uint32_t *ret_id)
{
    const int32_t *items = row->sequences->items + row->sequences->starts[word];
    const uint32_t before = (uint32_t)items[0] - 1;
    bool same = before <= row->position;
    for (uint32_t i = 0; same && i < before; i++)
        same = items[1 + i] == row->history[row->position - before + i];
    *ret_id = (uint32_t)items[1 + before];
    return same;
}

/* Removes ids of the chunk that would complete a bad word from the candidates. One thread per word; of
 * several words with the same last id, the first bars it. */
__device__ static inline void bar_words(const struct sampled_row *row, uint32_t base, uint32_t n,
                                        float *chunk)
{
    for (uint32_t i = threadIdx.x; i < row->sequences->n_bad_words; i += CANDIDATES_THREADS) {
        uint32_t id, other;
        if (!completes(row, i, &id) || id < base || id - base >= n)
            continue;
        bool first = true;
        for (uint32_t j = 0; first && j < i; j++)
            first = !completes(row, j, &other) || other != id;
        if (first)
            chunk[id - base] = NAN;
    }
}

/* Counts drafts that fall into the chunk, one thread each: repeated mentions of an id do nothing. */
__device__ static inline void count_drafts(const struct sampled_row *row, uint32_t base, uint32_t n,
                                           float *chunk)
{
    for (uint32_t i = threadIdx.x; row->uses && i < row->n_drafts; i += CANDIDATES_THREADS) {
        const uint32_t id = (uint32_t)row->drafts[i];
        uint32_t times = 0, first = i;
        for (uint32_t j = 0; j < row->n_drafts; j++)
            if ((uint32_t)row->drafts[j] == id) {
                times++;
                first = j < first ? j : first;
            }
        if (first == i && id >= base && id - base < n)
            chunk[id - base] = logit_of(row, id, times);
    }
}

/* Fills chunk[i] with the logit of id base + i; only finite logits are candidates. All threads of the block
 * take part; the chunk is complete on return. Returns its size. */
__device__ static inline uint32_t take_chunk(const struct sampled_row *row, uint32_t base, float *chunk)
{
    const uint32_t n = row->n_vocab - base < CANDIDATES_CHUNK ? row->n_vocab - base : CANDIDATES_CHUNK;
    simt_barrier(); /* all threads have finished reading the previous chunk */
    for (uint32_t i = threadIdx.x; i < n; i += CANDIDATES_THREADS)
        chunk[i] = logit_of(row, base + i, 0);
    simt_barrier();
    if (row->uses && row->n_drafts > 0) {
        count_drafts(row, base, n, chunk);
        simt_barrier();
    }
    if (row->n_biases > 0) {
        for (uint32_t i = threadIdx.x; i < row->n_biases; i += CANDIDATES_THREADS) {
            const struct slot_bias bias = row->biases[i];
            if ((uint32_t)bias.id >= base && (uint32_t)bias.id - base < n)
                chunk[(uint32_t)bias.id - base] += bias.bias;
        }
        simt_barrier();
    }
    if (row->too_early) {
        for (uint32_t i = threadIdx.x; i < row->slot->n_stop_ids; i += CANDIDATES_THREADS) {
            const uint32_t id = (uint32_t)row->stop_ids[i];
            if (id >= base && id - base < n)
                chunk[id - base] = NAN;
        }
        simt_barrier();
    }
    if (row->sequences) {
        bar_words(row, base, n, chunk);
        simt_barrier();
    }
    return n;
}

#endif
