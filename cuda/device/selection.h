/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_SELECTION_H
#define CUDA_DEVICE_SELECTION_H

/* Parses the devices that a user names: "0", "GPU-8f3a…", "MIG-…", separated by commas. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "common/error.h"

/* 10 · major + minor: the first with the matrix instructions that the kernels use (Ampere). */
#define LEAST_CAPABILITY 80

#define SELECTION_MOST  64
#define SELECTION_BYTES 64 /* of a name, with its end */
#define UUID_BYTES      48 /* of "GPU-8f3a…" as text, with its end */

struct selection {
    uint32_t n;
    char items[SELECTION_MOST][SELECTION_BYTES];
};

/* 0; -EINVAL: an item is not a valid name, or is named twice. */
int selection_parse(const char *list, struct selection *ret_selection, struct error *err);

/* Whether an item names the device with this number and UUID: by the number, or by the UUID or its beginning,
 * ignoring case. */
bool selection_means(const char *item, uint32_t number, const char *uuid);

/* 0; -ENODEV: the device cannot execute the kernels of any build. */
int check_capability(uint32_t number, const char *name, uint32_t capability, struct error *err);

/* Whether a device is a MIG slice, by its name: "NVIDIA H200 MIG 1g.18gb". */
bool is_slice_name(const char *name);

/* A UUID of 16 bytes as nvidia-smi writes it: "GPU-a1b2c3d4-…", of a MIG slice "MIG-…". */
void uuid_text(const uint8_t uuid[16], bool is_slice, char ret_text[UUID_BYTES]);

/* GPUs as listed by the driver in `folder` (/proc/driver/nvidia/gpus), in bus order: "0 GPU-8f3a… (NVIDIA
 * H200), 1 GPU-…". "": the folder is missing or empty. */
void selection_list_gpus(const char *folder, char *ret_text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
