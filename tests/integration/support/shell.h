/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SUPPORT_SHELL_H
#define TESTS_INTEGRATION_SUPPORT_SHELL_H

/* Runs Quern's programs as typed in a shell, and keeps their output. */

#include "common/files/rundir.h"

/* The test's temporary folder, which is also its run directory. */
extern char dir[RUNDIR_PATH_MAX + 1];

/* Output of the last line on stdout and stderr. */
extern char out[1 << 16], err[1 << 16];

/* Fixture of each test. */
void shell_open(void);
void shell_close(void);

/* Runs a line in which $Q is the folder of the programs and $MODEL a tiny model. Returns its exit status, or
 * 128 + the signal that ended it. */
int shell(const char *line);

#endif
