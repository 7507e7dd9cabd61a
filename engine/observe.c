/* SPDX-License-Identifier: MIT */
/* See observe.h. A prompt begins with the set that stands where the slot began, and ends with the one that
 * has the last of the ids which the slot was given to begin with. */

#include "engine/observe.h"

static void mark(const struct engine_observer *observer, const struct sequence *sequence,
                 enum engine_mark what, uint64_t n, uint64_t now)
{
    observer->mark(observer->arg, sequence->tag, what, n, now);
}

void observe_started(const struct engine_observer *observer, const struct sequence *sequence)
{
    const uint64_t now = clock_ns();
    mark(observer, sequence, ENGINE_MARK_SLOT, sequence->slot, now);
    mark(observer, sequence, ENGINE_MARK_PREFIX, sequence->n_begun, now);
}

void observe_submitted(const struct engine_observer *observer, const struct plan *plan, uint64_t now)
{
    for (uint32_t i = 0; i < plan->n; i++) {
        const struct backend_row_set *set = &plan->sets[i];
        if (set->ids && set->output != BACKEND_SAMPLE_ALL && set->position == plan->sequences[i]->n_begun)
            mark(observer, plan->sequences[i], ENGINE_MARK_PREFILL_BEGIN, set->n_ids, now);
    }
}

void observe_read(const struct engine_observer *observer, const struct sequence *sequence,
                  const struct backend_row_set *set, uint32_t n, uint64_t now)
{
    if (set->ids && set->position + set->n_ids == sequence->n_prefill)
        mark(observer, sequence, ENGINE_MARK_PREFILL_END, sequence->n_final - sequence->n_begun, now);
    if (n > 0 && sequence->first_ns == 0)
        mark(observer, sequence, ENGINE_MARK_FIRST_TOKEN, n, now);
}
