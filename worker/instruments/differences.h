/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSTRUMENTS_DIFFERENCES_H
#define WORKER_INSTRUMENTS_DIFFERENCES_H

/* Logs ids that device and host sampled differently: request, index in its sequence, both ids with their
 * logits. A worker logs at most DIFFERENCES_LOGGED of them; the board counts all. */

#include <stdint.h>

#include "engine/backend/host_sampling.h"

#define DIFFERENCES_LOGGED 1000

struct differences {
    const uint8_t *(*topic_of)(uint64_t tag);
    uint32_t logged;
};

/* As engine_config.differs; `arg` is a struct differences. */
void differences_log(void *arg, uint64_t tag, const struct backend_difference *difference);

#endif
