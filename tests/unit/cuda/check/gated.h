/* SPDX-License-Identifier: MIT */
/* Devices for testing the gate: emulated devices with a kernel that computes wrongly or a copy that arrives
 * changed, and small models of every family. */
#ifndef TESTS_UNIT_CUDA_CHECK_GATED_H
#define TESTS_UNIT_CUDA_CHECK_GATED_H

#include "cuda/backend.h"
#include "tests/unit/cpu/small_model.h"

/* The model to open, set by each test. Not owned. */
extern struct model *model;
extern enum backend_kv_type kv_type;

/* Sizes large enough for the checks of long sequences and large steps. */
extern const struct backend_config far;

/* Opens a device for that model and closes it again, with an environment variable that the emulated device
 * reads. Returns the result of opening. */
int open_sized(const char *name, const char *value, const struct backend_config *sizes, struct error *err);

/* With steps of at most 64 rows. */
int open_with(const char *name, const char *value, uint32_t n_slots, uint32_t n_context, struct error *err);

/* Skips this kernel and checks that the device is refused for wrong results, with a reason that contains
 * `named`. */
void check_refused(const char *kernel, const char *named);

/* A model of experts in which each row goes to all experts but one. */
struct synth_shape experts_of(const char *architecture, uint32_t n_shared_ff);

/* Recurrent layers, two of them without experts, and gated attention; with experts, a gated shared one. */
struct synth_shape hybrid_of(const char *architecture);

/* Experts beside a plain feed-forward part, with separate norms for the router and for each part. */
struct synth_shape beside_shape(void);

#endif
