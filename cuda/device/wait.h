/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_WAIT_H
#define CUDA_DEVICE_WAIT_H

/* Waiting for the device, always with a bound. */

#include "cuda/device/device.h"

/* The users of the stream's marks. A mark is set again only after it was reached. */
enum {
    MARK_STEPS = 0,    /* + number % MAILBOXES */
    MARK_IMAGES = 8,   /* + image of a slot's opening */
    MARK_COPIES = 24,  /* + staging buffer of a block copy */
    MARK_LOGITS = 32,  /* the staging buffer of logits */
    MARK_WEIGHTS = 40, /* + staging buffer of weights */
    MARK_TIMES = 48,   /* after the second of two noted times */
};

/* Waits up to timeout_ms (0: checks once) until the mark is reached or, if `flag` is not NULL, *flag is at
 * least `value`: a kernel's store is visible before the mark after it. 0, -EAGAIN, or the device's fault. */
int device_wait(struct device *device, uint32_t mark, const uint64_t *flag, uint64_t value,
                uint32_t timeout_ms);

/* Whether this is longer than any work takes. */
bool device_stands_still(const struct device *device, uint64_t waited_ns);

/* Waits for a mark that will be reached soon: 0, a fault, or -ETIMEDOUT if the device makes no progress. */
int device_wait_due(struct device *device, uint32_t mark);

#endif
