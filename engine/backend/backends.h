/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_BACKENDS_H
#define ENGINE_BACKEND_BACKENDS_H

/* Which backend computes on the device that --device names.
 *
 *     cpu     the cores of this machine
 *     cuda    NVIDIA's GPUs; a plugin
 *     emu     an emulated GPU, slow, for tests of the CUDA backend without a GPU; a plugin
 *             (emu-counting also counts what warps do to memory, for profiles only)
 *     null    none: tokens without a model's work
 *     auto    cuda if its plugin loads, finds a device, executes the model and opens on it; else cpu */

#include "engine/backend/backend.h"

struct model;

struct backend_choice {
    const struct backend_ops *ops;
    uint32_t n_devices; /* that it can be opened on, numbers 0 … n − 1; 0: they have no numbers */
    bool is_auto;       /* "auto" chose it, and the CPU may take its place */
    struct error note;  /* why "auto" passed over a device or a plugin that is there, in one line; or empty */
};

/* `model`: what "auto" has to execute; NULL: any. 0; -EINVAL: unknown device; -ENODEV: not in this build, or
 * not in this machine, with the reason. */
int backend_choose(const char *name, const struct model *model, struct backend_choice *ret_choice,
                   struct error *err);

/* Whether there is a device of that name at all, in any build. 0, or -EINVAL with the names that there are.
 */
int backend_check_name(const char *name, struct error *err);

/* After open has refused, for `why`: where "auto" chose a device the CPU takes its place, and the note says
 * so. False: there is nothing else, and why is the reason. */
bool backend_fall_back(struct backend_choice *choice, const struct error *why);

/* Workers of one machine take its devices in turn: the number of the one that worker `i` of n (0 is 1) takes,
 * and how many workers share it, this one included. What has no numbers all share. */
uint32_t backend_share(const struct backend_choice *choice, uint32_t i, uint32_t n, uint32_t *ret_n_sharers);

#endif
