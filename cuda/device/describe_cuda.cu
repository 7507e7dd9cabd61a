/* SPDX-License-Identifier: MIT */
/* Asks the CUDA runtime, and Linux for the version of the driver, which the runtime does not know. */

#include "cuda/device/describe.h"

#include <errno.h>
#include <stdio.h>

#include "cuda/device/device.h"

#include <cuda_runtime.h>

static int failed(uint32_t number, cudaError_t e, struct error *err)
{
    cudaGetLastError();
    return error_set(err, -ENODEV, "GPU %u does not start: %s (%s)", number, cudaGetErrorString(e),
                     cudaGetErrorName(e));
}

/* "580.65.06 (CUDA 13.0)" */
static void find_driver(char *ret_driver, size_t size)
{
    char line[256] = "", version[24] = "";
    int cuda = 0;
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    if (file) {
        if (!fgets(line, sizeof line, file))
            line[0] = 0;
        fclose(file);
    }
    device_driver_version(line, version, sizeof version);
    if (cudaDriverGetVersion(&cuda) != cudaSuccess)
        cuda = 0;
    snprintf(ret_driver, size, "%s%s(CUDA %d.%d)", version, version[0] ? " " : "", cuda / 1000,
             cuda % 1000 / 10);
}

/* Bytes a second, two transfers a clock. */
static uint64_t bandwidth_of(uint32_t number)
{
    int kilohertz = 0, bits = 0;
    if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, (int)number) != cudaSuccess ||
        cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, (int)number) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return kilohertz > 0 && bits > 0 ? 2000ull * (uint64_t)kilohertz * (uint64_t)bits / 8 : 0;
}

int device_describe(uint32_t number, struct device_description *ret_description, struct error *err)
{
    uint32_t n;
    cudaDeviceProp p;
    size_t free_bytes = 0, total = 0;
    struct device_description d = {};
    const int r = device_count(&n, err);
    if (r < 0)
        return r;
    if (number >= n)
        return error_set(err, -ENODEV, "no GPU %u: there %s %u", number, n == 1 ? "is" : "are", n);
    cudaError_t e = cudaGetDeviceProperties(&p, (int)number);
    if (e == cudaSuccess)
        e = cudaSetDevice((int)number);
    if (e == cudaSuccess)
        e = cudaMemGetInfo(&free_bytes, &total);
    if (e != cudaSuccess)
        return failed(number, e, err);
    const unsigned char *u = (const unsigned char *)p.uuid.bytes;
    snprintf(d.name, sizeof d.name, "%.63s", p.name);
    snprintf(d.uuid, sizeof d.uuid,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2],
             u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
    find_driver(d.driver, sizeof d.driver);
    d.capability = (uint32_t)(10 * p.major + p.minor);
    d.n_cores = (uint32_t)p.multiProcessorCount;
    d.memory_free = free_bytes;
    d.memory_total = total;
    d.bandwidth = bandwidth_of(number);
    *ret_description = d;
    return 0;
}
