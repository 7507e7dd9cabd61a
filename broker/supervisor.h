/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SUPERVISOR_H
#define BROKER_SUPERVISOR_H

/* The supervisor: keeps a process on each place of the pool, owns the board, and tells the broker of births
 * and deaths. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/options.h"
#include "broker/restart.h"
#include "broker/worker.h"
#include "broker/words.h"
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
    struct words words;
    char stream[WORKER_ENDPOINT_MAX]; /* endpoint of the incarnation's stream */
    char reason[512];                 /* of its last death */
};

/* Called from supervisor_tick and supervisor_reap. */
struct supervisor_hooks {
    void (*started)(void *arg, uint32_t index);
    /* children[index].reason says why; its state says what comes next. */
    void (*died)(void *arg, uint32_t index);
    void *arg;
};

struct supervisor {
    const struct options *options;
    struct supervisor_hooks hooks;
    char program[PATH_MAX];
    const char *backend; /* endpoint */
    uint64_t boot;
    int board_fd;
    struct board *board;
    uint32_t n;
    bool stopping; /* nothing is started any more */
    struct child children[WORKER_MAX];
};

/* Creates the board; starts nothing yet. The pointers outlive the supervisor. 0 or -errno with the reason. */
int supervisor_init(struct supervisor *supervisor, const struct options *options, const char *backend,
                    uint64_t boot, const struct supervisor_hooks *hooks, struct error *err);

/* Starts what is due. */
void supervisor_tick(struct supervisor *supervisor, uint64_t now);

/* When the next start is due; UINT64_MAX when none is. */
uint64_t supervisor_next(const struct supervisor *supervisor);

/* Takes the ends of dead children: after SIGCHLD. */
void supervisor_reap(struct supervisor *supervisor, uint64_t now);

/* The worker on this place is ready. */
void supervisor_ready(struct supervisor *supervisor, uint32_t index, uint64_t now);

/* Kills a ready worker that makes no progress; `heard_ns` is its last message. */
void supervisor_watch(struct supervisor *supervisor, uint32_t index, uint64_t heard_ns, uint64_t now);

/* Counts the time without progress from now on: the broker itself stood still. */
void supervisor_forgive(struct supervisor *supervisor, uint64_t now);

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
