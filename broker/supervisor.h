/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SUPERVISOR_H
#define BROKER_SUPERVISOR_H

/* The supervisor: keeps a process on each place of the pool, owns the board, and tells of births and deaths
 * whoever asks. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/options.h"
#include "broker/restart.h"
#include "broker/worker.h"
#include "broker/worker_log.h"
#include "proto/board.h"

enum child_state {
    CHILD_WAITING,  /* no process; started at start_at */
    CHILD_STARTING, /* a process that is not ready */
    CHILD_READY,
    CHILD_FAILED, /* no process, and there will be none: `reason` says why */
    CHILD_GONE,   /* ended because we asked */
    CHILD_STATE_COUNT
};
const char *child_state_name(enum child_state state);

struct child {
    enum child_state state;
    pid_t pid;
    uint32_t incarnation;
    uint64_t start_at; /* clock_ns */
    struct restart restart;
    struct stall stall;
    bool stalled; /* killed by us, for that */
    bool left;    /* its last process ended by itself, with status 0: somebody told it to */
    struct worker_log log;
    char stream[WORKER_ENDPOINT_MAX]; /* endpoint of the incarnation's stream */
    char reason[512];                 /* of its last death */
};

struct supervisor {
    const struct options *options;
    char program[PATH_MAX];
    const char *worker_link; /* endpoint */
    uint64_t boot;
    int rundir_fd;
    int board_fd;
    struct board *board;
    uint32_t n;
    bool stopping; /* nothing is started any more */
    struct child children[WORKER_MAX];
};

/* Creates the board; starts nothing yet. `rundir_fd`: the run directory, where workers bind their streams.
 * That and the pointers outlive the supervisor. 0 or -errno with the reason. */
int supervisor_init(struct supervisor *supervisor, const struct options *options, const char *worker_link,
                    int rundir_fd, uint64_t boot, struct error *err);

/* Starts a process that is due. False when none is; *ret_index: its place, whose state is CHILD_STARTING, or
 * what a death leads to when it could not be started. */
bool supervisor_start_next(struct supervisor *supervisor, uint64_t now, uint32_t *ret_index);

/* When the next start is due; UINT64_MAX when none is. */
uint64_t supervisor_next(const struct supervisor *supervisor);

/* Takes the end of a dead child. False when there is none; children[*ret_index].reason says why it died, its
 * state what comes next. */
bool supervisor_reap_next(struct supervisor *supervisor, uint64_t now, uint32_t *ret_index);

/* Takes what workers wrote to stderr, and passes it on. */
void supervisor_read_logs(struct supervisor *supervisor, uint64_t now);

/* The worker on this place is ready. */
void supervisor_ready(struct supervisor *supervisor, uint32_t index, uint64_t now);

/* Kills a worker that is ready or loads and makes no progress; `heard_ns` is its last message. */
void supervisor_watch(struct supervisor *supervisor, uint32_t index, uint64_t heard_ns, uint64_t now);

/* Counts the time without progress from now on: we stood still ourselves. */
void supervisor_stood_still(struct supervisor *supervisor, uint64_t now);

/* Kills the worker on this place, whose death is then reported like any other. */
void supervisor_kill(struct supervisor *supervisor, uint32_t index);

/* Sends the signal to all that live; from then on nothing is started. */
void supervisor_stop(struct supervisor *supervisor, int signal);
uint32_t supervisor_alive(const struct supervisor *supervisor);

/* The process of this place was waited for elsewhere: forgets it and removes its socket. */
void supervisor_forget(struct supervisor *supervisor, uint32_t index);

/* True when every place failed for good. */
bool supervisor_all_failed(const struct supervisor *supervisor);

/* A consistent copy of a place's slot of the board; zeros when it cannot be read. */
void supervisor_snapshot(const struct supervisor *supervisor, uint32_t index,
                         struct board_snapshot *ret_snapshot, uint64_t *ret_steps);

/* Frees the board and the pipes; the children must be gone. */
void supervisor_deinit(struct supervisor *supervisor);

#endif
