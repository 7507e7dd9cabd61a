/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_BACKENDS_H
#define ENGINE_BACKEND_BACKENDS_H

/* Finds the backend for the device that --device names.
 *
 *     cpu     the cores of this machine
 *     cuda    NVIDIA's GPUs; a plugin. cuda:LIST: only these, in this order: "cuda:1,GPU-8f3a,MIG-…"
 *     emu     an emulated GPU, slow, for tests of the CUDA backend without a GPU; a plugin
 *             (emu-counting also counts what warps do to memory, for profiles only)
 *     null    none: tokens without a model's work
 *     auto    cuda if its plugin loads, finds a device, executes the model and opens on it; else cpu */

#include "engine/backend/backend.h"
#include "engine/backend/device.h"
#include "engine/backend/give_back.h"
#include "engine/backend/host_sampling.h"

struct model;

struct backend_choice {
    const struct backend_ops *ops;
    backend_give_back *give_back; /* NULL: it cannot give memory back */
    backend_describe *describe;   /* NULL: it is not a device */
    const struct backend_host_sampling
        *host_sampling; /* NULL: it always samples on the host, or not at all */
    uint32_t n_devices; /* devices that it can be opened on, 0 … n − 1; 0: devices have no numbers */
    bool is_auto;       /* "auto" chose it, and the CPU may replace it */
    struct error note;  /* why "auto" skipped an existing device or plugin, in one line; may be empty */
};

/* `model`: the model that "auto" has to run; NULL: any. 0; -EINVAL: unknown device; -ENODEV with the reason:
 * not in this build, or not in this machine. */
int backend_choose(const char *name, const struct model *model, struct backend_choice *ret_choice,
                   struct error *err);

/* Whether any build has a device with this name. 0, or -EINVAL with the existing names. */
int backend_check_name(const char *name, struct error *err);

/* After open has failed with `why`: if "auto" chose the device, switches to the CPU and says so in the note.
 * False: there is no alternative. */
bool backend_fall_back(struct backend_choice *choice, const struct error *why);

/* The workers of a machine take its devices in turn. Returns the number of the device for worker `i` of n (0
 * means 1); *ret_n_sharers: how many workers share it, including this one. All of them share a device that
 * has no number. */
uint32_t backend_share(const struct backend_choice *choice, uint32_t i, uint32_t n, uint32_t *ret_n_sharers);

#endif
