/* SPDX-License-Identifier: MIT */
/* The null backend: tokens for free, to measure and to test everything around a model.
 *
 * The id at a position is a hash of (seed, position), drawn from the ids whose text is printable ASCII, so
 * that a request gives the same text wherever and however often it runs. Stop ids, lengths, masks and tickets
 * behave as on a real device; a step is one "layer" and finishes inside submit. It keeps no KV, though it has
 * the model's groups of blocks, and reads no weights; logits, where asked for, are 1 at the id that it would
 * sample and 0 elsewhere, and the numbers of a final state are hashes of its id. */

#include "engine/backend/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend/kv_groups.h"
#include "model/model.h"

#define STEP_MS       100
#define ALONE_MS      1000
#define CHUNK_LEAST   8
#define CHUNK_MOST    512
#define MAX_ROWS      512
#define MOST_STOP_IDS 1024
#define COPY_TICKET   (1ull << 63) /* of copies, which are done when it is given */

struct null_slot {
    bool open, spoiled;
    uint64_t seed;
    uint32_t end_position, n_logprobs, n_stop_ids;
    int32_t *stop_ids;
    uint32_t position, told; /* ids fed, blocks told of */
    bool sampled;            /* has a last id */
    double *sums;            /* [n_embd] of one that embeds; else NULL */
    enum backend_end end;
};

struct null_results {
    struct backend_result *results; /* [most sets] */
    int32_t *ids;                   /* [max_rows] */
    struct logprob *logprobs;       /* [cap_logprobs], grown on demand */
    size_t cap_logprobs;
    uint64_t ticket; /* 0 once they were polled */
    bool abandoned;
};

struct backend {
    struct backend_config config;
    struct backend_group groups[BACKEND_MOST_GROUPS];
    uint32_t n_groups;
    int32_t *printable; /* [n_printable] */
    uint32_t n_printable;
    struct null_slot *slots; /* [n_slots] */
    uint64_t steps, copies;  /* so far */
    struct null_results results;
};

static bool is_printable(const struct tokenizer *tokenizer, int32_t id)
{
    if (tokenizer_type(tokenizer, id) != TOKEN_NORMAL)
        return false;
    struct bytes piece = tokenizer_piece(tokenizer, id, false);
    const uint8_t *bytes = piece.data;
    for (size_t i = 0; i < piece.len; i++)
        if (bytes[i] < ' ' || bytes[i] > '~')
            return false;
    return piece.len > 0;
}

/* Collects the printable ids, or all that may be sampled when there are none. */
static int collect_ids(struct backend *backend)
{
    const struct model *model = backend->config.model;
    uint32_t n_vocab = model->params.n_vocab;
    uint32_t n_pieces = model->tokenizer ? tokenizer_size(model->tokenizer) : 0;
    backend->printable = malloc(((size_t)n_vocab + 1) * sizeof *backend->printable);
    if (!backend->printable)
        return -ENOMEM;
    for (uint32_t id = 0; id < n_vocab && id < n_pieces; id++)
        if (model_may_sample(model, id) && is_printable(model->tokenizer, (int32_t)id))
            backend->printable[backend->n_printable++] = (int32_t)id;
    for (uint32_t id = 0; id < n_vocab && backend->n_printable == 0; id++)
        if (model_may_sample(model, id))
            backend->printable[backend->n_printable++] = (int32_t)id;
    return backend->n_printable > 0 ? 0 : -EINVAL;
}

static void null_close(struct backend *backend)
{
    if (!backend)
        return;
    for (uint32_t i = 0; backend->slots && i < backend->config.n_slots; i++) {
        free(backend->slots[i].stop_ids);
        free(backend->slots[i].sums);
    }
    free(backend->results.results);
    free(backend->results.ids);
    free(backend->results.logprobs);
    free(backend->slots);
    free(backend->printable);
    free(backend);
}

static int null_open(const struct backend_config *config, struct backend **ret_backend, struct error *err)
{
    if (config->n_devices > 0 || config->weights || config->kv_type != BACKEND_KV_DEFAULT || config->profile)
        return error_set(err, -ENOTSUP, "the null backend has no devices, weights, KV types or kernels");
    struct backend *backend = calloc(1, sizeof *backend);
    if (!backend)
        return error_set(err, -ENOMEM, "null backend: out of memory");
    backend->config = *config;
    uint32_t max_rows = backend->config.max_rows = backend_rows_for(config, MAX_ROWS);
    backend->n_groups = kv_groups_of(config->model, config->n_context, backend->groups);
    for (uint32_t g = 0; g < backend->n_groups; g++) {
        struct backend_group *group = &backend->groups[g];
        uint64_t wants = kv_group_wants(group, config->n_slots, config->n_context, max_rows);
        group->n_blocks = config->n_blocks ? config->n_blocks : (uint32_t)wants;
        group->block_bytes = BACKEND_BLOCK_TOKENS;
    }
    backend->slots = calloc(config->n_slots, sizeof *backend->slots);
    int r = backend->slots ? collect_ids(backend) : -ENOMEM;
    backend->results.results = calloc(max_rows, sizeof *backend->results.results);
    backend->results.ids = calloc(max_rows, sizeof *backend->results.ids);
    if (r == 0 && (!backend->results.results || !backend->results.ids))
        r = -ENOMEM;
    if (r < 0) {
        null_close(backend);
        return error_set(err, r,
                         r == -EINVAL ? "the model has no token to sample" : "null backend: out of memory");
    }
    *ret_backend = backend;
    return 0;
}

static void null_info(const struct backend *backend, struct backend_info *ret_info)
{
    *ret_info = (struct backend_info){.device = "null",
                                      .n_groups = backend->n_groups,
                                      .n_slots = backend->config.n_slots,
                                      .most_flights = 1,
                                      .most_stop_ids = MOST_STOP_IDS,
                                      .max_rows = backend->config.max_rows,
                                      .n_embedding = backend->config.model->params.n_embd,
                                      .step_ms = STEP_MS,
                                      .alone_ms = ALONE_MS,
                                      .chunk_least = CHUNK_LEAST,
                                      .chunk_most = CHUNK_MOST};
    memcpy(ret_info->groups, backend->groups, sizeof ret_info->groups);
}

static int null_slot_open(struct backend *backend, uint32_t slot, const struct backend_slot *params)
{
    if (slot >= backend->config.n_slots || backend->slots[slot].open || params->n_stop_ids > MOST_STOP_IDS)
        return -EINVAL;
    int32_t *stop_ids = NULL;
    if (params->n_stop_ids > 0) {
        stop_ids = malloc(params->n_stop_ids * sizeof *stop_ids);
        if (!stop_ids)
            return -ENOMEM;
        memcpy(stop_ids, params->stop_ids, params->n_stop_ids * sizeof *stop_ids);
    }
    double *sums = NULL;
    if (params->embeds) {
        sums = calloc(backend->config.model->params.n_embd, sizeof *sums);
        if (!sums) {
            free(stop_ids);
            return -ENOMEM;
        }
    }
    backend->slots[slot] = (struct null_slot){.open = true,
                                              .seed = params->sampling.seed,
                                              .end_position = params->end_position,
                                              .n_logprobs = params->n_logprobs,
                                              .n_stop_ids = params->n_stop_ids,
                                              .stop_ids = stop_ids,
                                              .sums = sums,
                                              .position = params->position};
    return 0;
}

static void null_slot_close(struct backend *backend, uint32_t slot)
{
    free(backend->slots[slot].stop_ids);
    free(backend->slots[slot].sums);
    backend->slots[slot] = (struct null_slot){0};
}

/* Steele, Lea, Flood: SplitMix64's finalizer, a good mix of 64 bits for three multiplications. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* Where among the printable ids the one of a position is. */
static uint32_t place_at(const struct backend *backend, uint64_t seed, uint64_t position)
{
    uint64_t hash = mix(seed + 0x9e3779b97f4a7c15ull * (position + 1));
    return (uint32_t)((hash >> 32) * backend->n_printable >> 32);
}

/* The first id from that place on that is allowed; −1: none is. */
static int32_t allowed_id(const struct backend *backend, uint32_t start, const uint32_t *allowed)
{
    for (uint32_t i = 0; i < backend->n_printable; i++) {
        int32_t id = backend->printable[(start + i) % backend->n_printable];
        if (allowed[id / 32] >> (id % 32) & 1)
            return id;
    }
    for (uint32_t id = 0; id < backend->config.model->params.n_vocab; id++)
        if (allowed[id / 32] >> (id % 32) & 1 && model_may_sample(backend->config.model, id))
            return (int32_t)id;
    return -1;
}

static enum backend_end end_of(const struct null_slot *slot, int32_t id, uint32_t position)
{
    if (id < 0)
        return BACKEND_END_FAULT;
    for (uint32_t i = 0; i < slot->n_stop_ids; i++)
        if (slot->stop_ids[i] == id)
            return BACKEND_END_STOP;
    return position + 1 >= slot->end_position ? BACKEND_END_LENGTH : BACKEND_RUNNING;
}

static void write_logits(const struct backend *backend, const struct backend_row_set *set, uint64_t seed)
{
    uint32_t n_vocab = backend->config.model->params.n_vocab;
    uint32_t first = set->output == BACKEND_LOGITS_ALL ? 0 : set->n_ids - 1;
    float *out = set->logits;
    for (uint32_t row = first; row < set->n_ids; row++, out += n_vocab) {
        memset(out, 0, n_vocab * sizeof *out);
        out[backend->printable[place_at(backend, seed, set->position + row + 1)]] = 1;
    }
}

static int reserve_logprobs(struct null_results *set, size_t need)
{
    if (need <= set->cap_logprobs)
        return 0;
    struct logprob *moved = realloc(set->logprobs, need * sizeof *moved);
    if (!moved)
        return -ENOMEM;
    set->logprobs = moved;
    set->cap_logprobs = need;
    return 0;
}

/* The sampled id is certain; the alternatives are its neighbours among the printable ids. */
static void write_logprobs(const struct backend *backend, int32_t id, uint32_t n, struct logprob *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = i == 0 ? (struct logprob){id, 0}
                        : (struct logprob){backend->printable[(i - 1) % backend->n_printable], -100};
}

static int check_set(const struct backend *backend, const struct backend_row_set *set)
{
    if (set->slot >= backend->config.n_slots || set->n_ids == 0)
        return -EINVAL;
    const struct null_slot *slot = &backend->slots[set->slot];
    uint64_t covered = (uint64_t)(slot->told + set->blocks[0].n) * BACKEND_BLOCK_TOKENS;
    bool placed = set->ids ? set->position == slot->position
                           : set->position >= slot->position && set->n_ids == 1 &&
                                 (slot->sampled || slot->end != BACKEND_RUNNING);
    bool told = (uint64_t)set->position + set->n_ids <= covered;
    for (uint32_t g = 0; g < backend->n_groups; g++)
        told = told && set->blocks[g].told == slot->told && set->blocks[g].n == set->blocks[0].n;
    bool sums = set->output == BACKEND_SUM_LAST;
    bool fits = slot->sums ? set->ids && (sums || set->output == BACKEND_OUTPUT_NONE) : !sums;
    return slot->open && !slot->spoiled && placed && told && fits ? 0 : -EINVAL;
}

/* Samples after a row into the result; false where nothing follows it. */
static inline bool sample(const struct backend *backend, struct null_slot *slot, uint32_t position,
                          const uint32_t *allowed, struct backend_result *result, int32_t *ids,
                          struct logprob *logprobs)
{
    uint32_t place = place_at(backend, slot->seed, position);
    int32_t id = allowed ? allowed_id(backend, place, allowed) : backend->printable[place];
    slot->end = end_of(slot, id, position);
    if (id < 0)
        return false;
    if (slot->n_logprobs > 0)
        write_logprobs(backend, id, slot->n_logprobs, logprobs + (size_t)result->n_ids * slot->n_logprobs);
    ids[result->n_ids++] = id;
    slot->sampled = true;
    return slot->end == BACKEND_RUNNING;
}

/* A draft, up to the first id that is not what would have been sampled. */
static void verify(const struct backend *backend, struct null_slot *slot, const struct backend_row_set *set,
                   struct backend_result *result, int32_t *ids, struct logprob *logprobs)
{
    size_t mask_words = (backend->config.model->params.n_vocab + 31) / 32;
    bool agreed = true;
    for (uint32_t row = 0; row < set->n_ids && agreed; row++) {
        const uint32_t *allowed = set->allowed ? set->allowed + row * mask_words : NULL;
        agreed = sample(backend, slot, slot->position + row + 1, allowed, result, ids, logprobs) &&
                 row + 1 < set->n_ids && set->ids[row + 1] == ids[row];
        result->n_accepted += agreed;
    }
}

/* Adds the final states of the set's rows, or of those that the pooling takes: numbers from −0.5 to 0.5. */
static void sum_rows(const struct backend *backend, const struct null_slot *slot,
                     const struct backend_row_set *set)
{
    uint32_t first = 0;
    const uint32_t n = backend_pooled_rows(backend->config.model->params.pooling, set, &first);
    for (uint32_t row = first; row < first + n; row++)
        for (uint32_t i = 0; i < backend->config.model->params.n_embd; i++)
            slot->sums[i] += (double)(mix(((uint64_t)set->ids[row] << 32) + i) >> 11) * 0x1p-53 - 0.5;
}

/* Runs a row set. The result is one of nothing yet, with the places of its ids and log probabilities. */
static void run_set(const struct backend *backend, struct null_slot *slot, const struct backend_row_set *set,
                    int32_t *ids, struct logprob *logprobs, struct backend_result *result)
{
    slot->told += set->blocks[0].n;
    if (set->allowed && set->await)
        set->await(set->await_arg);
    if (slot->end == BACKEND_RUNNING) {
        uint32_t moved = set->n_ids;
        slot->sampled = false;
        if (slot->sums)
            sum_rows(backend, slot, set);
        switch (set->output) {
        case BACKEND_OUTPUT_NONE:
            break;
        case BACKEND_SUM_LAST:
            result->sums = slot->sums;
            break;
        case BACKEND_SAMPLE_LAST:
            sample(backend, slot, slot->position + set->n_ids, set->allowed, result, ids, logprobs);
            break;
        case BACKEND_SAMPLE_ALL:
            verify(backend, slot, set, result, ids, logprobs);
            moved = result->n_accepted + 1;
            break;
        case BACKEND_LOGITS_LAST:
        case BACKEND_LOGITS_ALL:
            write_logits(backend, set, slot->seed);
            break;
        }
        slot->position += moved;
    }
    result->end = slot->end;
}

static int null_submit(struct backend *backend, const struct backend_step *step, uint64_t *ret_ticket)
{
    struct null_results *results = &backend->results;
    size_t n_logprobs = 0;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < step->n_sets; i++) {
        int r = check_set(backend, &step->sets[i]);
        if (r < 0)
            return r;
        rows += step->sets[i].n_ids;
        n_logprobs += (size_t)step->sets[i].n_ids * backend->slots[step->sets[i].slot].n_logprobs;
    }
    if (rows == 0 || rows > backend->config.max_rows)
        return -EINVAL;
    if (reserve_logprobs(results, n_logprobs) < 0)
        return -ENOMEM;
    int32_t *ids = results->ids;
    struct logprob *logprobs = results->logprobs;
    for (uint32_t i = 0; i < step->n_sets; i++) {
        const struct backend_row_set *set = &step->sets[i];
        struct null_slot *slot = &backend->slots[set->slot];
        results->results[i] =
            (struct backend_result){.ids = ids, .logprobs = slot->n_logprobs > 0 ? logprobs : NULL};
        run_set(backend, slot, set, ids, logprobs, &results->results[i]);
        ids += set->n_ids;
        if (slot->n_logprobs > 0)
            logprobs += (size_t)set->n_ids * slot->n_logprobs;
    }
    results->abandoned = backend->config.progress && backend->config.progress(backend->config.progress_arg);
    for (uint32_t i = 0; i < step->n_sets && results->abandoned; i++)
        backend->slots[step->sets[i].slot].spoiled = true;
    *ret_ticket = results->ticket = ++backend->steps;
    return 0;
}

static int null_poll(struct backend *backend, uint64_t ticket, int timeout_ms,
                     const struct backend_result **ret_results, struct error *err)
{
    struct null_results *results = &backend->results;
    if (ticket - COPY_TICKET - 1 < backend->copies) /* a step's ticket is below, and wraps */
        return 0;
    if (ticket == 0 || ticket != results->ticket)
        return error_set(err, -EINVAL, "null backend: no ticket %llu is open", (unsigned long long)ticket);
    results->ticket = 0;
    if (results->abandoned)
        return -ECANCELED;
    *ret_results = results->results;
    return 0;
}

static void null_trim(struct backend *backend, uint32_t index, uint32_t position, uint32_t snapshot)
{
    struct null_slot *slot = &backend->slots[index];
    if (!slot->open || slot->spoiled || position > slot->position)
        return;
    uint32_t keep = backend_blocks_for(position);
    slot->position = position;
    slot->told = keep < slot->told ? keep : slot->told;
    slot->sampled = false;
    slot->end = BACKEND_RUNNING;
}

static int null_copy(struct backend *backend, const struct backend_copy *copy, uint64_t *ret_ticket)
{
    if (copy->group >= backend->n_groups)
        return -EINVAL;
    for (uint32_t i = 0; i < copy->n; i++)
        if (copy->blocks[i] >= backend->groups[copy->group].n_blocks)
            return -EINVAL;
    *ret_ticket = COPY_TICKET + ++backend->copies;
    return 0;
}

static int null_copy_out(struct backend *backend, const struct backend_copy *copy, uint64_t *ret_ticket)
{
    int r = null_copy(backend, copy, ret_ticket);
    if (r == 0)
        memset(copy->host, 0, (size_t)copy->n * BACKEND_BLOCK_TOKENS);
    return r;
}

static int null_copy_block(struct backend *backend, uint32_t group, uint32_t from, uint32_t to)
{
    const bool is_there = group < backend->n_groups && from < backend->groups[group].n_blocks &&
                          to < backend->groups[group].n_blocks;
    return is_there ? 0 : -EINVAL;
}

static int null_verdict(struct backend *backend, struct error *err)
{
    return 0;
}

const struct backend_ops backend_null = {.name = "null",
                                         .self_contained = true,
                                         .open = null_open,
                                         .close = null_close,
                                         .info = null_info,
                                         .slot_open = null_slot_open,
                                         .slot_close = null_slot_close,
                                         .submit = null_submit,
                                         .poll = null_poll,
                                         .trim = null_trim,
                                         .copy_out = null_copy_out,
                                         .copy_in = null_copy,
                                         .copy_block = null_copy_block,
                                         .verdict = null_verdict};
