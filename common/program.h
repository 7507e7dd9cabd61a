/* SPDX-License-Identifier: MIT */
#ifndef COMMON_PROGRAM_H
#define COMMON_PROGRAM_H

/* Where the other programs of this build are: beside the running one. */

#include <limits.h>

#include "common/error.h"

/* Exit status of a program whose failure is permanent (bad model, no such device): it is not started again.
 */
#define PROGRAM_EXIT_PERMANENT 78

/* Writes the path of `name` ("quern-worker") in the folder of the running executable. -ENOENT names the path
 * that is missing. */
int program_sibling(const char *name, char ret_path[PATH_MAX], struct error *err);

#endif
