/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_IN_TURN_H
#define CUDA_DEVICE_IN_TURN_H

/* Launches in turn, for comparison with launches that overlap (cuda/device/simt.h). Like device.h, this has
 * two implementations. */

#include "cuda/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether each launch that is queued or recorded from now on waits for the end of the previous one, as if the
 * device could not overlap them; false at first. */
void device_launch_in_turn(struct device *device, bool in_turn);

#ifdef __cplusplus
}
#endif

#endif
