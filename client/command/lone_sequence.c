/* SPDX-License-Identifier: MIT */
/* A sequence in slot 0 whose blocks are numbers 0, 1, 2 …: position p lies in block p / 32, of every group.
 */

#include "client/command/lone_sequence.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/program/program.h"
#include "model/model.h"

struct lone_sequence {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_info info;
    uint32_t n_context, chunk, n_vocab;
    uint32_t position; /* ids so far */
    uint32_t n_told;   /* blocks that the slot has */
    uint32_t kept;     /* the position at which snapshot 0 was taken; 0: none was */
    bool fell_back;    /* to the CPU */
    uint32_t *blocks;  /* [n_context / 32, rounded up]: 0, 1, 2 … */
};

int lone_sequence_open_model(const char *path, const char *device, struct model **ret_model,
                             struct backend_choice *ret_backend, struct error *err)
{
    struct model *model;
    int r = model_open(path, false, &model, err);
    if (r < 0)
        return r;
    r = backend_choose(device, model, ret_backend, err);
    if (r < 0) {
        model_free(model);
        return r;
    }
    if (ret_backend->note.text[0])
        program_error("%s", ret_backend->note.text);
    *ret_model = model;
    return 0;
}

static void say(void *arg, const char *line)
{
    fprintf(stderr, "%s\n", line);
}

static int open_backend(struct lone_sequence *sequence, const struct lone_sequence_config *config,
                        struct error *err)
{
    uint32_t n_blocks = backend_blocks_for(config->n_context);
    sequence->blocks = calloc(n_blocks, sizeof *sequence->blocks);
    if (!sequence->blocks)
        return error_set(err, -ENOMEM, "not enough memory for %u blocks", n_blocks);
    for (uint32_t i = 0; i < n_blocks; i++)
        sequence->blocks[i] = i;
    struct backend_config backend = {.model = config->model,
                                     .n_slots = 1,
                                     .n_context = config->n_context,
                                     .n_blocks = n_blocks,
                                     .max_rows = config->chunk,
                                     .kv_type = config->kv_type,
                                     .profile = config->profile,
                                     .cuda = {.library_rows = config->library_rows},
                                     .say = say,
                                     .loaded = config->loaded,
                                     .loaded_arg = config->loaded_arg,
                                     .cpu = {.n_threads = config->n_threads,
                                             .float_activations = config->float_activations,
                                             .portable = config->portable}};
    struct backend_choice choice = config->backend;
    sequence->ops = choice.ops;
    int r = sequence->ops->open(&backend, &sequence->backend, err);
    if (r < 0 && backend_fall_back(&choice, err)) {
        program_error("%s", choice.note.text);
        sequence->ops = choice.ops;
        sequence->fell_back = true;
        r = sequence->ops->open(&backend, &sequence->backend, err);
    }
    if (r < 0)
        return r;
    sequence->ops->info(sequence->backend, &sequence->info);
    struct backend_slot slot = {.sampling = SAMPLING_GREEDY, .end_position = UINT32_MAX};
    r = sequence->ops->slot_open(sequence->backend, 0, &slot);
    return r < 0 ? error_set(err, r, "slot: %s", strerror(-r)) : 0;
}

int lone_sequence_new(const struct lone_sequence_config *config, struct lone_sequence **ret_sequence,
                      struct error *err)
{
    struct lone_sequence *sequence = calloc(1, sizeof *sequence);
    if (!sequence)
        return error_set(err, -ENOMEM, "out of memory");
    sequence->n_context = config->n_context;
    sequence->chunk = config->chunk;
    sequence->n_vocab = config->model->params.n_vocab;
    int r = open_backend(sequence, config, err);
    if (r < 0) {
        lone_sequence_free(sequence);
        return r;
    }
    *ret_sequence = sequence;
    return 0;
}

struct lone_sequence *lone_sequence_free(struct lone_sequence *sequence)
{
    if (!sequence)
        return NULL;
    if (sequence->backend)
        sequence->ops->close(sequence->backend);
    free(sequence->blocks);
    free(sequence);
    return NULL;
}

/* One step on the sequence; the set's output and ids are given, the rest is filled in. */
static int step(struct lone_sequence *sequence, struct backend_row_set *set,
                const struct backend_result **ret_result, struct error *err)
{
    if (set->n_ids > sequence->n_context - sequence->position)
        return error_set(err, -EINVAL, "%u ids; the context holds %u", sequence->position + set->n_ids,
                         sequence->n_context);
    uint32_t have = sequence->n_told, need = backend_blocks_for(sequence->position + set->n_ids);
    need = need > have ? need : have;
    set->position = sequence->position;
    for (uint32_t g = 0; g < sequence->info.n_groups; g++)
        set->blocks[g] = (struct backend_blocks){sequence->blocks + have, need - have, have};
    struct backend_step one = {.sets = set, .n_sets = 1};
    uint64_t ticket;
    int r = sequence->ops->submit(sequence->backend, &one, &ticket);
    if (r < 0)
        return error_set(err, r, "the step was rejected: %s", strerror(-r));
    do
        r = sequence->ops->poll(sequence->backend, ticket, 1000, ret_result, err);
    while (r == -EAGAIN);
    if (r == 0) {
        sequence->position += set->n_ids;
        sequence->n_told = need;
    }
    return r;
}

/* `ret_id`, if not NULL, gets the id that is sampled behind the last one. */
static int feed(struct lone_sequence *sequence, const int32_t *ids, uint32_t n, bool all, float *logits,
                int32_t *ret_id, struct error *err)
{
    for (uint32_t done = 0; done < n;) {
        uint32_t chunk = n - done < sequence->chunk ? n - done : sequence->chunk;
        struct backend_row_set set = {.ids = ids + done, .n_ids = chunk};
        bool last = done + chunk == n;
        if (logits && (all || last)) {
            set.output = all ? BACKEND_LOGITS_ALL : BACKEND_LOGITS_LAST;
            set.logits = all ? logits + (size_t)done * sequence->n_vocab : logits;
        } else if (ret_id && last) {
            set.output = BACKEND_SAMPLE_LAST;
        } else if (last && sequence->info.state_bytes > 0) {
            set.snapshot_rows = chunk;
            sequence->kept = sequence->position + chunk;
        }
        const struct backend_result *result;
        int r = step(sequence, &set, &result, err);
        if (r < 0)
            return r;
        if (set.output == BACKEND_SAMPLE_LAST) {
            if (result->n_ids != 1)
                return error_set(err, -EDOM, "no logit is finite");
            *ret_id = result->ids[0];
        }
        done += chunk;
    }
    return 0;
}

int lone_sequence_feed(struct lone_sequence *sequence, const int32_t *ids, uint32_t n, bool all,
                       float *logits, struct error *err)
{
    return feed(sequence, ids, n, all, logits, NULL, err);
}

int lone_sequence_prefill(struct lone_sequence *sequence, const int32_t *ids, uint32_t n, int32_t *ret_id,
                          struct error *err)
{
    return feed(sequence, ids, n, false, NULL, ret_id, err);
}

int lone_sequence_decode(struct lone_sequence *sequence, int32_t *id, struct error *err)
{
    return feed(sequence, id, 1, false, NULL, id, err);
}

void lone_sequence_rewind(struct lone_sequence *sequence, uint32_t position)
{
    if (position >= sequence->position)
        return;
    sequence->ops->trim(sequence->backend, 0, position, position == sequence->kept ? 0 : UINT32_MAX);
    sequence->position = position;
    sequence->n_told = backend_blocks_for(position);
}

uint32_t lone_sequence_profile(struct lone_sequence *sequence, const struct backend_kernel **ret_kernels)
{
    return sequence->ops->profile ? sequence->ops->profile(sequence->backend, ret_kernels) : 0;
}

void lone_sequence_info(const struct lone_sequence *sequence, struct backend_info *ret_info)
{
    *ret_info = sequence->info;
}

bool lone_sequence_fell_back(const struct lone_sequence *sequence)
{
    return sequence->fell_back;
}
