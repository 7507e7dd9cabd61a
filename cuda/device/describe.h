/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_DESCRIBE_H
#define CUDA_DEVICE_DESCRIBE_H

/* Describes a GPU without opening it for work. Like device.h, this has two implementations: describe_cuda.cu,
 * which initializes the device briefly (a few hundred MB of its memory), and emu/describe.cc. */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "engine/backend/device.h"

/* Restricts this process to these devices, numbered from 0 in this order: numbers, UUIDs or beginnings of
 * UUIDs, separated by commas (selection.h). Call it before any other use of devices in this process; later
 * calls must pass the same list. 0; -EINVAL: the list is invalid; -ENODEV: a device does not exist, and err
 * lists those that do. */
int device_select(const char *list, struct error *err);

int device_describe(uint32_t number, struct device_description *ret_description, struct error *err);

/* The driver's version in the text of /proc/driver/nvidia/version: the first word of digits and points; "":
 * none. */
void device_driver_version(const char *text, char *ret_version, size_t size);

/* The running driver, as "580.65.06 (CUDA 13.0)"; "": none. */
void device_find_driver(char *ret_driver, size_t size);

#ifdef __cplusplus
}
#endif

#endif
