/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_DEVICE_H
#define ENGINE_BACKEND_DEVICE_H

/* Describes a device without opening a backend on it. */

#include <stdint.h>

#include "common/error.h"

struct device_description {
    char name[64];        /* "NVIDIA H200"; for a CPU its model */
    char uuid[48];        /* "GPU-a1b2c3d4-…", as in nvidia-smi; "": none */
    char driver[48];      /* its version, and the newest CUDA that it supports; "": not known, or none */
    uint32_t capability;  /* compute capability, 10 · major + minor; 0: none */
    uint32_t n_cores;     /* multiprocessors; for a CPU the cores that this process may use */
    uint64_t memory_free; /* bytes, now; without the memory that this query itself takes */
    uint64_t memory_total;
    uint64_t bandwidth; /* peak bytes per second, according to the driver; 0: not known */
};

/* Describes the device with this number. 0; -ENODEV: it does not exist, or does not start. */
typedef int backend_describe(uint32_t number, struct device_description *ret_description, struct error *err);

/* For the cores and the memory of this machine that the process may use; number is 0. */
extern backend_describe backend_cpu_describe;

#endif
