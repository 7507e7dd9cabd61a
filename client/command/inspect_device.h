/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_INSPECT_DEVICE_H
#define CLIENT_COMMAND_INSPECT_DEVICE_H

/* The devices of this machine, as workers would find them. */

#include <stdbool.h>

#include "common/error.h"

/* Prints the devices of this kind (--device of quern serve); NULL or "auto": the processor and all GPUs, or
 * why there is no GPU. 0; -EINVAL: unknown kind; -ENODEV: there is no such device, or one cannot be queried,
 * and the others are printed. */
int inspect_devices(const char *kind, bool json, struct error *err);

#endif
