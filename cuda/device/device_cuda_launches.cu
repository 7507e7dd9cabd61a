/* SPDX-License-Identifier: MIT */
/* Launches of our kernels and of the device's libraries, and their profile.
 *
 * A kernel is loaded before its first launch, and a table remembers that it is. While a profile is taken,
 * each launch is timed by two events and waited for, so nothing runs beside it. The time of an empty launch
 * is part of every time; a row of its own shows it. */

#include "cuda/device/device_cuda_parts.h"

#include <stdint.h>

#include "cuda/device/in_turn.h"
#include "cuda/device/simt.h"

#define DEFAULT_SHARED (48 * 1024) /* a kernel may have as much without asking */
#define EMPTY_LAUNCHES 16          /* timed, for a profile */

/* ---- our kernels ---- */

/* The first launch of a kernel loads its code, which a recording of the strict kind does not permit. */
static int load(struct device *device, const char *name, const void *kernel, size_t shared_bytes)
{
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    cudaFuncAttributes code;
    cudaError_t e = cudaFuncGetAttributes(&code, kernel);
    if (e == cudaSuccess && shared_bytes > DEFAULT_SHARED)
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    cudaThreadExchangeStreamCaptureMode(&mode);
    return device_cuda_check(device, name, e);
}

/* Where a kernel stands in the table, or is to stand: at the place of its address, or close behind. In a
 * table that is full there, it takes the place of another, which is loaded again. */
static struct loaded_kernel *place_of(struct device *device, const void *kernel)
{
    const uint32_t first = (uint32_t)((uint64_t)(uintptr_t)kernel * 0x9e3779b97f4a7c15 >> 40);
    for (uint32_t i = 0; i < 8; i++) {
        struct loaded_kernel *place = &device->kernels[(first + i) % KERNEL_PLACES];
        if (place->kernel == kernel || !place->kernel)
            return place;
    }
    return &device->kernels[first % KERNEL_PLACES];
}

static bool is_timed(const struct device_stream *stream)
{
    return stream->device->timed && !stream->recording;
}

static int start_timer(struct device_stream *stream)
{
    struct device *device = stream->device;
    return is_timed(stream) ? device_cuda_check(device, "cudaEventRecord",
                                                cudaEventRecord(device->timers[0], stream->stream))
                            : 0;
}

bool device_cuda_overlaps(const struct device_stream *stream)
{
    const struct device *device = stream->device;
    return device->overlaps && !device->in_turn && stream->follows && !is_timed(stream);
}

void device_launch_in_turn(struct device *device, bool in_turn)
{
    device->in_turn = in_turn;
}

int device_cuda_before_launch(struct device_stream *stream, const char *name, const void *kernel,
                              size_t shared_bytes)
{
    struct device *device = stream->device;
    if (device->fault)
        return device->fault;
    struct loaded_kernel *place = place_of(device, kernel);
    int r = 0;
    if (place->kernel != kernel || place->shared_bytes < shared_bytes) {
        r = load(device, name, kernel, shared_bytes);
        *place = r == 0 ? loaded_kernel{kernel, shared_bytes} : *place;
    }
    return r < 0 ? r : start_timer(stream);
}

/* Waits for the kernel that was launched, and adds it to the profile. */
static int take_time(struct device_stream *stream, const char *name, uint64_t n_blocks)
{
    struct device *device = stream->device;
    float ms = 0;
    cudaError_t e = cudaEventRecord(device->timers[1], stream->stream);
    if (e == cudaSuccess)
        e = cudaEventSynchronize(device->timers[1]);
    if (e == cudaSuccess)
        e = cudaEventElapsedTime(&ms, device->timers[0], device->timers[1]);
    struct backend_kernel *kernel = profile_kernel(&device->profile, name);
    kernel->n++;
    kernel->n_blocks += n_blocks;
    kernel->ns += (uint64_t)((double)ms * 1e6);
    kernel->bytes += device->expected;
    device->expected = 0;
    return device_cuda_check(device, name, e);
}

/* Once device.last says what was queued. */
static int end_launch(struct device_stream *stream, const char *name, uint64_t n_blocks, bool is_ours)
{
    struct device *device = stream->device;
    cudaError_t e = cudaGetLastError();
    device->counts.overlaps += device_cuda_overlaps(stream);
    stream->follows = is_ours;
    if (stream->recording)
        stream->n_recorded++;
    else
        device->counts.launches++;
    if (e == cudaSuccess && device->synchronous && !stream->recording)
        e = cudaStreamSynchronize(stream->stream);
    int r = device_cuda_check_queued(stream, name, e);
    return r < 0 || !is_timed(stream) ? r : take_time(stream, name, n_blocks);
}

int device_cuda_after_launch(struct device_stream *stream, const char *name, dim3 grid, dim3 block)
{
    stream->device->last = queued_kernel{name, grid, block, false};
    return end_launch(stream, name, (uint64_t)grid.x * grid.y * grid.z, true);
}

/* ---- libraries of the device ---- */

/* The library loads its kernels when they are first wanted, as `load` does ours. */
int device_library_begin(struct device_stream *stream, const char *name, void **ret_native)
{
    struct device *device = stream->device;
    if (device->fault)
        return device->fault;
    stream->follows = false;
    stream->mode = cudaStreamCaptureModeRelaxed;
    int r = device_cuda_check(device, name, cudaThreadExchangeStreamCaptureMode(&stream->mode));
    *ret_native = stream->stream;
    return r < 0 ? r : start_timer(stream);
}

int device_library_end(struct device_stream *stream, const char *name)
{
    struct device *device = stream->device;
    cudaThreadExchangeStreamCaptureMode(&stream->mode);
    device->last = queued_kernel{name, dim3(0, 0, 0), dim3(0, 0, 0), false};
    device->counts.library++;
    return end_launch(stream, name, 0, false);
}

/* ---- profile ---- */

static __global__ void nothing(void)
{
}

int device_profile(struct device *device, bool on)
{
    int r = 0;
    device->timed = false;
    if (!on)
        return 0;
    for (uint32_t i = 0; i < 2 && r == 0; i++)
        if (!device->timers[i])
            r = device_cuda_check(device, "cudaEventCreate", cudaEventCreate(&device->timers[i]));
    device->timed = r == 0;
    return r;
}

void device_expect(struct device_stream *stream, size_t bytes)
{
    stream->device->expected = bytes;
}

/* What the timers themselves take stands in a row of its own. */
uint32_t device_kernels(struct device *device, const struct backend_kernel **ret_kernels)
{
    for (uint32_t i = 0; i < EMPTY_LAUNCHES && is_timed(&device->stream); i++)
        if (simt_launch(&device->stream, "(an empty kernel)", nothing, {1, 1, 1}, {SIMT_LANES, 1, 1}, 0) < 0)
            break;
    return profile_take(&device->profile, ret_kernels);
}
