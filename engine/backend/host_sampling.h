/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_HOST_SAMPLING_H
#define ENGINE_BACKEND_HOST_SAMPLING_H

/* Sampling on the host beside a device that samples too, to find out whether it does so correctly. A backend
 * that always samples on the host has none of it, so it is no part of the table in backend.h: backend_choice
 * and plugins have it beside that table. */

#include <stdint.h>

#include "engine/backend/backend.h"

/* An id at index `position` of a sequence that device and host sampled differently. An id is −1, and its
 * logit NaN, where nothing could be sampled. */
struct backend_difference {
    uint64_t position;
    int32_t of_device, of_host;
    float logit_of_device, logit_of_host; /* of these ids, before penalties and filters */
};

struct backend_host_sampling {
    /* From now on the logits of sampled rows come to the host, which samples them too, and its ids count in
     * place of the device's. Before the first slot is opened; info.most_flights is 1 then. 0, or -ENOMEM with
     * a reason. */
    int (*begin)(struct backend *backend, struct error *err);

    /* What differed in row set `set` of the step that was polled to its end last: how many ids, and which,
     * valid until the next submit. */
    uint32_t (*differences)(const struct backend *backend, uint32_t set,
                            const struct backend_difference **ret_differences);

    /* Ids that both have sampled since then, and those of them that differ. */
    void (*counts)(const struct backend *backend, uint64_t *ret_compared, uint64_t *ret_different);
};

#endif
