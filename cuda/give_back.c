/* SPDX-License-Identifier: MIT */
/* See give_back.h. */

#include "cuda/give_back.h"

#include <errno.h>

#include "cuda/host/step_logits.h"

size_t give_back_pinned(const struct backend *backend)
{
    const struct copies *copies = &backend->copies;
    const size_t logits = backend->steps.logits ? 0 : steps_logits_bytes(&backend->steps);
    return COPIES_AT_ONCE * copies->staging_bytes - copies_bytes(copies) + logits;
}

static size_t give_library(struct backend *backend)
{
    if (!backend->large.scratch)
        return 0;
    const size_t bytes = library_products_give_back(&backend->large, backend->device);
    backend->memory_bytes -= bytes;
    backend->large_from = backend->pass.large_from;
    backend->pass.large_from = UINT32_MAX;
    return bytes;
}

int give_back_idle(struct backend *backend, struct backend_given *ret_given)
{
    int r = steps_wait(&backend->steps);
    if (r < 0)
        return steps_fail(&backend->steps, r);
    const size_t before = give_back_pinned(backend);
    copies_give_back(&backend->copies);
    if (backend->steps.logits)
        steps_give_back_logits(&backend->steps);
    *ret_given = (struct backend_given){.library = give_library(backend),
                                        .staging = give_back_pinned(backend) - before};
    return 0;
}

static bool is_large(const struct backend *backend, const struct backend_step *step)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < step->n_sets; i++)
        rows += step->sets[i].n_ids;
    return rows >= backend->large_from;
}

static bool wants_logits(const struct backend *backend, const struct backend_step *step)
{
    for (uint32_t i = 0; i < step->n_sets; i++)
        if (step_samples(step->sets[i].output) ? backend->steps.host != NULL
                                               : step->sets[i].output != BACKEND_OUTPUT_NONE)
            return true;
    return false;
}

int give_back_take_again(struct backend *backend, const struct backend_step *step)
{
    if (backend->sizes.library_rows > 0 && !backend->large.scratch && is_large(backend, step)) {
        const size_t bytes = library_products_take_again(&backend->large, backend->device);
        backend->memory_bytes += bytes;
        if (bytes > 0)
            backend->pass.large_from = backend->large_from;
    }
    if (backend->steps.logits || !wants_logits(backend, step))
        return 0;
    return steps_take_logits(&backend->steps);
}
