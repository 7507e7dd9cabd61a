/* SPDX-License-Identifier: MIT */
/* See fake.h. Steps are queued by submit and executed by poll, in order: as late as the contract allows. */

#include "tests/unit/worker/engine/fake.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "worker/model/model.h"

/* ---- the model ---- */

struct tokenizer {
    int32_t end;
};

static const struct tokenizer fake_tokenizer = {FAKE_END};
static uint32_t fake_mask[(FAKE_VOCAB + 31) / 32] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 1};

const struct model fake_model = {.params = {.name = "fake", .n_vocab = FAKE_VOCAB, .n_context = 4096},
                                 .tokenizer = (struct tokenizer *)&fake_tokenizer,
                                 .sample_mask = fake_mask};

struct bytes tokenizer_piece(const struct tokenizer *tokenizer, int32_t id, bool first)
{
    static uint8_t all[256];
    if (id < 0 || id > 255)
        return (struct bytes){0};
    all[id] = (uint8_t)id;
    return (struct bytes){&all[id], 1};
}

struct ids_view tokenizer_end_ids(const struct tokenizer *tokenizer)
{
    return (struct ids_view){&tokenizer->end, 1};
}

uint32_t tokenizer_size(const struct tokenizer *tokenizer)
{
    return FAKE_END + 1;
}

enum token_type tokenizer_type(const struct tokenizer *tokenizer, int32_t id)
{
    return id == FAKE_END ? TOKEN_CONTROL : TOKEN_NORMAL;
}

int32_t fake_next(uint64_t seed, const int32_t *ids, uint32_t n)
{
    uint64_t hash = seed * 0x9e3779b97f4a7c15ull + n;
    for (uint32_t i = 0; i < n; i++)
        hash = (hash ^ (uint64_t)ids[i]) * 0x100000001b3ull + (hash >> 29);
    hash ^= hash >> 32;
    return hash % 97 == 0 ? FAKE_END : (int32_t)('a' + hash / 97 % 6);
}

/* ---- the backend ---- */

struct fake_script fake_script;

#define QUEUE 4 /* steps remembered */

struct fake_slot {
    bool open;
    struct backend_slot params;
    int32_t *history;
    int32_t *stop_ids;
    uint32_t *table;
    uint32_t n_table;
    uint32_t submitted; /* positions */
    bool samples;       /* a submitted row set samples */
    int32_t last;       /* sampled */
    uint32_t in_flight;
};

struct fake_step {
    uint32_t n;
    struct backend_row_set *sets; /* ids copied */
    struct backend_result *results;
    int32_t *ids;
    uint32_t polls;
    bool abandoned;
};

struct backend {
    struct backend_config config;
    uint32_t n_blocks;
    int32_t (*kv)[BACKEND_BLOCK_TOKENS];
    int32_t *owner; /* slot of each block, or −1 */
    struct fake_slot *slots;
    struct fake_step steps[QUEUE];
    uint64_t submitted, executed;
};

static int fake_open(const struct backend_config *config, struct backend **ret_backend, struct error *err)
{
    struct backend *b = calloc(1, sizeof *b);
    assert(config->n_slots > 0 && config->max_rows >= config->n_slots && config->n_context > 0);
    b->config = *config;
    uint32_t per_slot = (config->n_context + BACKEND_BLOCK_TOKENS - 1) / BACKEND_BLOCK_TOKENS;
    b->n_blocks = config->n_blocks ? config->n_blocks : config->n_slots * per_slot;
    b->kv = calloc(b->n_blocks, sizeof *b->kv);
    b->owner = malloc(b->n_blocks * sizeof *b->owner);
    memset(b->owner, 0xff, b->n_blocks * sizeof *b->owner);
    b->slots = calloc(config->n_slots, sizeof *b->slots);
    for (uint32_t i = 0; i < config->n_slots; i++)
        b->slots[i].table = calloc(b->n_blocks, sizeof(uint32_t));
    for (int i = 0; i < QUEUE; i++) {
        b->steps[i].sets = calloc(config->n_slots, sizeof *b->steps[i].sets);
        b->steps[i].results = calloc(config->n_slots, sizeof *b->steps[i].results);
        b->steps[i].ids = calloc(config->max_rows, sizeof *b->steps[i].ids);
    }
    fake_script.steps = fake_script.most_rows = fake_script.open_slots = 0;
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
        free(b->slots[i].table);
    }
    for (int i = 0; i < QUEUE; i++) {
        free(b->steps[i].sets);
        free(b->steps[i].results);
        free(b->steps[i].ids);
    }
    free(b->slots);
    free(b->owner);
    free(b->kv);
    free(b);
}

static void fake_info(const struct backend *b, struct backend_info *ret_info)
{
    *ret_info = (struct backend_info){.device = "fake",
                                      .n_blocks = b->n_blocks,
                                      .block_bytes = sizeof *b->kv,
                                      .max_rows = b->config.max_rows,
                                      .synchronous = !fake_script.asynchronous};
}

static int fake_slot_open(struct backend *b, uint32_t index, const struct backend_slot *params)
{
    struct fake_slot *slot = &b->slots[index];
    assert(index < b->config.n_slots && !slot->open && slot->in_flight == 0 && slot->n_table == 0);
    slot->open = true;
    slot->params = *params;
    slot->history = malloc((params->n_history + 1) * sizeof(int32_t));
    slot->stop_ids = malloc((params->n_stop_ids + 1) * sizeof(int32_t));
    memcpy(slot->history, params->history, params->n_history * sizeof(int32_t));
    memcpy(slot->stop_ids, params->stop_ids, params->n_stop_ids * sizeof(int32_t));
    slot->submitted = 0;
    slot->samples = false;
    slot->last = -1;
    fake_script.open_slots++;
    return 0;
}

static void fake_slot_close(struct backend *b, uint32_t index)
{
    struct fake_slot *slot = &b->slots[index];
    assert(slot->open && slot->in_flight == 0);
    for (uint32_t i = 0; i < slot->n_table; i++)
        b->owner[slot->table[i]] = -1;
    slot->n_table = 0;
    slot->open = false;
    drop_slot(slot);
    fake_script.open_slots--;
}

/* The contract that the caller must keep for one row set. */
static void take_set(struct backend *b, const struct backend_row_set *set)
{
    struct fake_slot *slot = &b->slots[set->slot];
    assert(slot->open && set->n_ids > 0 && set->position == slot->submitted);
    assert(set->ids || (set->n_ids == 1 && slot->samples));
    for (uint32_t i = 0; i < set->n_blocks; i++) {
        assert(set->blocks[i] < b->n_blocks && b->owner[set->blocks[i]] == -1);
        b->owner[set->blocks[i]] = (int32_t)set->slot;
        slot->table[slot->n_table++] = set->blocks[i];
    }
    slot->submitted += set->n_ids;
    assert(slot->n_table * BACKEND_BLOCK_TOKENS >= slot->submitted);
    assert(slot->submitted < slot->params.end_position); /* the last id is never computed on */
    for (uint32_t i = 0; set->ids && i < set->n_ids; i++)
        assert(set->position + i < slot->params.n_history && slot->history[set->position + i] == set->ids[i]);
    slot->samples |= set->output == BACKEND_SAMPLE_LAST;
    slot->in_flight++;
}

static int fake_submit(struct backend *b, const struct backend_step *from, uint64_t *ret_ticket)
{
    if (b->submitted + 1 == fake_script.submit_fails_at)
        return -EIO;
    assert(from->n_sets > 0 && b->submitted - b->executed < 2);
    struct fake_step *step = &b->steps[++b->submitted % QUEUE];
    uint32_t rows = 0;
    step->n = from->n_sets;
    step->polls = 0;
    step->abandoned = false;
    for (uint32_t i = 0; i < step->n; i++) {
        for (uint32_t j = 0; j < i; j++)
            assert(from->sets[i].slot != from->sets[j].slot);
        take_set(b, &from->sets[i]);
        step->sets[i] = from->sets[i];
        if (from->sets[i].ids) {
            step->sets[i].ids =
                memcpy(step->ids + rows, from->sets[i].ids, from->sets[i].n_ids * sizeof(int32_t));
        }
        rows += from->sets[i].n_ids;
        assert(rows <= b->config.max_rows);
    }
    fake_script.steps++;
    if (rows > fake_script.most_rows)
        fake_script.most_rows = rows;
    if (fake_script.row_ns)
        nanosleep(&(struct timespec){.tv_nsec = (long)(fake_script.row_ns * rows)}, NULL);
    if (!fake_script.asynchronous && b->config.progress)
        step->abandoned = b->config.progress(b->config.progress_arg);
    *ret_ticket = b->submitted;
    return 0;
}

static void execute_set(struct backend *b, const struct backend_row_set *set, struct backend_result *result,
                        bool nan)
{
    struct fake_slot *slot = &b->slots[set->slot];
    int32_t before[8192];
    for (uint32_t i = 0; i < set->n_ids; i++) {
        uint32_t at = set->position + i;
        b->kv[slot->table[at / BACKEND_BLOCK_TOKENS]][at % BACKEND_BLOCK_TOKENS] =
            set->ids ? set->ids[i] : slot->last;
    }
    *result = (struct backend_result){0};
    if (set->output != BACKEND_SAMPLE_LAST)
        return;
    uint32_t n = set->position + set->n_ids;
    for (uint32_t i = 0; i < n; i++)
        before[i] = b->kv[slot->table[i / BACKEND_BLOCK_TOKENS]][i % BACKEND_BLOCK_TOKENS];
    slot->last = fake_next(slot->params.sampling.seed, before, n);
    result->ids = &slot->last;
    result->n_ids = nan ? 0 : 1;
    result->end = n + 1 >= slot->params.end_position ? BACKEND_END_LENGTH : BACKEND_RUNNING;
    for (uint32_t i = 0; i < slot->params.n_stop_ids; i++)
        if (slot->stop_ids[i] == slot->last)
            result->end = BACKEND_END_STOP;
    if (nan)
        result->end = BACKEND_END_FAULT;
}

/* What builds on an abandoned step goes with it. */
static void abandon_dependent(const struct fake_step *step, struct fake_step *next)
{
    for (uint32_t i = 0; i < step->n; i++)
        for (uint32_t j = 0; j < next->n; j++)
            next->abandoned |= step->sets[i].slot == next->sets[j].slot;
}

static int fake_poll(struct backend *b, uint64_t ticket, int timeout_ms,
                     const struct backend_result **ret_results, struct error *err)
{
    struct fake_step *step = &b->steps[ticket % QUEUE];
    assert(ticket == b->executed + 1 && ticket <= b->submitted);
    if (step->polls++ < fake_script.again)
        return -EAGAIN;
    if (ticket == fake_script.poll_fails_at)
        return error_set(err, -EIO, "the fake caught fire");
    if (fake_script.asynchronous && b->config.progress && b->config.progress(b->config.progress_arg))
        step->abandoned = true;
    step->abandoned |= ticket == fake_script.abandon_at;
    b->executed++;
    for (uint32_t i = 0; i < step->n; i++) {
        struct fake_slot *slot = &b->slots[step->sets[i].slot];
        slot->in_flight--;
        if (!step->abandoned)
            execute_set(b, &step->sets[i], &step->results[i], i == 0 && ticket == fake_script.nan_at);
    }
    if (step->abandoned && b->submitted > ticket)
        abandon_dependent(step, &b->steps[(ticket + 1) % QUEUE]);
    *ret_results = step->results;
    return step->abandoned ? -ECANCELED : 0;
}

static void fake_trim(struct backend *b, uint32_t slot, uint32_t position)
{
}

const struct backend_ops backend_fake = {.name = "fake",
                                         .open = fake_open,
                                         .close = fake_close,
                                         .info = fake_info,
                                         .slot_open = fake_slot_open,
                                         .slot_close = fake_slot_close,
                                         .submit = fake_submit,
                                         .poll = fake_poll,
                                         .trim = fake_trim};
