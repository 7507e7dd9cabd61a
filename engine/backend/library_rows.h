/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_LIBRARY_ROWS_H
#define ENGINE_BACKEND_LIBRARY_ROWS_H

/* Parses the option for the number of rows from which cuBLASLt computes a step's products
 * (backend_cuda_config). */

#include "common/error.h"
#include "engine/backend/backend.h"

/* "off" (0), "auto" (BACKEND_LIBRARY_MEASURED) or a number of at least BACKEND_LEAST_LIBRARY_ROWS. 0, or
 * -EINVAL with the valid values.
 */
int library_rows_by_name(const char *name, uint32_t *ret_rows, struct error *err);

#endif
