/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHOOSE_CHOOSE_H
#define CUDA_CHOOSE_CHOOSE_H

/* The choices of a backend that opens: those that another worker, or an earlier start, has measured for the
 * same device, driver, build and launches (engine/backend/choices/kept.h), or its own, which it keeps for
 * others. Of workers that start together one measures, and the others wait for it, so that all of a pool have
 * the same. A table that cannot be kept is used all the same. */

#include "cuda/choose/measure.h"

#define CHOOSE_BUDGET_NS (2 * (uint64_t)1000000000)

struct choosing {
    const struct pass *pass;
    struct device *device;
    struct device_weights *weights;
    const struct backend_config *config; /* say and progress */
    uint32_t max_rows;                   /* of a step */
    uint32_t library;                    /* version; 0: it may make no product by choice */
};

/* A digest of the kernels of products, and of how they are timed; made by meson. */
extern const uint64_t choose_build;

/* Fills in *ret_choices, and numbers the weights' matrices; *ret_measured: it was measured here. 0, and
 * without launches where nothing can be measured: the device has no clock, the driver does not record;
 * -ENOMEM of the host; a fault. */
int choose_ways(const struct choosing *choosing, struct choices *ret_choices, bool *ret_measured);

#endif
