/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_COMMON_SYSTEM_MACHINE_H
#define TESTS_UNIT_COMMON_SYSTEM_MACHINE_H

/* A temporary folder in place of a machine's root directory, with files of /proc and /sys that a test
 * writes. */

extern char machine[64]; /* its path */

void machine_set_up(void);
void machine_tear_down(void);

/* Writes a file below it, and creates its folders. */
void machine_put(const char *name, const char *text);

#endif
