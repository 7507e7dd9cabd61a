/* SPDX-License-Identifier: MIT */
/* The device of the fake backend: what becomes of a step whose time has come. What the contract leaves
 * undefined is made as bad as can be: surplus rows and abandoned steps write junk into their slots' blocks,
 * sets that follow an abandoned step give ids that the model never gives. */

#include "tests/unit/engine/fake_state.h"

#include <assert.h>
#include <string.h>

#include "common/hash.h"

struct fake_recurrence fake_recur(struct fake_recurrence state, int32_t id)
{
    return (struct fake_recurrence){state.n + 1, hash64(&id, sizeof id, state.hash + 1)};
}

/* What the window has left behind others may have. */
static void slide(struct backend *b, struct fake_slot *slot)
{
    for (uint32_t g = 1; g < b->n_groups; g++) {
        uint32_t out = backend_first_block(&b->groups[g].group, slot->position);
        for (; slot->n_out[g] < out && slot->n_out[g] < slot->n_table; slot->n_out[g]++)
            fake_leave_block(b, slot, g, slot->n_out[g]);
    }
}

static int32_t *cell(struct backend *b, const struct fake_slot *slot, uint32_t g, uint32_t position)
{
    const uint32_t block = slot->tables[g][position / BACKEND_BLOCK_TOKENS];
    return &b->groups[g].kv[block][position % BACKEND_BLOCK_TOKENS];
}

/* Rows that mean nothing leave junk behind, in the slot's own blocks beyond where it stands. */
static void spill(struct backend *b, const struct fake_slot *slot)
{
    for (uint32_t g = 0; g < b->n_groups; g++)
        for (uint32_t at = slot->position; at < slot->n_table * BACKEND_BLOCK_TOKENS; at++)
            *cell(b, slot, g, at) = JUNK;
}

/* The first `n` ids of the sequence, as its blocks have them. */
static void read_ids(struct backend *b, const struct fake_slot *slot, uint32_t n, int32_t before[MOST_IDS])
{
    for (uint32_t i = 0; i < n; i++) {
        before[i] = *cell(b, slot, 0, i);
        assert(i >= slot->params.position || before[i] == slot->history[i]); /* attached blocks hold it */
        for (uint32_t g = 1; g < b->n_groups; g++)
            assert(i + b->groups[g].group.window < n || *cell(b, slot, g, i) == before[i]);
    }
}

/* The id after them. */
static int32_t next_id(struct backend *b, const struct fake_slot *slot, uint32_t n, const uint32_t *allowed)
{
    int32_t before[MOST_IDS];
    read_ids(b, slot, n, before);
    int32_t id = fake_next(slot->params.sampling.seed, before, n);
    for (uint32_t i = 0; n < slot->params.stops_from && i < slot->params.n_stop_ids; i++)
        id = id == slot->stop_ids[i] ? FAKE_EARLY : id;
    for (uint32_t i = 0; allowed && i < FAKE_VOCAB; i++) {
        int32_t other = (id + (int32_t)i) % FAKE_VOCAB;
        if (allowed[other / 32] >> (other % 32) & 1)
            return other;
    }
    return allowed ? -1 : id;
}

static enum backend_end end_of(const struct fake_slot *slot, uint32_t n_ids)
{
    for (uint32_t i = 0; i < slot->params.n_stop_ids; i++)
        if (slot->stop_ids[i] == slot->last)
            return BACKEND_END_STOP;
    return n_ids >= slot->params.end_position ? BACKEND_END_LENGTH : BACKEND_RUNNING;
}

static void sample(struct backend *b, const struct backend_row_set *set, struct backend_result *result,
                   int32_t *sampled)
{
    struct fake_slot *slot = &b->slots[set->slot];
    uint32_t first = set->n_ids - fake_sampled_rows(set);
    result->ids = sampled;
    for (uint32_t row = first; row < set->n_ids && slot->end == BACKEND_RUNNING; row++) {
        if (row > first && set->ids[row] != slot->last)
            break;
        result->n_accepted += row > first;
        const uint32_t *allowed = set->allowed ? set->allowed + (size_t)(row - first) * MASK_WORDS : NULL;
        uint32_t n = slot->position + row + 1;
        slot->last = next_id(b, slot, n, allowed);
        if (slot->last < 0) {
            slot->end = BACKEND_END_FAULT;
            break;
        }
        slot->end = end_of(slot, n + 1);
        assert(n < MOST_IDS);
        slot->history[n] = slot->last;
        slot->n_known = n + 1;
        sampled[result->n_ids++] = slot->last;
    }
}

static void sum_states(struct backend *b, const struct backend_row_set *set, struct backend_result *result)
{
    struct fake_slot *slot = &b->slots[set->slot];
    int32_t before[MOST_IDS];
    double state[FAKE_EMBD];
    for (uint32_t row = 0; row < set->n_ids; row++) {
        read_ids(b, slot, slot->position + row + 1, before);
        fake_state(before, slot->position + row + 1, state);
        for (uint32_t i = 0; i < FAKE_EMBD; i++)
            slot->sums[i] += state[i];
    }
    if (set->output == BACKEND_SUM_LAST)
        result->sums = slot->sums;
}

/* Through the rows of a set, whose ids stand in the slot's blocks. */
static void recur(struct backend *b, const struct backend_row_set *set)
{
    struct fake_slot *slot = &b->slots[set->slot];
    int32_t before[MOST_IDS];
    struct fake_recurrence whole = {0};
    for (uint32_t i = 0; i < set->n_ids; i++) {
        assert(slot->state.n == slot->position + i); /* no wrong draft has led it astray */
        slot->state = fake_recur(slot->state, *cell(b, slot, 0, slot->position + i));
        if (i + 1 == set->snapshot_rows)
            b->snapshots[set->snapshot] = slot->state;
    }
    read_ids(b, slot, slot->position + set->n_ids, before);
    for (uint32_t i = 0; i < slot->position + set->n_ids; i++)
        whole = fake_recur(whole, before[i]);
    assert(whole.hash == slot->state.hash);
}

static void execute_set(struct backend *b, const struct backend_row_set *set, struct backend_result *result,
                        int32_t *sampled)
{
    struct fake_slot *slot = &b->slots[set->slot];
    *result = (struct backend_result){.end = slot->end};
    if (slot->spoiled) {
        static const int32_t wrong[] = {'?'};
        *result = (struct backend_result){.n_ids = 1, .ids = wrong};
    }
    if (slot->spoiled || slot->end != BACKEND_RUNNING) {
        spill(b, slot);
        if (set->snapshot_rows > 0)
            b->snapshots[set->snapshot] = (struct fake_recurrence){0};
        return;
    }
    for (uint32_t i = 0; i < set->n_ids; i++)
        for (uint32_t g = 0; g < b->n_groups; g++)
            *cell(b, slot, g, slot->position + i) = set->ids ? set->ids[i] : slot->last;
    if (b->n_snapshots > 0)
        recur(b, set);
    for (uint32_t row = 0; row < fake_logit_rows(set); row++)
        for (uint32_t id = 0; id < FAKE_VOCAB; id++) {
            float *logit = &set->logits[row * FAKE_VOCAB + id];
            assert(*logit == UNTOUCHED);
            uint32_t n = slot->position + set->n_ids - fake_logit_rows(set) + row + 1;
            *logit = (int32_t)id == next_id(b, slot, n, NULL);
        }
    slot->last = -1;
    if (slot->params.embeds)
        sum_states(b, set, result);
    if (fake_sampled_rows(set) > 0)
        sample(b, set, result, sampled);
    slot->position += set->output == BACKEND_SAMPLE_ALL ? result->n_accepted + 1 : set->n_ids;
    if (slot->end != BACKEND_RUNNING)
        slot->last = -1;
    result->end = slot->end;
    slide(b, slot);
}

void fake_run_copies(struct backend *b, uint64_t steps_done)
{
    for (int c = 0; c < COPIES; c++) {
        struct fake_copy *copy = &b->copies[c];
        if (copy->ticket == 0 || copy->done || copy->after > steps_done)
            continue;
        for (uint32_t i = 0; i < copy->n; i++) {
            int32_t(*host)[BACKEND_BLOCK_TOKENS] = copy->host;
            int32_t(*block)[BACKEND_BLOCK_TOKENS] = &b->groups[copy->group].kv[copy->blocks[i]];
            if (copy->out)
                memcpy(host[i], *block, sizeof *block);
            else
                memcpy(*block, host[i], sizeof *block);
        }
        copy->done = true;
    }
    uint32_t done = 0;
    for (; done < b->n_block_copies && b->block_copies[done].after <= steps_done; done++) {
        const struct fake_block_copy *copy = &b->block_copies[done];
        struct fake_group *group = &b->groups[copy->group];
        memcpy(group->kv[copy->to], group->kv[copy->from], sizeof *group->kv);
    }
    b->n_block_copies -= done;
    if (done > 0)
        memmove(b->block_copies, b->block_copies + done, b->n_block_copies * sizeof *b->block_copies);
}

void fake_execute(struct backend *b, struct fake_step *step, uint64_t ticket)
{
    int32_t *sampled = step->sampled;
    fake_run_copies(b, b->executed);
    b->executed++;
    for (uint32_t i = 0; i < step->n; i++) {
        const struct backend_row_set *set = &step->sets[i];
        struct fake_slot *slot = &b->slots[set->slot];
        assert(fake_mask_hash(set) == step->mask_hashes[i]);
        slot->in_flight--;
        slot->sampling_in_flight -= fake_sampled_rows(set) > 0;
        if (step->abandoned) {
            spill(b, slot);
            slot->spoiled = true;
            continue;
        }
        execute_set(b, set, &step->results[i], sampled);
        if (i == 0 && ticket == fake_script.nan_at && fake_sampled_rows(set) > 0) {
            step->results[i] = (struct backend_result){.end = BACKEND_END_FAULT};
            slot->end = BACKEND_END_FAULT;
        }
        if (set->output == BACKEND_SAMPLE_ALL)
            slot->most -= set->n_ids - step->results[i].n_accepted - 1;
        sampled += set->n_ids;
    }
}
