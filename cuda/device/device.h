/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_DEVICE_H
#define CUDA_DEVICE_DEVICE_H

/* A GPU as the backend's host side sees it: memory, one ordered queue of work, recorded graphs.
 *
 * These functions have two implementations: device_cuda.cu over the CUDA runtime, emu/device.cc over the
 * emulator. The rest of the host side is plain C that does not know which one it uses.
 *
 * WORK is queued on a stream and done later, in order: neither the source nor the target of a copy may be
 * used before the stream is done with it. Host memory of copies is pinned (device_pinned), because only such
 * copies run in parallel with the host's work.
 *
 * FAULTS. A call that finds the device broken returns -EIO (another process may try again) or -ENODEV (it is
 * gone), with the failed kernel or call in the error. So does every later call; then only device_close may be
 * used. A launch that is recorded or queued may report the fault of an earlier one.
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
    /* How often a waiting host queries the queue for faults. 0: always, because queries drive this device. */
    uint32_t query_us;
    uint32_t stall_ms; /* longer than any work takes: a device without progress for this long counts as hung;
                          0: never */
    bool has_clock;    /* times can be measured (device_note_time) */
    char driver[48];   /* its version, and the newest CUDA that it supports; "": unknown */
    char label[64];    /* the name, the number, and the beginning of the UUID, as accepted by
                          CUDA_VISIBLE_DEVICES */
};

extern const char device_kind[]; /* "cuda" or "emu" */

/* Counts devices. 0; -ENODEV with the reason: no driver, or no usable device. */
int device_count(uint32_t *ret_n, struct error *err);

/* 0; -ENODEV: no such device, or it is too old for this build; -EIO. */
int device_open(uint32_t number, struct device **ret_device, struct error *err);
struct device *device_close(struct device *device); /* frees everything allocated on it */
const struct device_properties *device_properties(const struct device *device);
size_t device_free_bytes(struct device *device); /* of its memory, now */

/* The code of the first fault, with its reason in err; 0: none. Never waits. */
int device_verdict(struct device *device, struct error *err);

/* Counts of the device's work so far; tests check that serving allocates and captures nothing. */
struct device_counts {
    uint64_t allocations, captures, launches, graph_launches;
    uint64_t library;  /* calls between device_library_begin and device_library_end */
    uint64_t overlaps; /* launches, also recorded ones, that may begin before the previous one has ended */
    size_t bytes;      /* of allocated device memory, as device_taken counts */
};
struct device_counts device_counts(const struct device *device);

/* ---- memory ---- */

/* The device memory that an allocation of this many bytes takes: drivers map whole pages of 2 MiB. Not 0 even
 * for 0 bytes. */
#define DEVICE_GRANULE ((size_t)2 << 20)
static inline size_t device_taken(size_t bytes)
{
    return (bytes + !bytes + DEVICE_GRANULE - 1) / DEVICE_GRANULE * DEVICE_GRANULE;
}

/* Device memory, aligned to 256 bytes, with undefined contents. NULL: not enough is free. */
void *device_alloc(struct device *device, size_t bytes);
void device_free(struct device *device, void *memory);

/* One allocation for many buffers that last as long as the device, which frees it. An emulated device keeps
 * the buffers apart, and detects accesses beyond the end of one. */
struct device_arena;

/* The bytes of an arena that a buffer takes. */
#define DEVICE_ALIGN ((size_t)256)
static inline size_t device_part(size_t bytes)
{
    return (bytes + !bytes + DEVICE_ALIGN - 1) / DEVICE_ALIGN * DEVICE_ALIGN;
}

/* NULL: not enough is free. */
struct device_arena *device_arena_new(struct device *device, size_t bytes);

/* The next buffer, as device_alloc. NULL: the arena has less left than device_part(bytes). */
void *device_arena_take(struct device_arena *arena, size_t bytes);

/* Pinned host memory: the device copies from and to it directly, and can access it under the same address.
 * NULL: out of memory. */
void *device_pinned(struct device *device, size_t bytes);
void device_pinned_free(struct device *device, void *memory);

/* ---- the queue ---- */

/* The device's stream, on which kernels.h launches. */
struct device_stream;
struct device_stream *device_stream(struct device *device);

/* Copies between device memory and pinned memory either way, or within the device. 0 or a fault. */
int device_copy(struct device_stream *stream, void *to, const void *from, size_t bytes);
int device_fill(struct device_stream *stream, void *to, int byte, size_t bytes);

/* Marks a point of the queue; n < DEVICE_MARKS. A mark may be set again once it was reached. device_query
 * returns 0 if it was reached, -EAGAIN if not yet, or a fault. */
#define DEVICE_MARKS 64
int device_mark(struct device_stream *stream, uint32_t n);
int device_query(struct device_stream *stream, uint32_t n);

/* Waits until all queued work is done. 0 or a fault. */
int device_synchronize(struct device_stream *stream);

/* ---- time ---- */

/* Notes the time at which the queue reaches this point, as time 0 or 1. Once both were reached, and until one
 * is noted again, device_time_between returns the time from 0 to 1. 0 or a fault; -ENOTSUP: the device has no
 * clock. */
int device_note_time(struct device_stream *stream, uint32_t n);
int device_time_between(struct device_stream *stream, uint64_t *ret_ns);

/* Nanoseconds of a clock that can limit the device's work: the host's; for an emulated device with a clock,
 * that clock. */
uint64_t device_clock_ns(const struct device *device);

/* ---- libraries of the device ---- */

/* Put these two around calls of a library that queues kernels itself, recorded or not: all of its kernels are
 * then counted and timed as one launch with this name, a constant. *ret_native: the library's handle of the
 * stream. 0 or a fault. */
int device_library_begin(struct device_stream *stream, const char *name, void **ret_native);
int device_library_end(struct device_stream *stream, const char *name);

/* A library's call has failed, so the device counts as failed, with this reason. Returns -EIO, or an earlier
 * fault. */
int device_blame(struct device_stream *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- graphs ---- */

/* Work queued between the two is recorded instead of run; marks and synchronizing are not allowed. 0, or a
 * fault. -EINVAL or -ENOMEM: the driver refuses to begin, to record something in between (queueing it then
 * fails too), or to make the graph. Then nothing is recorded, and work queued next runs. */
int device_record(struct device_stream *stream);
int device_record_end(struct device_stream *stream, struct device_graph **ret_graph);
const char *device_refusal(const struct device_stream *stream); /* the call and reason of the last one */
int device_graph_launch(struct device_stream *stream, struct device_graph *graph);
uint32_t device_graph_kernels(const struct device_graph *graph); /* launches */
void device_graph_free(struct device_graph *graph);              /* it must not be running */

/* ---- profile ---- */

/* Starts or stops measuring launches: a GPU times each launch alone, and cannot measure recorded ones; an
 * emulated device always counts. 0 or a fault. */
int device_profile(struct device *device, bool on);

/* The next launch has to read this many bytes of weights, keys and values; the profile shows them. */
void device_expect(struct device_stream *stream, size_t bytes);

/* As backend_ops.profile. */
struct backend_kernel;
uint32_t device_kernels(struct device *device, const struct backend_kernel **ret_kernels);

#ifdef __cplusplus
}
#endif

#endif
