/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_IN_TURN_H
#define CUDA_DEVICE_IN_TURN_H

/* Launches in turn, for comparing them with launches that overlap (cuda/device/simt.h). As device.h, this has
 * two implementations. */

#include "cuda/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether launches that are queued or recorded from now on wait, each of them, for the end of the one before,
 * as if the device could not overlap them; false at first. */
void device_launch_in_turn(struct device *device, bool in_turn);

#ifdef __cplusplus
}
#endif

#endif
