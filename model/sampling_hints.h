/* SPDX-License-Identifier: MIT */
#ifndef MODEL_SAMPLING_HINTS_H
#define MODEL_SAMPLING_HINTS_H

/* The sampling parameters recommended by a model's authors: general.sampling.* of a GGUF file; for a folder
 * with SafeTensors they come from its generation_config.json. */

#include <stddef.h>

#include "common/sampling_defaults.h"
#include "gguf/gguf.h"

/* The key of the i-th sampling parameter, as other programs name it: "general.sampling.temp". */
void sampling_hint_key(size_t i, char ret_key[96]);

/* Overwrites `defaults` with the file's values. A value that no request may have is skipped and named in
 * `err`, which is otherwise unchanged: a bad hint is no reason to reject a model. */
void sampling_hints(const struct gguf *gguf, struct sampling_defaults *defaults, struct error *err);

#endif
