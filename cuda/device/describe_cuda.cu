/* SPDX-License-Identifier: MIT */
/* Asks the CUDA runtime, and Linux for the version of the driver, which the runtime does not know. */

#include "cuda/device/describe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device/device.h"
#include "cuda/device/selection.h"

#include <cuda_runtime.h>

#define GPUS_FOLDER "/proc/driver/nvidia/gpus"

static int failed(uint32_t number, cudaError_t e, struct error *err)
{
    cudaGetLastError();
    return error_set(err, -ENODEV, "GPU %u cannot be initialized: %s (%s)", number, cudaGetErrorString(e),
                     cudaGetErrorName(e));
}

void device_find_driver(char *ret_driver, size_t size)
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

/* The item as the driver takes it. Numbers count what it shows already, as far as a user has narrowed that.
 */
static void visible_name(const char *item, const char *visible, char ret_name[SELECTION_BYTES])
{
    uint32_t number = (uint32_t)strtoul(item, NULL, 10);
    snprintf(ret_name, SELECTION_BYTES, "%s", item);
    if (!visible || item[0] < '0' || item[0] > '9')
        return;
    for (; number > 0 && *visible; number--)
        visible += strcspn(visible, ",") + (strchr(visible, ',') != NULL);
    /* Beyond the end: a name that no device has. */
    snprintf(ret_name, SELECTION_BYTES, "%.*s", (int)strcspn(visible, ","), *visible ? visible : "-1");
}

static int refuse(const char *item, struct error *err)
{
    char list[1024];
    selection_list_gpus(GPUS_FOLDER, list, sizeof list);
    if (!list[0])
        return error_set(err, -ENODEV, "no GPU is %s; nvidia-smi -L lists the available ones", item);
    return error_set(err, -ENODEV, "no GPU is %s; available: %s", item, list);
}

/* Shows the driver these alone. *ret_n: how many of them it finds, up to the first that it does not. */
static void show(const struct selection *selection, uint32_t *ret_n)
{
    const char *before = getenv("CUDA_VISIBLE_DEVICES");
    char names[SELECTION_MOST * SELECTION_BYTES] = "", name[SELECTION_BYTES];
    struct error unused;
    for (uint32_t i = 0; i < selection->n; i++) {
        const size_t len = strlen(names);
        visible_name(selection->items[i], before, name);
        snprintf(names + len, sizeof names - len, "%s%s", i > 0 ? "," : "", name);
    }
    setenv("CUDA_VISIBLE_DEVICES", names, 1);
    if (device_count(ret_n, &unused) < 0)
        *ret_n = 0;
}

/* A process sees one MIG slice at most, so of a list with several the driver shows the first. */
int device_select(const char *list, struct error *err)
{
    static struct selection selected;
    static uint32_t n_found; /* of them */
    struct selection selection;
    int r = selection_parse(list, &selection, err);
    if (r < 0)
        return r;
    if (selected.n > 0 && memcmp(&selection, &selected, sizeof selected) != 0)
        return error_set(err, -EINVAL, "this process already uses other devices");
    if (selected.n == 0)
        show(&selection, &n_found);
    selected = selection;
    return n_found == selected.n ? 0 : refuse(selected.items[n_found], err);
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
    snprintf(d.name, sizeof d.name, "%.63s", p.name);
    uuid_text((const uint8_t *)p.uuid.bytes, is_slice_name(p.name), d.uuid);
    device_find_driver(d.driver, sizeof d.driver);
    d.capability = (uint32_t)(10 * p.major + p.minor);
    d.n_cores = (uint32_t)p.multiProcessorCount;
    d.memory_free = free_bytes;
    d.memory_total = total;
    d.bandwidth = bandwidth_of(number);
    *ret_description = d;
    return 0;
}
