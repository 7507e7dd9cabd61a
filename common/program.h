/* SPDX-License-Identifier: MIT */
#ifndef COMMON_PROGRAM_H
#define COMMON_PROGRAM_H

/* What concerns a program as a whole: its standard files, and where the other programs of this build are. */

#include <limits.h>

#include "common/error.h"

/* Exit status of a program whose failure is permanent (bad model, no such device): it is not started again.
 */
#define PROGRAM_EXIT_PERMANENT 78

/* Exit status of a program that does not understand its command line. */
#define PROGRAM_EXIT_USAGE 2

/* First thing in main. Descriptors 0 to 2, where the caller closed them, are held by files that fail: else
 * the next socket or file to be opened would be taken for stdin, stdout or stderr. */
void program_hold_standard_files(void);

/* Writes the path of `name` ("quern-worker") in the folder of the running executable. -ENOENT names the path
 * that is missing. */
int program_sibling(const char *name, char ret_path[PATH_MAX], struct error *err);

#endif
