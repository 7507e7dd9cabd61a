/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_DEVICE_H
#define CUDA_DEVICE_DEVICE_H

/* A GPU as the backend's host side sees it: memory, one ordered queue of work, recorded graphs.
 *
 * There are two builds of these functions: device_cuda.cu over the CUDA runtime, emu/device.cc over the
 * emulator. The rest of the host side is plain C that does not know which one it runs on.
 *
 * WORK is queued on a stream and done later, in order: neither the source nor the target of a copy may be
 * touched before the stream is done with it. Host memory of copies is pinned (device_pinned), because only
 * such copies run beside the host's own work.
 *
 * FAULTS. A call that finds the device broken returns -EIO (another process may try again) or -ENODEV (it is
 * gone), with the kernel or call that failed in the error. So does every call after it; only close is left.
 * A launch that is recorded or queued may report the fault of an earlier one.
 *
 * One thread makes all calls of a device. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "common/error.h"

struct device;
struct device_graph;

struct device_properties {
    char name[64];       /* "NVIDIA H200" */
    uint32_t capability; /* 10 · major + minor: 90 */
    uint32_t n_multiprocessors;
    uint32_t shared_bytes; /* most dynamic shared memory of a block */
    size_t l2_bytes, total_bytes;
    /* How often a host that waits looks at the queue, to find faults. 0: always, for looking is what makes
     * this device work. */
    uint32_t query_us;
    uint32_t stall_ms; /* longer than any work takes: after waiting this long the device counts as hung; 0:
                          never */
    char label[64];    /* the name, and what tells the device from others of its kind: its number, and the
                          beginning of its UUID, as CUDA_VISIBLE_DEVICES takes it */
};

extern const char device_kind[]; /* "cuda" or "emu" */

/* Devices there are. 0 with the number; -ENODEV: no driver, or none it can use, with the reason. */
int device_count(uint32_t *ret_n, struct error *err);

/* -ENODEV: no such number, or one older than this build has code for; -EIO. */
int device_open(uint32_t number, struct device **ret_device, struct error *err);
struct device *device_close(struct device *device); /* frees all that was allocated on it */
const struct device_properties *device_properties(const struct device *device);
size_t device_free_bytes(struct device *device); /* of its memory, now */

/* The first fault's code, its reason in err; 0 while there is none. Never waits. */
int device_verdict(struct device *device, struct error *err);

/* What was asked of the device so far; tests hold it still while serving. */
struct device_counts {
    uint64_t allocations, captures, launches, graph_launches;
    uint64_t overlaps; /* launches, recorded ones too, that may begin before the one ahead has ended */
    size_t bytes;      /* of device memory, now, as device_taken counts */
};
struct device_counts device_counts(const struct device *device);

/* ---- memory ---- */

/* What so many bytes take of a device's memory, as allocators round: something of nothing, too. */
#define DEVICE_GRANULE ((size_t)512)
static inline size_t device_taken(size_t bytes)
{
    return (bytes / DEVICE_GRANULE + 1) * DEVICE_GRANULE;
}

/* Device memory, aligned to 256 bytes, its contents undefined; nothing beyond the bytes may be used. NULL:
 * not enough is free. */
void *device_alloc(struct device *device, size_t bytes);
void device_free(struct device *device, void *memory);

/* Host memory that the device copies from and to directly, and reads and writes in place under the same
 * address. NULL: none. */
void *device_pinned(struct device *device, size_t bytes);
void device_pinned_free(struct device *device, void *memory);

/* ---- the queue ---- */

/* The device's stream; what kernels.h launches on. */
struct device_stream;
struct device_stream *device_stream(struct device *device);

/* Copies between device memory and pinned memory either way, or within the device. 0 or a fault. */
int device_copy(struct device_stream *stream, void *to, const void *from, size_t bytes);
int device_fill(struct device_stream *stream, void *to, int byte, size_t bytes);

/* Marks a point of the queue. `n` counts from 0 to DEVICE_MARKS − 1; a mark may be set again once it was
 * reached. Query: 0, -EAGAIN while the work before it runs, or a fault. */
#define DEVICE_MARKS 64
int device_mark(struct device_stream *stream, uint32_t n);
int device_query(struct device_stream *stream, uint32_t n);

/* Waits until all is done. 0 or a fault. */
int device_synchronize(struct device_stream *stream);

/* ---- libraries of the device ---- */

/* What such a library queues itself goes between the two, recorded or not: counted and timed as one launch of
 * that name, however many kernels it is. `native` is the stream as it knows it. 0 or a fault. */
int device_library_begin(struct device_stream *stream, const char *name, void **ret_native);
int device_library_end(struct device_stream *stream, const char *name);

/* A library's call has failed, and with it the device, for this reason. Returns -EIO, or the fault that was
 * there already. */
int device_blame(struct device_stream *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- graphs ---- */

/* Between the two, what is queued is recorded and not run; marks and synchronizing are not allowed. 0;
 * -ENOMEM; -EINVAL when something in between cannot be recorded; a fault. */
int device_record(struct device_stream *stream);
int device_record_end(struct device_stream *stream, struct device_graph **ret_graph);
int device_graph_launch(struct device_stream *stream, struct device_graph *graph);
uint32_t device_graph_kernels(const struct device_graph *graph); /* launches */
void device_graph_free(struct device_graph *graph);              /* it does not run */

/* ---- profile ---- */

/* From now on launches are measured: on a GPU each is waited for and timed alone, so what is recorded is not;
 * an emulated device counts, always. 0 or a fault. */
int device_profile(struct device *device);

/* The next launch has to read so many bytes of weights, keys and values: a profile says so beside the time.
 */
void device_expect(struct device_stream *stream, size_t bytes);

/* As backend_ops.profile. */
struct backend_kernel;
uint32_t device_kernels(struct device *device, const struct backend_kernel **ret_kernels);

#ifdef __cplusplus
}
#endif

#endif
