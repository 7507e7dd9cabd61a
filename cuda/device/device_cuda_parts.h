/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_DEVICE_CUDA_PARTS_H
#define CUDA_DEVICE_DEVICE_CUDA_PARTS_H

/* The internals of a device; private to the files that implement device.h over the CUDA runtime. */

#include "cuda/device/device_cuda.h"
#include "engine/backend/profile.h"

#define MOST_KERNELS 256 /* in the table of loaded kernels */

struct allocation {
    void *memory;
    size_t bytes;
    struct allocation *next;
};

struct device_graph {
    cudaGraphExec_t exec;
    uint32_t n_kernels;
    char last_kernel[96];
};

struct device_stream {
    struct device *device;
    cudaStream_t stream;
    cudaEvent_t marks[DEVICE_MARKS];
    bool recording;
    bool follows;               /* the last queued or recorded operation is a launch of ours */
    cudaStreamCaptureMode mode; /* of this thread, while a library queues */
    uint32_t n_recorded;        /* launches */
};

struct loaded_kernel { /* its code is on the device */
    const void *kernel;
    size_t shared_bytes; /* its limit of dynamic shared memory */
};

struct device {
    struct device_stream stream;
    struct device_properties properties;
    struct device_counts counts;
    struct allocation *allocations, *pinned;
    struct loaded_kernel kernels[MOST_KERNELS];
    uint32_t n_kernels;
    char last_kernel[96]; /* "attention, grid 4,8,1 of 128,1,1 threads" */
    bool synchronous;
    bool overlaps;         /* launches may overlap */
    bool in_turn;          /* but those that are queued now do not */
    cudaEvent_t timers[2]; /* around a launch; NULL until the first profile */
    size_t expected;       /* bytes that the next launch has to read */
    bool timed;            /* each launch, alone */
    struct profile profile;
    int fault; /* -EIO, -ENODEV; 0: none */
    struct error reason;
};

/* 0; the fault of this or an earlier call; while recording also -EINVAL: it cannot be recorded. */
int device_cuda_check(struct device *device, const char *call, cudaError_t e);

/* For calls that may run out of memory, which is not a fault: -ENOMEM. */
int device_cuda_check_memory(struct device *device, const char *call, cudaError_t e);

#endif
