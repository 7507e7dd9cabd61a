/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SUPPORT_SHELL_H
#define TESTS_INTEGRATION_SUPPORT_SHELL_H

/* Quern's programs as somebody types them: lines of shell, and what they print. */

#include "common/files/rundir.h"

/* A folder of the test's own, which is its run directory too. */
extern char dir[RUNDIR_PATH_MAX + 1];

/* What the last line wrote to stdout and stderr. */
extern char out[1 << 16], err[1 << 16];

/* Fixture of each test. */
void shell_open(void);
void shell_close(void);

/* Runs a line in which $Q is the folder of the programs and $MODEL a tiny model; its exit status, 128 + the
 * signal when one ended it. */
int shell(const char *line);

#endif
