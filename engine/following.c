/* SPDX-License-Identifier: MIT */
/* Who follows whom. The sequence itself notes it: the arrival of the one that it follows, which may be gone
 * at the next look, and as far as their ids are known to be the same. */

#include "engine/following.h"

#include <string.h>

#include "engine/snapshots.h"

/* The same ids in the blocks from `from` up to `to`? */
static bool has_same_blocks(const struct sequence *a, const struct sequence *b, uint32_t from, uint32_t to)
{
    const size_t at = (size_t)from * BACKEND_BLOCK_TOKENS, n = (size_t)(to - from) * BACKEND_BLOCK_TOKENS;
    return memcmp(a->ids.data + at, b->ids.data + at, n * sizeof *a->ids.data) == 0;
}

/* Of models with states: a running prompt on its way to a snapshot that goes beyond the `n` blocks found for
 * this one, and that this one could begin with. NULL: none. */
static const struct sequence *find_snapshotting(const struct scheduler *scheduler,
                                                const struct sequence *sequence, uint32_t n)
{
    for (uint32_t i = 0; i < scheduler->n_running; i++) {
        const struct sequence *running = scheduler->running[i];
        const uint32_t border = snapshots_prompt_end(running);
        if (sequence_stays(running) && running->place != 0 && running->space == sequence->space &&
            running->n_offered < border / BACKEND_BLOCK_TOKENS && border > n * BACKEND_BLOCK_TOKENS &&
            border <= sequence_most_found(sequence) * BACKEND_BLOCK_TOKENS &&
            has_same_blocks(running, sequence, 0, border / BACKEND_BLOCK_TOKENS))
            return running;
    }
    return NULL;
}

/* A running prompt, which stands where the `n` blocks found for this one end, and is about to fill the next
 * that it wants. It may decode already, and its last chunk be in flight. NULL: none. */
static const struct sequence *find_filling(const struct scheduler *scheduler, const struct sequence *sequence,
                                           uint32_t n)
{
    for (uint32_t i = 0; i < scheduler->n_running; i++) {
        const struct sequence *running = scheduler->running[i];
        if (sequence_stays(running) && running->n_offered == n && running->place == sequence->place &&
            running->n_prefill >= (n + 1) * BACKEND_BLOCK_TOKENS &&
            has_same_blocks(running, sequence, n, n + 1))
            return running;
    }
    return NULL;
}

bool following_begin(const struct scheduler *scheduler, struct sequence *sequence, uint32_t n)
{
    const struct sequence *running = NULL;
    if (sequence->space != 0 && n < sequence_most_found(sequence))
        running = scheduler->snapshots ? find_snapshotting(scheduler, sequence, n)
                                       : find_filling(scheduler, sequence, n);
    sequence->follows = running ? running->arrival : 0;
    sequence->n_followed = n;
    return running;
}

static const struct sequence *find_running(const struct scheduler *scheduler, uint64_t arrival)
{
    for (uint32_t i = 0; i < scheduler->n_running; i++)
        if (scheduler->running[i]->arrival == arrival)
            return scheduler->running[i];
    return NULL;
}

bool following_goes_on(const struct scheduler *scheduler, struct sequence *sequence)
{
    if (sequence->follows == 0)
        return false;
    const struct sequence *running = find_running(scheduler, sequence->follows);
    if (!running || !sequence_stays(running) || running->place == 0 ||
        running->n_offered < sequence->n_followed)
        return false;
    if (scheduler->snapshots)
        return running->n_offered < snapshots_prompt_end(running) / BACKEND_BLOCK_TOKENS;
    const uint32_t n = running->n_offered, next = n + 1;
    if (n >= sequence_most_found(sequence) || running->n_prefill < next * BACKEND_BLOCK_TOKENS ||
        !has_same_blocks(running, sequence, sequence->n_followed, next))
        return false;
    sequence->n_followed = n;
    return true;
}
