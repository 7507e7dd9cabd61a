/* SPDX-License-Identifier: MIT */
/* describe.h of an emulated device. Its memory has no speed. */

#include "cuda/device/describe.h"

#include <stdio.h>

#include "cuda/device/device.h"

int device_describe(uint32_t number, struct device_description *ret_description, struct error *err)
{
    struct device *device;
    struct device_description d = {};
    const int r = device_open(number, &device, err);
    if (r < 0)
        return r;
    const struct device_properties *properties = device_properties(device);
    snprintf(d.name, sizeof d.name, "%s", properties->name);
    snprintf(d.uuid, sizeof d.uuid, "GPU-00000000-0000-0000-0000-%012x", number);
    snprintf(d.driver, sizeof d.driver, "none, emulated");
    d.capability = properties->capability;
    d.n_cores = properties->n_multiprocessors;
    d.memory_free = device_free_bytes(device);
    d.memory_total = properties->total_bytes;
    device_close(device);
    *ret_description = d;
    return 0;
}
