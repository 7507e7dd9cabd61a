/* SPDX-License-Identifier: MIT */
#ifndef MODEL_CONVERT_RANDOM_BLOCKS_H
#define MODEL_CONVERT_RANDOM_BLOCKS_H

/* Random weights made directly in a tensor format. */

#include <stddef.h>
#include <stdint.h>

#include "gguf/format.h"

/* Fills `size` bytes with blocks whose values have mean 0 and standard deviation `deviation` (within a few
 * percent), determined by (format, deviation, seed). 0; -ENOTSUP: the format cannot be written. */
int random_blocks(enum format format, float deviation, uint64_t seed, void *out, size_t size);

#endif
