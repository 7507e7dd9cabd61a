/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SUPPORT_POOL_H
#define TESTS_INTEGRATION_SUPPORT_POOL_H

/* A real pool for a test: quern-broker and its workers, in a fresh run directory, from the build folder that
 * contains the running test. On an error, a function prints it with the pool's log and aborts the program.
 *
 * A zeroed struct is a pool that was never started. To set before the start: `rundir`, to use an existing
 * directory; `log`, if two pools share one; `programs`, for the broker of another folder, with the worker
 * beside it; `stderr_fd`, to send stderr there instead of to the log, which is then empty (pool_start would
 * wait in vain). */

#include <stdbool.h>
#include <sys/types.h>

#include "common/files/rundir.h"

struct pool {
    pid_t broker;         /* the started process, which is the supervisor; 0: none runs */
    pid_t supervisor;     /* the same, kept after it has ended */
    const char *programs; /* folder of the build folder with quern-broker and quern-worker; NULL: its top */
    char rundir[RUNDIR_PATH_MAX + 1];
    char frontend[RUNDIR_PATH_MAX + 32]; /* endpoints */
    char stream[RUNDIR_PATH_MAX + 32];
    int stderr_fd;                  /* 0: the log */
    char log[RUNDIR_PATH_MAX + 32]; /* file with the broker's and the workers' stderr, of every start */
    off_t log_start;                /* byte offset at which the last start's lines begin */
};

/* For tests of commands that look for a pool themselves: makes a directory for all temporary files, so that
 * they can be counted and no other pool of the machine is found. environment_close removes it. */
void environment_open(char ret_dir[RUNDIR_PATH_MAX + 1]);
void environment_close(const char *dir);

/* Path of a program or file of the build folder; valid until the next call. */
const char *build_path(const char *name);

/* The model that pool tests serve: made at build time by `quern synth tiny Q8_0`. */
const char *tiny_model(void);

/* A new file that is not a model, which the caller removes; its path is valid until the next call. */
const char *no_model(void);

/* Starts quern-broker MODEL --rundir … plus the arguments, terminated by NULL, and waits until it serves. */
void pool_start(struct pool *pool, const char *model, ...) __attribute__((sentinel));

/* The same without waiting. */
void pool_spawn(struct pool *pool, const char *model, ...) __attribute__((sentinel));

/* Starts a broker that is expected to end by itself within `timeout_s`; returns its exit status (128 +
 * signal). The log stays readable until pool_forget. */
int pool_fails(struct pool *pool, int timeout_s, const char *model, ...) __attribute__((sentinel));

/* Whether the broker has ended, and its status. */
bool pool_ended(struct pool *pool, int *ret_status);

/* Waits until the broker has ended; returns its exit status, or 128 + the signal that ended it. */
int pool_wait(struct pool *pool, int timeout_s);

/* Sends the signal, then waits like pool_wait. */
int pool_stop(struct pool *pool, int signal, int timeout_s);

/* Ends the remaining processes of the pool and removes its directory. */
void pool_forget(struct pool *pool);

/* True if the log contains the text; waits for it up to `timeout_s`. */
bool pool_says(const struct pool *pool, const char *text, int timeout_s);

/* True if the broker serves: only the broker writes a line that begins with "ready:", when all workers are
 * ready. */
bool pool_is_ready(const struct pool *pool);

/* The whole log, for a failure's message; valid until the next call. */
const char *pool_log(const struct pool *pool);

/* How many lines the log has, except those caused by a busy machine (that the broker stood still). */
unsigned pool_log_lines(const struct pool *pool);

/* Pid of the current broker, the supervisor's child; 0: none. */
pid_t pool_broker_pid(const struct pool *pool);

/* Pids of the pool's live gateways, in no particular order, at most n; returns how many. */
int pool_gateway_pids(const struct pool *pool, pid_t *ret_pids, int n);

/* A TCP port that is currently free together with the next one. */
int pool_free_ports(void);

/* Pids of the live workers, in the order "worker-0" …; 0 where there is none. Reads /proc. */
int pool_worker_pids(const struct pool *pool, pid_t *ret_pids, int n);

/* Runs a program of the build folder with arguments terminated by NULL; its stdout goes to ret_out
 * (zero-terminated, cut at `size`), its stderr to the test's. Returns its exit status. */
int run_program(char *ret_out, size_t size, const char *name, ...) __attribute__((sentinel));

#endif
