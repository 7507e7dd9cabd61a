/* SPDX-License-Identifier: MIT */
/* device.h over the CUDA runtime, which is linked statically: so the plugin loads, and says what is missing,
 * on machines with neither toolkit nor driver.
 *
 * FAULTS. A kernel's fault shows in whatever call comes next, and from then on every call fails. So all calls
 * go through device_cuda_check, which keeps the first fault with the name of the last kernel that was queued:
 * that one, or one before it, did it. With $QUERN_CUDA_SYNC set each launch outside of a recording waits for
 * its kernel, and the name is exact; decodes are recorded unless $QUERN_EAGER is set.
 *
 * The runtime remembers errors a second time, for cudaGetLastError, which a launch reads. What is no fault
 * (not ready, no memory) is therefore taken from it at once.
 *
 * Memory is in device_cuda_memory.cu, launches in device_cuda_launches.cu, recordings in
 * device_cuda_graphs.cu. */

#include "cuda/device/device_cuda_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "cuda/device/describe.h"

#define QUERY_US     10000 /* between looks at the queue, while a mailbox is watched */
#define STALL_MS     30000 /* no step takes a tenth of it */
#define OVERLAP_FROM 90    /* compute capability that simt_start waits with */

const char device_kind[] = "cuda";

/* ---- errors ---- */

static const char *text_of(cudaError_t e)
{
    return cudaGetErrorString(e);
}

/* "; the last kernel that was queued is attention, 4,8,1 blocks of 128,1,1 threads"; "": none was. */
static void describe_last(const struct device *device, char *ret_text, size_t size)
{
    const struct queued_kernel *last = &device->last;
    char launch[96] = "";
    ret_text[0] = 0;
    if (!last->name)
        return;
    if (last->grid.x > 0 && !last->in_graph)
        snprintf(launch, sizeof launch, ", %u,%u,%u blocks of %u,%u,%u threads", last->grid.x, last->grid.y,
                 last->grid.z, last->block.x, last->block.y, last->block.z);
    snprintf(ret_text, size, "; the last kernel that was queued is %s%.60s%s",
             last->in_graph ? "in a graph whose last kernel is " : "", last->name, launch);
}

/* Keeps the first fault; returns its code. */
static int fault(struct device *device, const char *call, cudaError_t e)
{
    char last[224];
    cudaGetLastError();
    if (device->fault == 0) {
        device->fault = e == cudaErrorNoDevice ? -ENODEV : -EIO;
        const bool is_exact = device->synchronous && device->counts.graph_launches == 0;
        describe_last(device, last, sizeof last);
        error_set(&device->reason, 0, "%s: %s: %s (%s)%s%s", device->properties.name, call, text_of(e),
                  cudaGetErrorName(e), last,
                  last[0] && !is_exact ? " (QUERN_EAGER=1 QUERN_CUDA_SYNC=1 finds the one that failed)" : "");
    }
    return device->fault;
}

int device_cuda_check(struct device *device, const char *call, cudaError_t e)
{
    return e == cudaSuccess && device->fault == 0 ? 0 : fault(device, call, e);
}

int device_cuda_refuse(struct device_stream *stream, const char *call, cudaError_t e)
{
    cudaGetLastError();
    if (stream->refused == 0) {
        stream->refused = e == cudaErrorMemoryAllocation ? -ENOMEM : -EINVAL;
        snprintf(stream->refusal, sizeof stream->refusal, "%s: %s (%s)", call, text_of(e),
                 cudaGetErrorName(e));
    }
    return stream->refused;
}

int device_cuda_check_queued(struct device_stream *stream, const char *call, cudaError_t e)
{
    struct device *device = stream->device;
    if (!stream->recording || device->fault)
        return device_cuda_check(device, call, e);
    return e == cudaSuccess ? stream->refused : device_cuda_refuse(stream, call, e);
}

/* For calls that may find no memory, which is no fault: -ENOMEM. */
int device_cuda_check_memory(struct device *device, const char *call, cudaError_t e)
{
    if (e != cudaErrorMemoryAllocation)
        return device_cuda_check(device, call, e);
    cudaGetLastError();
    return -ENOMEM;
}

int device_blame(struct device_stream *stream, const char *format, ...)
{
    struct device *device = stream->device;
    char text[256], last[224];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cudaGetLastError();
    describe_last(device, last, sizeof last);
    if (device->fault == 0)
        device->fault = error_set(&device->reason, -EIO, "%s: %s%s", device->properties.name, text, last);
    return device->fault;
}

/* ---- life ---- */

int device_count(uint32_t *ret_n, struct error *err)
{
    int n = 0, driver = 0;
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID",
           0); /* as nvidia-smi numbers them, where nobody says otherwise */
    cudaError_t e = cudaGetDeviceCount(&n);
    if (e == cudaSuccess && n > 0) {
        *ret_n = (uint32_t)n;
        return 0;
    }
    cudaGetLastError();
    if (e == cudaErrorNoDevice || e == cudaSuccess)
        return error_set(err, -ENODEV, "the driver finds no NVIDIA GPU");
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
        return error_set(err, -ENODEV, "no NVIDIA driver");
    if (e == cudaErrorInsufficientDriver)
        return error_set(err, -ENODEV, "the NVIDIA driver supports CUDA %d.%d; this build needs %d.%d",
                         driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                         CUDART_VERSION % 1000 / 10);
    return error_set(err, -ENODEV, "the NVIDIA driver cannot be initialized: %s (%s)", text_of(e),
                     cudaGetErrorName(e));
}

static __global__ void nothing(void)
{
}

/* Fills in the properties. */
static int describe(struct device *device, uint32_t number, struct error *err)
{
    cudaDeviceProp p;
    cudaFuncAttributes code;
    cudaError_t e = cudaGetDeviceProperties(&p, (int)number);
    if (e != cudaSuccess)
        return error_set(err, -EIO, "GPU %u: %s (%s)", number, text_of(e), cudaGetErrorName(e));
    struct device_properties *properties = &device->properties;
    snprintf(properties->name, sizeof properties->name, "%.63s", p.name);
    char uuid[UUID_BYTES];
    uuid_text((const uint8_t *)p.uuid.bytes, is_slice_name(p.name), uuid);
    snprintf(properties->label, sizeof properties->label, "%.32s (GPU %u, %.12s)", p.name, number, uuid);
    properties->capability = (uint32_t)(10 * p.major + p.minor);
    properties->n_multiprocessors = (uint32_t)p.multiProcessorCount;
    properties->shared_bytes = (uint32_t)p.sharedMemPerBlockOptin;
    properties->l2_bytes = (size_t)p.l2CacheSize;
    properties->total_bytes = p.totalGlobalMem;
    properties->has_clock = true;
    device_find_driver(properties->driver, sizeof properties->driver);
    properties->query_us = QUERY_US;
    properties->stall_ms = STALL_MS;
    const int r = check_capability(number, p.name, properties->capability, err);
    if (r < 0)
        return r;
    e = cudaFuncGetAttributes(&code, (const void *)nothing);
    if (e == cudaErrorNoKernelImageForDevice || e == cudaErrorInvalidDeviceFunction ||
        e == cudaErrorUnsupportedPtxVersion)
        return error_set(err, -ENODEV,
                         "GPU %u, %s of compute capability %d.%d: this build has no code for it (%s)", number,
                         p.name, p.major, p.minor, QUERN_CUDA_ARCHITECTURES);
    if (e != cudaSuccess)
        return error_set(err, -EIO, "GPU %u, %s: %s (%s)", number, p.name, text_of(e), cudaGetErrorName(e));
    return 0;
}

static int open_stream(struct device *device, struct error *err)
{
    struct device_stream *stream = &device->stream;
    stream->device = device;
    cudaError_t e = cudaStreamCreateWithFlags(&stream->stream, cudaStreamNonBlocking);
    for (uint32_t i = 0; i < DEVICE_MARKS && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&stream->marks[i], cudaEventDisableTiming);
    if (e != cudaSuccess)
        return error_set(err, -EIO, "%s: %s (%s)", device->properties.name, text_of(e), cudaGetErrorName(e));
    return 0;
}

int device_open(uint32_t number, struct device **ret_device, struct error *err)
{
    uint32_t n;
    int r = device_count(&n, err);
    if (r < 0)
        return r;
    if (number >= n)
        return error_set(err, -ENODEV, "no GPU %u: there %s %u", number, n == 1 ? "is" : "are", n);
    struct device *device = (struct device *)calloc(1, sizeof *device);
    if (!device)
        return error_set(err, -ENOMEM, "out of memory");
    device->synchronous = getenv("QUERN_CUDA_SYNC") != NULL;
    /* The host has better things to do than to spin while it waits. */
    cudaError_t e = cudaInitDevice((int)number, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid);
    if (e == cudaSuccess)
        e = cudaSetDevice((int)number);
    if (e != cudaSuccess)
        r = error_set(err, -EIO, "GPU %u cannot be initialized: %s (%s)", number, text_of(e),
                      cudaGetErrorName(e));
    if (r == 0)
        r = describe(device, number, err);
    if (r == 0)
        r = open_stream(device, err);
    device->overlaps = device->properties.capability >= OVERLAP_FROM && !getenv("QUERN_SERIAL");
    if (r < 0) {
        cudaGetLastError();
        device_close(device);
        return r;
    }
    *ret_device = device;
    return 0;
}

/* After a fault the driver refuses these calls too, and takes everything back when the process ends. While a
 * kernel runs they wait for it. */
struct device *device_close(struct device *device)
{
    if (!device)
        return NULL;
    if (device->stream.recording) {
        struct device_graph *graph;
        if (device_record_end(&device->stream, &graph) == 0)
            device_graph_free(graph);
    }
    if (device->stream.stream)
        cudaStreamSynchronize(device->stream.stream);
    while (device->allocations)
        device_free(device, device->allocations->memory);
    while (device->arenas) {
        struct device_arena *arena = device->arenas;
        device->arenas = arena->next;
        free(arena);
    }
    while (device->pinned)
        device_pinned_free(device, device->pinned->memory);
    for (uint32_t i = 0; i < DEVICE_MARKS; i++)
        if (device->stream.marks[i])
            cudaEventDestroy(device->stream.marks[i]);
    for (uint32_t i = 0; i < 2; i++) {
        if (device->timers[i])
            cudaEventDestroy(device->timers[i]);
        if (device->noted[i])
            cudaEventDestroy(device->noted[i]);
    }
    if (device->stream.stream)
        cudaStreamDestroy(device->stream.stream);
    cudaGetLastError();
    free(device);
    return NULL;
}

const struct device_properties *device_properties(const struct device *device)
{
    return &device->properties;
}

size_t device_free_bytes(struct device *device)
{
    size_t free_bytes = 0, total = 0;
    if (device_cuda_check(device, "cudaMemGetInfo", cudaMemGetInfo(&free_bytes, &total)) < 0)
        return 0;
    return free_bytes;
}

int device_verdict(struct device *device, struct error *err)
{
    /* Asks without waiting. A recording would be spoiled by it. */
    if (device->fault == 0 && !device->stream.recording) {
        cudaError_t e = cudaStreamQuery(device->stream.stream);
        if (e == cudaErrorNotReady)
            cudaGetLastError();
        else
            device_cuda_check(device, "cudaStreamQuery", e);
    }
    return device->fault ? error_set(err, device->fault, "%s", device->reason.text) : 0;
}

struct device_counts device_counts(const struct device *device)
{
    return device->counts;
}

/* ---- the queue ---- */

struct device_stream *device_stream(struct device *device)
{
    return &device->stream;
}

cudaStream_t device_cuda_stream(struct device_stream *stream)
{
    return stream->stream;
}

int device_copy(struct device_stream *stream, void *to, const void *from, size_t bytes)
{
    if (bytes == 0)
        return stream->device->fault;
    stream->follows = false;
    return device_cuda_check_queued(stream, "cudaMemcpyAsync",
                                    cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream->stream));
}

int device_fill(struct device_stream *stream, void *to, int byte, size_t bytes)
{
    if (bytes == 0)
        return stream->device->fault;
    stream->follows = false;
    return device_cuda_check_queued(stream, "cudaMemsetAsync",
                                    cudaMemsetAsync(to, byte, bytes, stream->stream));
}

int device_mark(struct device_stream *stream, uint32_t n)
{
    if (stream->recording || n >= DEVICE_MARKS)
        return -EINVAL;
    stream->follows = false;
    return device_cuda_check(stream->device, "cudaEventRecord",
                             cudaEventRecord(stream->marks[n], stream->stream));
}

int device_query(struct device_stream *stream, uint32_t n)
{
    if (n >= DEVICE_MARKS)
        return -EINVAL;
    cudaError_t e = cudaEventQuery(stream->marks[n]);
    if (e != cudaErrorNotReady)
        return device_cuda_check(stream->device, "cudaEventQuery", e);
    cudaGetLastError();
    return stream->device->fault ? stream->device->fault : -EAGAIN;
}

int device_synchronize(struct device_stream *stream)
{
    if (stream->recording)
        return -EINVAL;
    return device_cuda_check(stream->device, "cudaStreamSynchronize", cudaStreamSynchronize(stream->stream));
}

/* ---- time ---- */

int device_note_time(struct device_stream *stream, uint32_t n)
{
    struct device *device = stream->device;
    if (stream->recording || n > 1)
        return -EINVAL;
    int r = device->noted[n]
                ? 0
                : device_cuda_check(device, "cudaEventCreate", cudaEventCreate(&device->noted[n]));
    stream->follows = false;
    return r < 0 ? r
                 : device_cuda_check(device, "cudaEventRecord",
                                     cudaEventRecord(device->noted[n], stream->stream));
}

int device_time_between(struct device_stream *stream, uint64_t *ret_ns)
{
    struct device *device = stream->device;
    float ms = 0;
    if (!device->noted[0] || !device->noted[1])
        return -EINVAL;
    int r = device_cuda_check(device, "cudaEventElapsedTime",
                              cudaEventElapsedTime(&ms, device->noted[0], device->noted[1]));
    *ret_ns = r == 0 && ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    return r;
}

uint64_t device_clock_ns(const struct device *device)
{
    return clock_ns();
}
