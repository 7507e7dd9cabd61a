/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_DEVICE_CUDA_PARTS_H
#define CUDA_DEVICE_DEVICE_CUDA_PARTS_H

/* The internals of a device; private to the files that implement device.h over the CUDA runtime. */

#include "cuda/device/device_cuda.h"
#include "cuda/device/selection.h"
#include "engine/backend/profile.h"

#define KERNEL_PLACES                                                                                        \
    1024 /* places for loaded kernels, by address: a power of two, several times their number */

struct allocation {
    void *memory;
    size_t bytes;
    struct allocation *next;
};

/* The last queued kernel, described in errors. */
struct queued_kernel {
    const char *name; /* a constant; NULL: nothing */
    dim3 grid, block; /* zero: a library's, which are unknown */
    bool in_graph;    /* as the last kernel of a graph */
};

struct device_graph {
    cudaGraphExec_t exec;
    uint32_t n_kernels;
    struct queued_kernel last;
};

struct device_stream {
    struct device *device;
    cudaStream_t stream;
    cudaEvent_t marks[DEVICE_MARKS];
    bool recording;
    int refused;       /* -EINVAL, -ENOMEM: the driver refuses the recording, which is then useless */
    char refusal[160]; /* the reason of the last refusal */
    bool follows;      /* the last queued or recorded operation is one of Quern's launches */
    cudaStreamCaptureMode mode; /* of this thread, while a library queues work */
    uint32_t n_recorded;        /* launches */
};

struct device_arena {
    uint8_t *memory; /* an allocation of the device */
    size_t bytes, used;
    struct device_arena *next;
};

struct loaded_kernel {   /* whose code is on the device */
    const void *kernel;  /* NULL: a free place */
    size_t shared_bytes; /* its limit of dynamic shared memory */
};

struct device {
    struct device_stream stream;
    struct device_properties properties;
    struct device_counts counts;
    struct allocation *allocations, *pinned;
    struct device_arena *arenas;
    struct loaded_kernel kernels[KERNEL_PLACES];
    struct queued_kernel last;
    bool synchronous;
    bool overlaps;         /* launches may overlap */
    bool in_turn;          /* but launches queued now do not */
    cudaEvent_t timers[2]; /* around a launch; NULL until the first profile */
    cudaEvent_t noted[2];  /* times; NULL until the first is noted */
    size_t expected;       /* bytes that the next launch has to read */
    bool timed;            /* each launch is timed, alone */
    struct profile profile;
    int fault; /* -EIO, -ENODEV; 0: none */
    struct error reason;
};

/* Checks a call's result. 0, or the fault of this or an earlier call. */
int device_cuda_check(struct device *device, const char *call, cudaError_t e);

/* The same for calls that may be recorded: during a recording, an error refuses the recording. The end of the
 * recording shows whether the device itself has failed. */
int device_cuda_check_queued(struct device_stream *stream, const char *call, cudaError_t e);

/* Notes that the recording is refused, and why. Returns -EINVAL or -ENOMEM. */
int device_cuda_refuse(struct device_stream *stream, const char *call, cudaError_t e);

/* The same for calls that may run out of memory, which is not a fault: -ENOMEM. */
int device_cuda_check_memory(struct device *device, const char *call, cudaError_t e);

#endif
