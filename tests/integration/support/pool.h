/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SUPPORT_POOL_H
#define TESTS_INTEGRATION_SUPPORT_POOL_H

/* A real pool for a test: quern-broker and its workers, in a fresh run directory, from the build folder that
 * the running test lies in. When something is off, a function says what, with the pool's own log, and aborts
 * the program.
 *
 * A zeroed struct is a pool that was never started. Set before it is: `rundir`, to use a directory
 * that exists; `log`, when two pools use the same; `programs`, for the broker of another folder, beside its
 * own worker; `stderr_fd`, where stderr goes instead of the log, which says nothing then (pool_start would
 * wait in vain). */

#include <stdbool.h>
#include <sys/types.h>

#include "common/files/rundir.h"

struct pool {
    pid_t broker;         /* the process that was started, the supervisor; 0: none runs */
    pid_t supervisor;     /* the same, and still known when it has ended */
    const char *programs; /* folder of the build folder with quern-broker and quern-worker; NULL: its top */
    char rundir[RUNDIR_PATH_MAX + 1];
    char frontend[RUNDIR_PATH_MAX + 32]; /* endpoints */
    char stream[RUNDIR_PATH_MAX + 32];
    int stderr_fd;                  /* 0: the log */
    char log[RUNDIR_PATH_MAX + 32]; /* file with the broker's and the workers' stderr, of every start */
    off_t log_start;                /* where in it the last start's lines begin, in bytes */
};

/* For tests of commands that look for a pool themselves: makes a directory where everything temporary goes,
 * so that it can be counted, and where no pool of the machine is found. It is removed at the end. */
void environment_open(char ret_dir[RUNDIR_PATH_MAX + 1]);
void environment_close(const char *dir);

/* Path of a program or file of the build folder; lives until the next call. */
const char *build_path(const char *name);

/* The model that pool tests serve: made at build time by `quern synth tiny Q8_0`. */
const char *tiny_model(void);

/* A new file that is no model, for the caller to remove; its path lives until the next call. */
const char *no_model(void);

/* Starts quern-broker MODEL --rundir … plus the arguments, ended by NULL, and waits until it serves. */
void pool_start(struct pool *pool, const char *model, ...) __attribute__((sentinel));

/* The same without waiting. */
void pool_spawn(struct pool *pool, const char *model, ...) __attribute__((sentinel));

/* Starts a broker that is expected to end by itself within `timeout_s`; returns its exit status (128 +
 * signal). The log stays readable until pool_forget. */
int pool_fails(struct pool *pool, int timeout_s, const char *model, ...) __attribute__((sentinel));

/* Whether it is gone, and how. */
bool pool_ended(struct pool *pool, int *ret_status);

/* Waits until the broker is gone; returns its exit status, or 128 + the signal that ended it. */
int pool_wait(struct pool *pool, int timeout_s);

/* Sends the signal, then waits like pool_wait. */
int pool_stop(struct pool *pool, int signal, int timeout_s);

/* Ends what is left of the pool and removes its directory. */
void pool_forget(struct pool *pool);

/* True when the log holds the text; waits for it up to `timeout_s`. */
bool pool_says(const struct pool *pool, const char *text, int timeout_s);

/* True when the broker serves: a line that begins with "ready:" is its own, and says it of all workers. */
bool pool_is_ready(const struct pool *pool);

/* The whole log, for a failure's message; lives until the next call. */
const char *pool_log(const struct pool *pool);

/* How many lines it has, but for those that a busy machine is the reason of: that the broker stood still. */
unsigned pool_log_lines(const struct pool *pool);

/* Pid of the process that is the broker now: the supervisor's child. 0: none is. */
pid_t pool_broker_pid(const struct pool *pool);

/* Pids of the pool's gateways now alive, in no order, at most n; returns how many. */
int pool_gateway_pids(const struct pool *pool, pid_t *ret_pids, int n);

/* A TCP port that is free, and the next one too: for the moment. */
int pool_free_ports(void);

/* Pids of the workers now alive, by name order "worker-0" …; 0 where none is. Asks /proc. */
int pool_worker_pids(const struct pool *pool, pid_t *ret_pids, int n);

/* Runs a program of the build folder with arguments ended by NULL; its stdout goes to ret_out
 * (zero-terminated, cut at `size`), stderr stays the test's. Returns its exit status. */
int run_program(char *ret_out, size_t size, const char *name, ...) __attribute__((sentinel));

#endif
