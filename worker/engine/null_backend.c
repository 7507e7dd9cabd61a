/* SPDX-License-Identifier: MIT */
/* The null backend: tokens for free, to measure and to test everything around a model.
 *
 * The id at a position is a hash of (seed, position), drawn from the ids whose text is printable ASCII, so
 * that a request gives the same text wherever and however often it runs. Stop ids, lengths, masks and tickets
 * behave as on a real device; a step is one "layer" and finishes inside submit. It keeps no KV and reads no
 * weights; logits, where asked for, are 1 at the id that it would sample and 0 elsewhere. */

#include "worker/engine/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker/model/model.h"

#define NULL_RESULT_SETS 3 /* results live until the second submit after them */

struct null_slot {
    uint64_t seed;
    uint32_t end_position, n_logprobs, n_stop_ids;
    int32_t *stop_ids;
};

struct null_results {
    struct backend_result *results; /* [most sets] */
    int32_t *ids;                   /* [max_rows] */
    struct logprob *logprobs;       /* [cap_logprobs], grown on demand */
    size_t cap_logprobs;
    bool abandoned;
};

struct backend {
    struct backend_config config;
    uint32_t n_blocks;
    int32_t *printable; /* [n_printable] */
    uint32_t n_printable;
    struct null_slot *slots; /* [n_slots] */
    uint64_t ticket;         /* of the last step */
    struct null_results sets[NULL_RESULT_SETS];
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
    for (uint32_t i = 0; backend->slots && i < backend->config.n_slots; i++)
        free(backend->slots[i].stop_ids);
    for (int i = 0; i < NULL_RESULT_SETS; i++) {
        free(backend->sets[i].results);
        free(backend->sets[i].ids);
        free(backend->sets[i].logprobs);
    }
    free(backend->slots);
    free(backend->printable);
    free(backend);
}

static int null_open(const struct backend_config *config, struct backend **ret_backend, struct error *err)
{
    struct backend *backend = calloc(1, sizeof *backend);
    if (!backend)
        return error_set(err, -ENOMEM, "null backend: out of memory");
    backend->config = *config;
    uint32_t per_slot = config->n_context / BACKEND_BLOCK_TOKENS + 1;
    backend->n_blocks = config->n_blocks ? config->n_blocks : config->n_slots * per_slot;
    backend->slots = calloc(config->n_slots, sizeof *backend->slots);
    int r = backend->slots ? collect_ids(backend) : -ENOMEM;
    for (int i = 0; i < NULL_RESULT_SETS && r == 0; i++) {
        backend->sets[i].results = calloc(config->max_rows, sizeof *backend->sets[i].results);
        backend->sets[i].ids = calloc(config->max_rows, sizeof *backend->sets[i].ids);
        if (!backend->sets[i].results || !backend->sets[i].ids)
            r = -ENOMEM;
    }
    if (r < 0) {
        null_close(backend);
        return error_set(err, r,
                         r == -EINVAL ? "the model has no token that may be sampled"
                                      : "null backend: out of memory");
    }
    *ret_backend = backend;
    return 0;
}

static void null_info(const struct backend *backend, struct backend_info *ret_info)
{
    *ret_info = (struct backend_info){.device = "null",
                                      .n_blocks = backend->n_blocks,
                                      .block_bytes = BACKEND_BLOCK_TOKENS,
                                      .max_rows = backend->config.max_rows,
                                      .synchronous = true};
}

static int null_slot_open(struct backend *backend, uint32_t slot, const struct backend_slot *params)
{
    struct null_slot *s = &backend->slots[slot];
    int32_t *stop_ids = NULL;
    if (params->n_stop_ids > 0) {
        stop_ids = malloc(params->n_stop_ids * sizeof *stop_ids);
        if (!stop_ids)
            return -ENOMEM;
        memcpy(stop_ids, params->stop_ids, params->n_stop_ids * sizeof *stop_ids);
    }
    free(s->stop_ids);
    *s = (struct null_slot){params->sampling.seed, params->end_position, params->n_logprobs,
                            params->n_stop_ids, stop_ids};
    return 0;
}

static void null_slot_close(struct backend *backend, uint32_t slot)
{
    free(backend->slots[slot].stop_ids);
    backend->slots[slot] = (struct null_slot){0};
}

/* Steele, Lea, Flood: SplitMix64's finalizer, a good mix of 64 bits for three multiplications. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static int32_t id_at(const struct backend *backend, uint64_t seed, uint64_t position, const uint32_t *allowed)
{
    uint64_t hash = mix(seed + 0x9e3779b97f4a7c15ull * (position + 1));
    uint32_t start = (uint32_t)((hash >> 32) * backend->n_printable >> 32);
    if (!allowed)
        return backend->printable[start];
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
        out[id_at(backend, seed, set->position + row + 1, NULL)] = 1;
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

static int null_submit(struct backend *backend, const struct backend_step *step, uint64_t *ret_ticket)
{
    uint64_t ticket = backend->ticket + 1;
    struct null_results *set = &backend->sets[ticket % NULL_RESULT_SETS];
    size_t n_logprobs = 0, used_logprobs = 0;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < step->n_sets; i++) {
        rows += step->sets[i].n_ids;
        n_logprobs += (size_t)step->sets[i].n_ids * backend->slots[step->sets[i].slot].n_logprobs;
    }
    if (rows > backend->config.max_rows)
        return -E2BIG;
    if (reserve_logprobs(set, n_logprobs) < 0)
        return -ENOMEM;
    int32_t *ids = set->ids;
    for (uint32_t i = 0; i < step->n_sets; i++) {
        const struct backend_row_set *rows_of = &step->sets[i];
        const struct null_slot *slot = &backend->slots[rows_of->slot];
        struct backend_result *result = &set->results[i];
        *result = (struct backend_result){.ids = ids};
        if (rows_of->output == BACKEND_LOGITS_LAST || rows_of->output == BACKEND_LOGITS_ALL)
            write_logits(backend, rows_of, slot->seed);
        if (rows_of->output != BACKEND_SAMPLE_LAST && rows_of->output != BACKEND_SAMPLE_ALL)
            continue;
        result->logprobs = slot->n_logprobs ? set->logprobs + used_logprobs : NULL;
        uint32_t row = rows_of->output == BACKEND_SAMPLE_ALL ? 0 : rows_of->n_ids - 1;
        for (; row < rows_of->n_ids && result->end == BACKEND_RUNNING; row++) {
            uint32_t position = rows_of->position + row + 1;
            int32_t id = id_at(backend, slot->seed, position, rows_of->allowed);
            result->end = end_of(slot, id, position);
            if (id < 0)
                break;
            *ids++ = id;
            result->n_ids++;
            write_logprobs(backend, id, slot->n_logprobs, set->logprobs + used_logprobs);
            used_logprobs += slot->n_logprobs;
        }
    }
    set->abandoned = backend->config.progress && backend->config.progress(backend->config.progress_arg);
    *ret_ticket = backend->ticket = ticket;
    return 0;
}

static int null_poll(struct backend *backend, uint64_t ticket, int timeout_ms,
                     const struct backend_result **ret_results, struct error *err)
{
    if (ticket == 0 || ticket > backend->ticket || ticket + NULL_RESULT_SETS <= backend->ticket)
        return error_set(err, -EINVAL, "null backend: no step %llu", (unsigned long long)ticket);
    const struct null_results *set = &backend->sets[ticket % NULL_RESULT_SETS];
    if (set->abandoned)
        return -ECANCELED;
    *ret_results = set->results;
    return 0;
}

static void null_trim(struct backend *backend, uint32_t slot, uint32_t position)
{
}

static int null_blocks_read(struct backend *backend, const uint32_t *blocks, uint32_t n, void *out)
{
    memset(out, 0, (size_t)n * BACKEND_BLOCK_TOKENS);
    return 0;
}

static int null_blocks_write(struct backend *backend, const uint32_t *blocks, uint32_t n, const void *in)
{
    return 0;
}

const struct backend_ops backend_null = {.name = "null",
                                         .open = null_open,
                                         .close = null_close,
                                         .info = null_info,
                                         .slot_open = null_slot_open,
                                         .slot_close = null_slot_close,
                                         .submit = null_submit,
                                         .poll = null_poll,
                                         .trim = null_trim,
                                         .blocks_read = null_blocks_read,
                                         .blocks_write = null_blocks_write};
