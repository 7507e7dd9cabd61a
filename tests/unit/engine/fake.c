/* SPDX-License-Identifier: MIT */
/* What the host calls of the backend of fake.h. Steps are queued by submit and executed by poll, in order: as
 * late as the contract allows; their results are scribbled over when their time is up. */

#include "tests/unit/engine/fake_state.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/hash.h"
#include "engine/backend/kv_groups.h"

struct fake_script fake_script;

static void open_group(struct fake_group *group, uint32_t window, uint32_t n_blocks)
{
    group->group = (struct backend_group){1, window, n_blocks, sizeof *group->kv};
    group->kv = calloc(n_blocks, sizeof *group->kv);
    group->readers = calloc(n_blocks, sizeof *group->readers);
    group->writer = calloc(n_blocks, sizeof *group->writer);
    for (uint32_t i = 0; i < n_blocks; i++)
        group->writer[i] = NOBODY;
}

static void open_groups(struct backend *b)
{
    const struct backend_config *config = &b->config;
    const struct backend_group wanted = {.window = fake_script.window};
    uint32_t all = config->n_slots * backend_blocks_for(config->n_context), some = config->n_blocks;
    if (some == 0)
        some = (uint32_t)kv_group_wants(&wanted, config->n_slots, config->n_context, config->max_rows);
    open_group(&b->groups[b->n_groups++], 0, config->n_blocks ? config->n_blocks : all);
    if (fake_script.window > 0)
        open_group(&b->groups[b->n_groups++], fake_script.window,
                   fake_script.window_blocks ? fake_script.window_blocks : some);
}

static int fake_open(const struct backend_config *config, struct backend **ret_backend, struct error *err)
{
    assert(config->n_slots > 0 && config->n_context > 0);
    struct backend *b = calloc(1, sizeof *b);
    b->config = *config;
    b->config.max_rows = backend_rows_for(config, 512);
    open_groups(b);
    b->n_snapshots = fake_script.n_snapshots;
    if (b->n_snapshots > 0 && config->drafts)
        b->n_snapshots += backend_spares_for(config->n_slots);
    b->snapshots = calloc(b->n_snapshots + 1, sizeof *b->snapshots);
    b->slots = calloc(config->n_slots, sizeof *b->slots);
    for (uint32_t i = 0; i < config->n_slots; i++)
        for (uint32_t g = 0; g < b->n_groups; g++)
            b->slots[i].tables[g] = calloc(b->groups[0].group.n_blocks, sizeof(uint32_t));
    for (int i = 0; i < QUEUE; i++) {
        struct fake_step *step = &b->steps[i];
        step->sets = calloc(config->n_slots, sizeof *step->sets);
        step->results = calloc(config->n_slots, sizeof *step->results);
        step->mask_hashes = calloc(config->n_slots, sizeof *step->mask_hashes);
        step->ids = calloc(b->config.max_rows, sizeof *step->ids);
        step->sampled = calloc(b->config.max_rows, sizeof *step->sampled);
    }
    fake_script.steps = fake_script.most_rows = fake_script.open_slots = fake_script.block_copies = 0;
    *ret_backend = b;
    return 0;
}

static void drop_slot(struct fake_slot *slot)
{
    free(slot->history);
    free(slot->stop_ids);
    slot->history = slot->stop_ids = NULL;
}

static void fake_close(struct backend *b)
{
    for (uint32_t i = 0; i < b->config.n_slots; i++) {
        drop_slot(&b->slots[i]);
        free(b->slots[i].tables[0]);
        free(b->slots[i].tables[1]);
    }
    for (int i = 0; i < QUEUE; i++) {
        free(b->steps[i].sets);
        free(b->steps[i].results);
        free(b->steps[i].mask_hashes);
        free(b->steps[i].ids);
        free(b->steps[i].sampled);
    }
    for (int i = 0; i < COPIES; i++)
        free(b->copies[i].blocks);
    free(b->block_copies);
    free(b->slots);
    free(b->snapshots);
    for (uint32_t g = 0; g < b->n_groups; g++) {
        free(b->groups[g].writer);
        free(b->groups[g].readers);
        free(b->groups[g].kv);
    }
    free(b);
}

static void fake_info(const struct backend *b, struct backend_info *ret_info)
{
    uint32_t least = fake_script.chunk_least;
    *ret_info = (struct backend_info){.device = "fake",
                                      .n_groups = b->n_groups,
                                      .groups = {b->groups[0].group, b->groups[1].group},
                                      .n_slots = b->config.n_slots,
                                      .state_bytes = b->n_snapshots > 0 ? sizeof *b->snapshots : 0,
                                      .n_snapshots = b->n_snapshots,
                                      .most_flights = fake_script.asynchronous ? 2 : 1,
                                      .most_stop_ids = MOST_STOP_IDS,
                                      .max_rows = b->config.max_rows,
                                      .n_embedding = fake_script.embeds ? FAKE_EMBD : 0,
                                      .step_ms = 100,
                                      .alone_ms = fake_script.alone_ms ? fake_script.alone_ms : 1000,
                                      .chunk_least = least ? least : 8,
                                      .chunk_most = 512};
}

/* Who reads them later all the same finds other ids. */
int fake_give_back(struct backend *b, const struct backend_idle *idle, struct backend_given *ret_given)
{
    *ret_given = (struct backend_given){0};
    for (uint32_t g = 0; g < b->n_groups; g++)
        for (uint32_t i = 0; i < idle->n_blocks[g]; i++) {
            const uint32_t block = idle->blocks[g][i];
            assert(block < b->groups[g].group.n_blocks && (i == 0 || block > idle->blocks[g][i - 1]));
            assert(b->groups[g].readers[block] == 0 && b->groups[g].writer[block] == NOBODY);
            memset(b->groups[g].kv[block], 0x55, sizeof b->groups[g].kv[block]);
            ret_given->kv += b->groups[g].group.block_bytes;
        }
    return 0;
}

/* ---- slots ---- */

/* The slot's state becomes what a snapshot has, which was taken of these ids. */
static void restore(struct backend *b, struct fake_slot *slot, uint32_t position, uint32_t snapshot)
{
    struct fake_recurrence state = {0};
    for (uint32_t i = 0; i < position; i++)
        state = fake_recur(state, slot->history[i]);
    assert(snapshot < b->n_snapshots && b->snapshots[snapshot].n == position);
    assert(b->snapshots[snapshot].hash == state.hash);
    slot->state = state;
}

static int fake_slot_open(struct backend *b, uint32_t index, const struct backend_slot *params)
{
    struct fake_slot *slot = &b->slots[index];
    assert(index < b->config.n_slots && !slot->open && slot->in_flight == 0 && slot->n_table == 0);
    assert(params->n_stop_ids <= MOST_STOP_IDS);
    assert(params->n_prompt > 0 && params->n_prompt <= params->n_history);
    assert(b->n_snapshots == 0 || params->position % BACKEND_BLOCK_TOKENS == 0);
    assert(params->position < params->n_history);
    assert(!params->embeds || (fake_script.embeds && params->position == 0));
    if (fake_script.slot_refusal && params->sampling.seed == fake_script.refused_seed)
        return fake_script.slot_refusal;
    *slot = (struct fake_slot){.open = true,
                               .params = *params,
                               .tables = {slot->tables[0], slot->tables[1]},
                               .most = params->position,
                               .position = params->position,
                               .last = -1};
    slot->history = malloc((params->n_history + MOST_IDS) * sizeof(int32_t));
    slot->n_known = params->n_history;
    slot->stop_ids = malloc((params->n_stop_ids + 1) * sizeof(int32_t));
    memcpy(slot->history, params->history, params->n_history * sizeof(int32_t));
    if (params->n_stop_ids > 0)
        memcpy(slot->stop_ids, params->stop_ids, params->n_stop_ids * sizeof(int32_t));
    fake_script.open_slots++;
    if (b->n_snapshots > 0 && params->position > 0)
        restore(b, slot, params->position, params->snapshot);
    return 0;
}

/* Blocks that were full when the slot was opened. */
static uint32_t attached(const struct fake_slot *slot)
{
    return slot->params.position / BACKEND_BLOCK_TOKENS;
}

void fake_leave_block(struct backend *b, const struct fake_slot *slot, uint32_t g, uint32_t n)
{
    if (n < attached(slot))
        b->groups[g].readers[slot->tables[g][n]]--;
    else
        b->groups[g].writer[slot->tables[g][n]] = NOBODY;
}

static void fake_slot_close(struct backend *b, uint32_t index)
{
    struct fake_slot *slot = &b->slots[index];
    assert(slot->open && slot->in_flight == 0);
    for (uint32_t g = 0; g < b->n_groups; g++)
        for (uint32_t i = slot->n_out[g]; i < slot->n_table; i++)
            fake_leave_block(b, slot, g, i);
    slot->n_table = 0;
    slot->open = false;
    drop_slot(slot);
    fake_script.open_slots--;
}

/* ---- what the caller must keep ---- */

static void take_block(struct backend *b, uint32_t index, uint32_t g, uint32_t n, uint32_t block)
{
    struct fake_slot *slot = &b->slots[index];
    struct fake_group *group = &b->groups[g];
    assert(block < group->group.n_blocks);
    slot->tables[g][n] = block;
    if (n < backend_first_block(&group->group, slot->params.position)) {
        slot->n_out[g] = n + 1; /* it only stands for one */
    } else if (n < attached(slot)) {
        int32_t writer = group->writer[block]; /* may go on, behind the end of the block */
        assert(writer == NOBODY || writer != (int32_t)index);
        group->readers[block]++;
    } else {
        assert(group->writer[block] == NOBODY && group->readers[block] == 0);
        group->writer[block] = (int32_t)index;
    }
}

static void check_ids(const struct fake_slot *slot, const struct backend_row_set *set)
{
    if (!set->ids) {
        assert(set->n_ids == 1 && (slot->sampling_in_flight > 0 || slot->last >= 0));
        return;
    }
    assert(slot->sampling_in_flight == 0 && slot->end == BACKEND_RUNNING);
    if (slot->last >= 0)
        assert(set->ids[0] == slot->last);
    for (uint32_t i = 0; slot->last < 0 && i < set->n_ids; i++)
        assert(set->position + i < slot->n_known && slot->history[set->position + i] == set->ids[i]);
}

static void take_set(struct backend *b, const struct backend_row_set *set)
{
    struct fake_slot *slot = &b->slots[set->slot];
    assert(set->slot < b->config.n_slots && slot->open && !slot->spoiled && set->n_ids > 0);
    assert(set->position == slot->most);
    check_ids(slot, set);
    for (uint32_t g = 0; g < b->n_groups; g++) {
        assert(set->blocks[g].told == slot->n_table && set->blocks[g].n == set->blocks[0].n);
        for (uint32_t i = 0; i < set->blocks[g].n; i++)
            take_block(b, set->slot, g, slot->n_table + i, set->blocks[g].ids[i]);
    }
    slot->n_table += set->blocks[0].n;
    slot->most += set->n_ids;
    assert(slot->n_table * BACKEND_BLOCK_TOKENS >= slot->most);
    assert(slot->most < slot->params.end_position || slot->params.embeds); /* the last id is never fed */
    assert(!set->allowed || (slot->in_flight == 0 && fake_sampled_rows(set) > 0)); /* masked: not run ahead */
    assert((set->logits != NULL) == (fake_logit_rows(set) > 0));
    assert(set->snapshot_rows <= set->n_ids);
    assert(set->snapshot_rows == 0 || b->n_snapshots == 0 || set->snapshot < b->n_snapshots);
    if (slot->params.embeds)
        assert(set->ids && (set->output == BACKEND_OUTPUT_NONE || set->output == BACKEND_SUM_LAST));
    else
        assert(set->output != BACKEND_SUM_LAST);
    slot->sampling_in_flight += fake_sampled_rows(set) > 0;
    slot->in_flight++;
    if (slot->in_flight > fake_script.most_ahead)
        fake_script.most_ahead = slot->in_flight;
    for (uint32_t i = 0; i < fake_logit_rows(set) * FAKE_VOCAB; i++)
        set->logits[i] = UNTOUCHED;
}

uint64_t fake_mask_hash(const struct backend_row_set *set)
{
    if (set->allowed && set->await)
        set->await(set->await_arg);
    size_t words = (size_t)fake_sampled_rows(set) * MASK_WORDS;
    return set->allowed ? hash64(set->allowed, words * sizeof *set->allowed, 1) : 0;
}

/* Results live until the next submit. */
static void scribble(struct backend *b)
{
    for (int i = 0; i < QUEUE; i++) {
        struct fake_step *step = &b->steps[i];
        memset(step->results, 0xee, b->config.n_slots * sizeof *step->results);
        memset(step->sampled, 0xee, b->config.max_rows * sizeof *step->sampled);
    }
}

static bool refuses(const struct backend *b, const struct backend_step *step)
{
    if (fake_script.most_sets > 0 && step->n_sets > fake_script.most_sets)
        return true;
    for (uint32_t i = 0; fake_script.refused_seed != 0 && i < step->n_sets; i++)
        if (b->slots[step->sets[i].slot].params.sampling.seed == fake_script.refused_seed)
            return true;
    return false;
}

static int fake_submit(struct backend *b, const struct backend_step *from, uint64_t *ret_ticket)
{
    if (b->submitted + 1 == fake_script.submit_fails_at)
        return -EIO;
    if (fake_script.refusal < 0 && refuses(b, from))
        return fake_script.refusal;
    assert(from->n_sets > 0 && b->submitted - b->executed < (fake_script.asynchronous ? 2 : 1));
    scribble(b);
    struct fake_step *step = &b->steps[++b->submitted % QUEUE];
    uint32_t rows = 0;
    step->n = from->n_sets;
    step->polls = 0;
    step->abandoned = false;
    for (uint32_t i = 0; i < step->n; i++) {
        const struct backend_row_set *set = &from->sets[i];
        for (uint32_t j = 0; j < i; j++)
            assert(set->slot != from->sets[j].slot);
        take_set(b, set);
        assert(rows + set->n_ids <= b->config.max_rows);
        step->sets[i] = *set;
        step->mask_hashes[i] = fake_mask_hash(set);
        if (set->ids)
            step->sets[i].ids = memcpy(step->ids + rows, set->ids, set->n_ids * sizeof(int32_t));
        rows += set->n_ids;
    }
    fake_script.steps++;
    if (rows > fake_script.most_rows)
        fake_script.most_rows = rows;
    if (fake_script.row_ns)
        nanosleep(&(struct timespec){.tv_sec = (time_t)(fake_script.row_ns * rows / 1000000000),
                                     .tv_nsec = (long)(fake_script.row_ns * rows % 1000000000)},
                  NULL);
    if (!fake_script.asynchronous && b->config.progress)
        step->abandoned = b->config.progress(b->config.progress_arg);
    *ret_ticket = b->submitted;
    return 0;
}

static int poll_copy(struct backend *b, uint64_t ticket)
{
    struct fake_copy *copy = &b->copies[ticket % COPIES];
    assert(copy->ticket == ticket);
    fake_run_copies(b, b->executed);
    if (!copy->done)
        return -EAGAIN;
    copy->ticket = 0;
    return 0;
}

static int fake_poll(struct backend *b, uint64_t ticket, int timeout_ms,
                     const struct backend_result **ret_results, struct error *err)
{
    if (ticket > COPY_TICKET)
        return poll_copy(b, ticket);
    struct fake_step *step = &b->steps[ticket % QUEUE];
    assert(ticket == b->executed + 1 && ticket <= b->submitted);
    if (step->polls++ < fake_script.again)
        return -EAGAIN;
    if (ticket == fake_script.poll_fails_at)
        return error_set(err, -EIO, "the fake caught fire");
    if (fake_script.asynchronous && b->config.progress && b->config.progress(b->config.progress_arg))
        step->abandoned = true;
    step->abandoned |= ticket == fake_script.abandon_at;
    fake_execute(b, step, ticket);
    *ret_results = step->results;
    return step->abandoned ? -ECANCELED : 0;
}

static void fake_trim(struct backend *b, uint32_t index, uint32_t position, uint32_t snapshot)
{
    struct fake_slot *slot = &b->slots[index];
    assert(slot->open && !slot->spoiled && slot->in_flight == 0 && !slot->params.embeds);
    assert(position <= slot->position && position >= slot->params.position);
    for (; slot->n_table > backend_blocks_for(position); slot->n_table--)
        for (uint32_t g = 0; g < b->n_groups; g++)
            fake_leave_block(b, slot, g, slot->n_table - 1);
    if (b->n_snapshots > 0 && position > 0)
        restore(b, slot, position, snapshot);
    else
        slot->state = (struct fake_recurrence){0};
    slot->position = slot->most = position;
    slot->last = -1;
    slot->end = BACKEND_RUNNING;
}

static int fake_copy(struct backend *b, const struct backend_copy *from, bool out, uint64_t *ret_ticket)
{
    uint64_t ticket = COPY_TICKET + b->n_copies + 1;
    struct fake_copy *copy = &b->copies[ticket % COPIES];
    assert(from->group < b->n_groups);
    const struct fake_group *group = &b->groups[from->group];
    if (copy->ticket != 0)
        return -EAGAIN;
    for (uint32_t i = 0; i < from->n; i++) {
        assert(from->blocks[i] < group->group.n_blocks);
        assert(out || (group->writer[from->blocks[i]] == NOBODY && group->readers[from->blocks[i]] == 0));
    }
    free(copy->blocks);
    *copy = (struct fake_copy){.ticket = ticket,
                               .after = b->submitted,
                               .out = out,
                               .group = from->group,
                               .n = from->n,
                               .host = from->host};
    copy->blocks = malloc((from->n + 1) * sizeof *copy->blocks);
    memcpy(copy->blocks, from->blocks, from->n * sizeof *copy->blocks);
    b->n_copies++;
    *ret_ticket = ticket;
    return 0;
}

static int fake_copy_out(struct backend *b, const struct backend_copy *copy, uint64_t *ret_ticket)
{
    return fake_copy(b, copy, true, ret_ticket);
}

static int fake_copy_in(struct backend *b, const struct backend_copy *copy, uint64_t *ret_ticket)
{
    return fake_copy(b, copy, false, ret_ticket);
}

/* Whoever writes `from` goes on behind what is copied for. */
static int fake_copy_block(struct backend *b, uint32_t group, uint32_t from, uint32_t to)
{
    const struct fake_group *g = &b->groups[group];
    assert(group < b->n_groups && from < g->group.n_blocks && to < g->group.n_blocks && from != to);
    assert(g->writer[to] == NOBODY && g->readers[to] == 0);
    b->block_copies = realloc(b->block_copies, (b->n_block_copies + 1) * sizeof *b->block_copies);
    b->block_copies[b->n_block_copies++] = (struct fake_block_copy){b->submitted, group, from, to};
    fake_script.block_copies++;
    return 0;
}

static int fake_verdict(struct backend *b, struct error *err)
{
    return fake_script.verdict ? error_set(err, fake_script.verdict, "the fake is lost") : 0;
}

const struct backend_ops backend_fake = {.name = "fake",
                                         .open = fake_open,
                                         .close = fake_close,
                                         .info = fake_info,
                                         .slot_open = fake_slot_open,
                                         .slot_close = fake_slot_close,
                                         .submit = fake_submit,
                                         .poll = fake_poll,
                                         .trim = fake_trim,
                                         .copy_out = fake_copy_out,
                                         .copy_in = fake_copy_in,
                                         .copy_block = fake_copy_block,
                                         .verdict = fake_verdict};
