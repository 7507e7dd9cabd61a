/* SPDX-License-Identifier: MIT */
/* A sequence in slot 0 whose blocks are numbers 0, 1, 2 …: position p lies in block p / 32. */

#include "client/command/direct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker/model/model.h"

struct direct {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_info info;
    uint32_t n_context, chunk, n_vocab;
    uint32_t position; /* ids so far */
    uint32_t *blocks;  /* [n_context / 32, rounded up]: 0, 1, 2 … */
};

int direct_open(const char *path, const char *device, struct model **ret_model,
                const struct backend_ops **ret_backend, struct error *err)
{
    const struct backend_ops *backend = backend_by_name(device);
    if (!backend)
        return error_set(err, -ENODEV, "this build has no device \"%s\"", device);
    int r = model_open(path, false, ret_model, err);
    if (r == 0)
        *ret_backend = backend;
    return r;
}

static int open_backend(struct direct *direct, const struct direct_config *config, struct error *err)
{
    uint32_t n_blocks = backend_blocks_for(config->n_context);
    direct->blocks = calloc(n_blocks, sizeof *direct->blocks);
    if (!direct->blocks)
        return error_set(err, -ENOMEM, "no memory for %u blocks", n_blocks);
    for (uint32_t i = 0; i < n_blocks; i++)
        direct->blocks[i] = i;
    struct backend_config backend = {.model = config->model,
                                     .n_slots = 1,
                                     .n_context = config->n_context,
                                     .n_blocks = n_blocks,
                                     .max_rows = config->chunk,
                                     .n_threads = config->n_threads,
                                     .float_activations = config->float_activations,
                                     .portable = config->portable};
    int r = direct->ops->open(&backend, &direct->backend, err);
    if (r < 0)
        return r;
    direct->ops->info(direct->backend, &direct->info);
    struct backend_slot slot = {.sampling = {.top_p = 1, .repetition_penalty = 1},
                                .end_position = UINT32_MAX};
    r = direct->ops->slot_open(direct->backend, 0, &slot);
    return r < 0 ? error_set(err, r, "slot: %s", strerror(-r)) : 0;
}

int direct_new(const struct direct_config *config, struct direct **ret_direct, struct error *err)
{
    struct direct *direct = calloc(1, sizeof *direct);
    if (!direct)
        return error_set(err, -ENOMEM, "no memory");
    direct->ops = config->backend;
    direct->n_context = config->n_context;
    direct->chunk = config->chunk;
    direct->n_vocab = config->model->params.n_vocab;
    int r = open_backend(direct, config, err);
    if (r < 0) {
        direct_free(direct);
        return r;
    }
    *ret_direct = direct;
    return 0;
}

struct direct *direct_free(struct direct *direct)
{
    if (!direct)
        return NULL;
    if (direct->backend)
        direct->ops->close(direct->backend);
    free(direct->blocks);
    free(direct);
    return NULL;
}

/* One step on the sequence; the set's output and ids are given, the rest is filled in. */
static int step(struct direct *direct, struct backend_row_set *set, const struct backend_result **ret_result,
                struct error *err)
{
    if (set->n_ids > direct->n_context - direct->position)
        return error_set(err, -EINVAL, "%u ids are more than the context of %u",
                         direct->position + set->n_ids, direct->n_context);
    uint32_t have = backend_blocks_for(direct->position),
             need = backend_blocks_for(direct->position + set->n_ids);
    set->position = direct->position;
    set->blocks = direct->blocks + have;
    set->n_blocks = need - have;
    struct backend_step one = {.sets = set, .n_sets = 1};
    uint64_t ticket;
    int r = direct->ops->submit(direct->backend, &one, &ticket);
    if (r < 0)
        return error_set(err, r, "the step was refused: %s", strerror(-r));
    do
        r = direct->ops->poll(direct->backend, ticket, 1000, ret_result, err);
    while (r == -EAGAIN);
    if (r == 0)
        direct->position += set->n_ids;
    return r;
}

int direct_feed(struct direct *direct, const int32_t *ids, uint32_t n, bool all, float *logits,
                struct error *err)
{
    for (uint32_t done = 0; done < n;) {
        uint32_t chunk = n - done < direct->chunk ? n - done : direct->chunk;
        struct backend_row_set set = {.ids = ids + done, .n_ids = chunk};
        bool last = done + chunk == n;
        if (logits && (all || last)) {
            set.output = all ? BACKEND_LOGITS_ALL : BACKEND_LOGITS_LAST;
            set.logits = all ? logits + (size_t)done * direct->n_vocab : logits;
        }
        const struct backend_result *unused;
        int r = step(direct, &set, &unused, err);
        if (r < 0)
            return r;
        done += chunk;
    }
    return 0;
}

int direct_decode(struct direct *direct, int32_t *id, struct error *err)
{
    struct backend_row_set set = {.ids = id, .n_ids = 1, .output = BACKEND_SAMPLE_LAST};
    const struct backend_result *result;
    int r = step(direct, &set, &result, err);
    if (r < 0)
        return r;
    if (result->n_ids != 1)
        return error_set(err, -EDOM, "no logit is finite");
    *id = result->ids[0];
    return 0;
}

void direct_rewind(struct direct *direct, uint32_t position)
{
    if (position >= direct->position)
        return;
    direct->ops->trim(direct->backend, 0, position);
    direct->position = position;
}

void direct_info(const struct direct *direct, struct backend_info *ret_info)
{
    *ret_info = direct->info;
}
