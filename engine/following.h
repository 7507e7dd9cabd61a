/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_FOLLOWING_H
#define ENGINE_FOLLOWING_H

/* A waiting sequence whose next block a running prompt is just computing *follows* that one: it waits for the
 * block instead of computing it too. */

#include <stdbool.h>

#include "engine/scheduler.h"

/* Whether a running prompt is computing what this one, of which `n` blocks were found, would begin with. It
 * is noted: the next look need not look up the prefix. */
bool following_begin(const struct scheduler *scheduler, struct sequence *sequence, uint32_t n);

/* Whether the prompt that was noted is computing for this one still, and the cache takes what it computes.
 * Their ids are compared as far as it came since: they are the same before. */
bool following_goes_on(const struct scheduler *scheduler, struct sequence *sequence);

#endif
