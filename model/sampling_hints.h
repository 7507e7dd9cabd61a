/* SPDX-License-Identifier: MIT */
#ifndef MODEL_SAMPLING_HINTS_H
#define MODEL_SAMPLING_HINTS_H

/* How a model's authors want it sampled: general.sampling.* of a GGUF file, which a folder with SafeTensors
 * gets from its generation_config.json. */

#include <stddef.h>

#include "common/sampling_defaults.h"
#include "gguf/gguf.h"

/* The key of the i-th sampling parameter, as other programs write it: "general.sampling.temp". */
void sampling_hint_key(size_t i, char ret_key[96]);

/* Puts what the file says over `defaults`. A value that no request could have is passed over, and named in
 * `err`, which stays as it is where there is none: a hint is no reason to refuse a model. */
void sampling_hints(const struct gguf *gguf, struct sampling_defaults *defaults, struct error *err);

#endif
