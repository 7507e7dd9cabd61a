/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_OBSERVE_H
#define ENGINE_OBSERVE_H

/* Reports steps and events of requests to an observer. The engine calls these only while it has an observer
 * (engine_observe). */

#include "engine/plan.h"

/* The sequence has just got a slot. */
void observe_started(const struct engine_observer *observer, const struct sequence *sequence);

/* The plan was submitted. */
void observe_submitted(const struct engine_observer *observer, const struct plan *plan, uint64_t now);

/* A sequence's set was read with n ids, which are not delivered yet. */
void observe_read(const struct engine_observer *observer, const struct sequence *sequence,
                  const struct backend_row_set *set, uint32_t n, uint64_t now);

#endif
