/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ENGINE_BACKENDS_H
#define WORKER_ENGINE_BACKENDS_H

/* Which backend computes on the device that --device names.
 *
 *     cpu     the cores of this machine
 *     cuda    NVIDIA's GPUs; a plugin
 *     emu     a GPU that is emulated, slowly: for tests of the CUDA backend where there is none; a plugin
 *     null    none: tokens for free
 *     auto    cuda where its plugin loads, finds a device, and executes the model; else cpu */

#include "worker/engine/backend.h"

struct model;

/* `model`: what "auto" has to execute; NULL: whatever. 0; -EINVAL: there is no device of that name; -ENODEV:
 * not in this build, or not in this machine, with the reason. ret_note says in one line why "auto" passed
 * over a device, or a plugin that is there; else its text is empty. */
int backend_choose(const char *name, const struct model *model, const struct backend_ops **ret_ops,
                   struct error *ret_note, struct error *err);

#endif
