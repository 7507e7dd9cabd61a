/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CHILD_H
#define TESTS_UNIT_CHILD_H

#include <check.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* fork() for a test; a failure ends the test. What Check is told goes into one file, through a position that
 * both processes share: as long as the test does not wait for the child, the child may assert nothing. So the
 * pid is looked at here, and not by an assertion behind the call, which the child would run as well. */
static inline pid_t fork_child(void)
{
    pid_t pid = fork();
    if (pid < 0)
        ck_abort_msg("fork: %s", strerror(errno));
    return pid;
}

#endif
