/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHOOSE_MEASURE_H
#define CUDA_CHOOSE_MEASURE_H

/* Which way of making products is the fastest on this device, for the shapes of this model.
 *
 * A pass that is recorded and dropped says which launches of products there are; equal ones of several layers
 * are one. Each is timed in its place in the workspace, as a step would launch it, in each way that exists
 * and for each bucket of more than KERNELS_GEMV rows. It reads as many layers' weights in turn as the
 * device's L2 cache cannot hold, because a step reads each of them once. Of a few such turns the fastest
 * counts.
 *
 * Up to KERNELS_GEMV rows nothing is measured: the kernels of few rows give other bits than tiles, and which
 * of the two computes a decode is not to hang on a clock. Routed experts have tiles of their own and are not
 * measured either. */

#include "cuda/host/pass.h"
#include "engine/backend/choices/choices.h"

struct measured_launch;

struct measure {
    const struct pass *pass;
    struct device *device;
    struct device_weights *weights; /* the pass's */
    uint32_t max_rows;              /* of a step */
    struct choices *choices;
    struct measured_launch *launches;    /* [CHOICES_LAUNCHES] */
    const struct backend_config *config; /* its progress hook; NULL: none */
    uint64_t end_ns;                     /* of the device's clock: no turn begins behind it */
};

/* Finds the model's launches: fills in the choices' launches, by rule, and numbers the matrices. `pass` is
 * ready, and what it queues can be recorded; it must outlive the measure. 0; a fault; -ENOMEM of the host;
 * -ENOTSUP: the driver refuses to record, and there is nothing to measure. */
int measure_init(struct measure *measure, const struct pass *pass, struct device *device,
                 struct device_weights *weights, uint32_t max_rows, struct choices *choices);
void measure_deinit(struct measure *measure);

/* Times them, calling the progress hook after each way, for up to budget_ns of the device's clock, and a turn
 * that has begun, those that read the most first, and takes the fastest ways. A bucket for which the time
 * does not suffice stays by rule. Nothing may be in flight. 0 or a fault. */
int measure_run(struct measure *measure, uint64_t budget_ns);

#endif
