/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHOOSE_CHOOSE_H
#define CUDA_CHOOSE_CHOOSE_H

/* Makes the choices of a backend that opens: uses those that another worker, or an earlier start, has
 * measured for the same device, driver, build and launches (engine/backend/choices/kept.h), or measures them
 * and keeps them for others. If several workers start together, one measures and the others wait for it, so
 * that all workers of a pool have the same choices. A table that cannot be kept is used anyway. */

#include "cuda/choose/measure.h"

#define CHOOSE_BUDGET_NS (2 * (uint64_t)1000000000)

struct choosing {
    const struct pass *pass;
    struct device *device;
    struct device_weights *weights;
    const struct backend_config *config; /* say and progress */
    uint32_t max_rows;                   /* of a step */
    uint32_t library;                    /* version; 0: no product may be the library's by choice */
};

/* A digest of the product kernels and of the code that times them; made by meson. */
extern const uint64_t choose_build;

/* Fills in *ret_choices, and numbers the weights' matrices; *ret_measured: measured by this call. 0, with no
 * launches in *ret_choices if nothing can be measured because the device has no clock or the driver does not
 * record; -ENOMEM of the host; a fault. */
int choose_ways(const struct choosing *choosing, struct choices *ret_choices, bool *ret_measured);

#endif
