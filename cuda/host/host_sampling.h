/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_HOST_SAMPLING_H
#define CUDA_HOST_HOST_SAMPLING_H

/* Host sampling (engine/backend/host_sampling.h): each sampled row's logits are copied to the host, which
 * samples them as engine/sampling/sampling.h says and compares its id with the device's. The host's id
 * counts. */

#include "cuda/host/step.h"
#include "engine/backend/host_sampling.h"
#include "engine/backend/slot_sampling.h"

struct host_sampling {
    struct sampler *sampler;
    struct slot_sampling *slots;            /* [n_slots], closed ones zeroed */
    int32_t *of_device, *of_host;           /* pinned: [max_outputs] ids of a step */
    struct backend_difference *differences; /* [max_outputs] of the last step */
    uint32_t n_slots, n_differences;
    uint64_t compared, different; /* so far */
};

/* Makes steps, whose slots are all closed, sample on the host from now on. 0 or -ENOMEM. */
int host_sampling_new(struct steps *steps, struct host_sampling **ret_host);
/* The pinned memory belongs to the device until that is closed. Takes NULL. */
struct host_sampling *host_sampling_free(struct host_sampling *host);

/* Bytes of pinned memory. */
size_t host_sampling_pinned(const struct steps *steps);

/* To be called when a slot of the device is opened or closed. 0 or -ENOMEM. */
int host_sampling_open(struct host_sampling *host, const struct steps *steps, uint32_t slot,
                       const struct backend_slot *params);
void host_sampling_close(struct host_sampling *host, uint32_t slot);

/* The step's n sampled outputs have logits in the workspace, and the kernels that sample them are queued:
 * samples them on the host, notes differences in the flight, and queues the host's ids for the following
 * work. 0, -ETIMEDOUT or a fault. */
int host_sampling_run(struct steps *steps, const struct backend_step *step, uint32_t n);

#endif
