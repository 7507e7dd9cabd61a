/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_DEFAULT_MODEL_H
#define COMMON_FILES_DEFAULT_MODEL_H

/* The default model, used when none is named. */

#include <limits.h>

#include "common/error.h"

/* Writes the path: $QUERN_MODEL, or the demo model that is shipped. -ENOENT if it is missing; the reason
 * says where it was expected. */
int default_model(char ret_path[PATH_MAX], struct error *err);

#endif
