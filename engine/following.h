/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_FOLLOWING_H
#define ENGINE_FOLLOWING_H

/* A waiting sequence whose next block a running prompt is computing *follows* that prompt: it waits for the
 * block instead of computing it too. */

#include <stdbool.h>

#include "engine/scheduler.h"

/* Whether a running prompt is computing the next block of this sequence, of which `n` blocks were found. If
 * so, that is noted, and the next attempt need not look up the prefix. */
bool following_begin(const struct scheduler *scheduler, struct sequence *sequence, uint32_t n);

/* Whether the noted prompt is still computing for this sequence, and the cache still accepts what it
 * computes. Compares only the ids since the last check; those before are equal. */
bool following_goes_on(const struct scheduler *scheduler, struct sequence *sequence);

#endif
