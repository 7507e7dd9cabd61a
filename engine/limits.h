/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_LIMITS_H
#define ENGINE_LIMITS_H

/* Limits of a request, checked before any work. */

#include <stdint.h>

#include "common/error.h"
#include "engine/engine.h"

/* The defaults of fields of engine_config that are 0. */
#define ENGINE_DEFAULT_SLOTS   32
#define ENGINE_MOST_SLOTS      256 /* on a device with memory for them: the size of its largest graph */
#define ENGINE_DEFAULT_WAITING 1024

#define ENGINE_MOST_LOGPROBS 256
#define ENGINE_MOST_PRIORITY 1000 /* either sign; the waiting time that it stands for must not overflow */

/* 0, ENGINE_E_INVALID or ENGINE_E_TOO_LONG with the reason. `n_context` and `n_cache`: most positions of one
 * sequence, according to the model and the number of KV blocks. */
int engine_check_request(const struct engine_request *request, const struct model *model,
                         const struct backend_info *info, uint32_t n_context, uint32_t n_cache,
                         struct error *err);

#endif
