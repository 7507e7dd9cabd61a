/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_DESCRIBE_H
#define CUDA_DEVICE_DESCRIBE_H

/* What a GPU is, without opening it for work. Like device.h, this has two implementations: describe_cuda.cu,
 * which starts the device for the moment (some hundred MB of its memory), and emu/describe.cc. */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "engine/backend/device.h"

/* From now on these devices alone are there, in this order, from 0 on: numbers, and UUIDs or their
 * beginnings, separated by commas (selection.h). Before anything else is asked of devices in this process;
 * then the same list again, or none. 0; -EINVAL: that is no such list; -ENODEV: one of them is not there, and
 * err lists those that are. */
int device_select(const char *list, struct error *err);

int device_describe(uint32_t number, struct device_description *ret_description, struct error *err);

/* The driver's version in what /proc/driver/nvidia/version says, the first word of digits and points; "":
 * none. */
void device_driver_version(const char *text, char *ret_version, size_t size);

/* "580.65.06 (CUDA 13.0)", of the driver that runs; "": none. */
void device_find_driver(char *ret_driver, size_t size);

#ifdef __cplusplus
}
#endif

#endif
