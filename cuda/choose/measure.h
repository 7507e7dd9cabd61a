/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHOOSE_MEASURE_H
#define CUDA_CHOOSE_MEASURE_H

/* Finds the fastest way to compute products on this device, for the shapes of this model.
 *
 * A pass that is recorded and dropped shows which launches of products there are; equal launches of several
 * layers count as one. Each is timed in its place in the workspace, as a step would launch it, in each way
 * that exists and for each bucket of more than KERNELS_GEMV rows. It reads the weights of several layers in
 * turn, more than the device's L2 cache can hold, because a step reads each of them once. The fastest of a
 * few such turns counts.
 *
 * Up to KERNELS_GEMV rows nothing is measured: the kernels for few rows give other bits than tiles, and a
 * clock must not decide which of the two computes a decode. Routed experts have their own tiles and are not
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
    uint64_t end_ns;                     /* of the device's clock: no turn begins after it */
};

/* Finds the model's launches: fills in the choices' launches, by rule, and numbers the matrices. `pass` must
 * be ready and recordable, and must outlive the measure. 0; a fault; -ENOMEM of the host; -ENOTSUP: the
 * driver refuses to record, and there is nothing to measure. */
int measure_init(struct measure *measure, const struct pass *pass, struct device *device,
                 struct device_weights *weights, uint32_t max_rows, struct choices *choices);
void measure_deinit(struct measure *measure);

/* Times the launches, those that read the most first, and chooses the fastest ways; calls the progress hook
 * after each way. Ends after budget_ns of the device's clock and the turn then running. A bucket for which
 * the time does not suffice stays by rule. Nothing may be in flight. 0 or a fault. */
int measure_run(struct measure *measure, uint64_t budget_ns);

#endif
