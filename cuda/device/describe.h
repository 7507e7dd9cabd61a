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

int device_describe(uint32_t number, struct device_description *ret_description, struct error *err);

/* The driver's version in what /proc/driver/nvidia/version says, the first word of digits and points; "":
 * none. */
void device_driver_version(const char *text, char *ret_version, size_t size);

#ifdef __cplusplus
}
#endif

#endif
