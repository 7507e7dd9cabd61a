/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_COMMON_SYSTEM_MACHINE_H
#define TESTS_UNIT_COMMON_SYSTEM_MACHINE_H

/* A temporary folder that stands for the root of a machine, with the files of /proc and /sys that a test
 * writes. */

extern char machine[64]; /* its path */

void machine_set_up(void);
void machine_tear_down(void);

/* Writes a file below it, with its folders. */
void machine_put(const char *name, const char *text);

#endif
