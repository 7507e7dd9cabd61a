/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_LIMITS_H
#define ENGINE_LIMITS_H

/* What a request may ask for, checked before any work. */

#include <stdint.h>

#include "common/error.h"
#include "engine/engine.h"

/* What fields of engine_config that are 0 become. */
#define ENGINE_DEFAULT_SLOTS   32
#define ENGINE_MOST_SLOTS      256 /* and up to, on a device that has memory for them: its largest recording */
#define ENGINE_DEFAULT_WAITING 1024

#define ENGINE_MOST_LOGPROBS 256
#define ENGINE_MOST_PRIORITY 1000 /* either way; each is worth some waiting, which has to be countable */

/* 0, ENGINE_E_INVALID or ENGINE_E_TOO_LONG with the reason. `n_context` and `n_cache`: most positions of one
 * sequence, by the model and by the KV blocks there are. */
int engine_check_request(const struct engine_request *request, const struct model *model,
                         const struct backend_info *info, uint32_t n_context, uint32_t n_cache,
                         struct error *err);

#endif
