/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CHILD_H
#define TESTS_UNIT_CHILD_H

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* fork() for a test; a failure ends the test. Check's reports go into one file, at a position that both
 * processes share: until the test waits for the child, the child must not assert anything. So the pid is
 * checked here, not by an assertion after the call, which the child would run as well. */
static inline pid_t fork_child(void)
{
    pid_t pid = fork();
    if (pid < 0)
        ck_abort_msg("fork: %s", strerror(errno));
    return pid;
}

/* A child whose stderr the test reads:
 *
 *     struct child child;
 *     if (child_begin(&child)) {
 *         what_it_does();
 *         _exit(0);
 *     }
 *     int status = child_end(&child, said, sizeof said);
 */
struct child {
    pid_t pid;
    int stderr_fd;
};

/* True in the child. */
static inline bool child_begin(struct child *child)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    child->pid = fork_child();
    if (child->pid == 0)
        dup2(ends[1], STDERR_FILENO);
    close(ends[child->pid == 0 ? 0 : 1]);
    child->stderr_fd = ends[0];
    return child->pid == 0;
}

/* Waits for the child's end; returns its waitpid status, and the first size − 1 bytes of its stderr. */
static inline int child_end(struct child *child, char *ret_said, size_t size)
{
    size_t len = 0;
    int status;
    for (ssize_t n; len < size - 1 && (n = read(child->stderr_fd, ret_said + len, size - 1 - len)) > 0;)
        len += (size_t)n;
    ret_said[len] = 0;
    close(child->stderr_fd);
    ck_assert_int_eq(waitpid(child->pid, &status, 0), child->pid);
    return status;
}

#endif
