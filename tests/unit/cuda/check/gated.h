/* SPDX-License-Identifier: MIT */
/* Devices that the gate looks at: emulated ones, one of whose kernels computes wrongly or one of whose copies
 * arrives changed, with small models of every family. */
#ifndef TESTS_UNIT_CUDA_CHECK_GATED_H
#define TESTS_UNIT_CUDA_CHECK_GATED_H

#include "cuda/backend.h"
#include "tests/unit/cpu/small_model.h"

/* What is opened: set by each test. Not owned. */
extern struct model *model;
extern enum backend_kv_type kv_type;

/* Room for all that is asked of long sequences and large steps. */
extern const struct backend_config far;

/* Opens a device for that model and closes it again, with an environment variable that the emulated device
 * reads. 0 or what opening returns. */
int open_sized(const char *name, const char *value, const struct backend_config *sizes, struct error *err);

/* With steps of at most 64 rows. */
int open_with(const char *name, const char *value, uint32_t n_slots, uint32_t n_context, struct error *err);

/* Skips this kernel: the device is refused, and what it says begins like that and has this in it. */
void check_refused(const char *kernel, const char *named);

/* A model of experts, of which each row goes to all but one. */
struct synth_shape experts_of(const char *architecture, uint32_t n_shared_ff);

/* Recurrent layers, attention with a gate, and a shared expert with one. */
struct synth_shape hybrid_of(const char *architecture);

/* Experts beside a plain half, whose router and whose parts have norms of their own. */
struct synth_shape beside_shape(void);

#endif
