/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_HOST_SAMPLING_H
#define ENGINE_BACKEND_HOST_SAMPLING_H

/* Sampling on the host in addition to a device that samples, to check the device. Backends that always sample
 * on the host do not have it, so it is not part of the table in backend.h: backend_choice and plugins carry
 * it beside that table. */

#include <stdint.h>

#include "engine/backend/backend.h"

/* An id at index `position` of a sequence that device and host sampled differently. If nothing could be
 * sampled, the id is −1 and its logit NaN. */
struct backend_difference {
    uint64_t position;
    int32_t of_device, of_host;
    float logit_of_device, logit_of_host; /* of these ids, before penalties and filters */
};

struct backend_host_sampling {
    /* From now on the logits of sampled rows come to the host, which samples them too, and its ids are used
     * instead of the device's. Call it before the first slot is opened; info.most_flights is 1 afterwards. 0,
     * or -ENOMEM with a reason. */
    int (*begin)(struct backend *backend, struct error *err);

    /* The differences in row set `set` of the step that was last polled to its end: their number, and the
     * list, valid until the next submit. */
    uint32_t (*differences)(const struct backend *backend, uint32_t set,
                            const struct backend_difference **ret_differences);

    /* Ids that both have sampled since `begin`, and how many of them differ. */
    void (*counts)(const struct backend *backend, uint64_t *ret_compared, uint64_t *ret_different);
};

#endif
