/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_PLACES_H
#define SUPERVISOR_PLACES_H

/* The places of the pool. Each keeps one worker process running, with a slot of the board. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/settings/options.h"
#include "proto/board.h"
#include "proto/supervision.h"
#include "supervisor/children/life.h"
#include "supervisor/children/restart.h"
#include "supervisor/children/worker_log.h"

const char *place_state_name(enum place_state state);

struct place {
    struct place_record record; /* as sent to the broker */
    struct board_slot *slot;
    int slot_fd;
    bool changed; /* the record has not been sent since its last change */
    struct restart restart;
    struct stall stall;
    struct life life;    /* of a process on trial */
    uint32_t stalled_ms; /* how long it made no progress before it was killed for that; 0: it was not */
    uint64_t replace_by; /* clock_ns when a process that was told to leave is killed; 0: it was not told */
    bool drained;        /* by the owner's order: no process is started there */
    bool on_trial;       /* the first process of a program installed since the last one started */
    struct worker_log log;
};

struct places {
    const struct options *options;
    char program[PATH_MAX];
    int proven_fd;   /* the last program whose workers became ready; -1: it could not be kept */
    bool use_proven; /* the program at the path did not become ready: start the proven one */
    uint64_t boot;   /* in the names of their doors */
    int rundir_fd;
    int store_fd; /* the prefix store; -1: there is none */
    uint32_t n;
    bool stopping; /* nothing is started any more */
    struct place places[SUPERVISION_PLACES_MAX];
};

/* Creates the slots, and the prefix store if one is wanted; starts nothing yet. `rundir_fd`: the run
 * directory, which contains the workers' doors. It and the options must outlive the places. 0 or -errno with
 * the reason. */
int places_init(struct places *places, const struct options *options, int rundir_fd, uint64_t boot,
                struct error *err);

/* The next place whose process is due to start; NULL if none is. */
struct place *places_due(struct places *places, uint64_t now);

/* Announces the next process before it exists: its incarnation and the paths of its doors. */
void places_announce(struct places *places, struct place *place);

/* Starts the announced process. A failed start counts as a death, unless descriptors or memory ran out; then
 * it is tried again. */
void places_start(struct places *places, struct place *place, uint64_t now);

/* When the next start is due; UINT64_MAX: none is. */
uint64_t places_next(const struct places *places);

/* Collects dead processes. */
void places_reap(struct places *places, uint64_t now);

/* Reads the stderr of workers and passes it on. */
void places_read_logs(struct places *places, uint64_t now);

/* This incarnation is ready, or is to be killed; ignored for other incarnations. */
void places_ready(struct places *places, uint32_t index, uint32_t incarnation, uint64_t now);
void places_kill(struct places *places, uint32_t index, uint32_t incarnation);

/* Uses the program at the path again from now on, even if it failed before. */
void places_try_anew(struct places *places);

/* Replaces the process of this place by one of the program now at the path: tells it to end, and starts the
 * next once it has ended. Kills it after `patience_ns`. A failed place is tried again. If the next one does
 * not become ready, or hangs before that, the previous program is started again (places_took_back). */
void places_replace(struct places *places, uint32_t index, uint64_t patience_ns, uint64_t now);

/* Takes the place out of service: tells its process to end, and starts none until places_put_back. Otherwise
 * like places_replace. */
void places_take_out(struct places *places, uint32_t index, uint64_t patience_ns, uint64_t now);
void places_put_back(struct places *places, uint32_t index, uint64_t now);

/* Whether a worker serves in this place and was not told to leave. */
bool places_serves(const struct places *places, uint32_t index);

/* Sets the number of places, 1 … SUPERVISION_PLACES_MAX. New ones wait to be started; removed ones have no
 * process, and may come back. 0 or -errno with the reason, and nothing changed. */
int places_resize(struct places *places, uint32_t n, struct error *err);

/* Whether a new program did not become ready; the previous one is then used until places_try_anew. The
 * record of its place has the reason. */
bool places_took_back(const struct places *places);

/* All places run the program at the path, which is the one to return to from now on. */
void places_prove(struct places *places);

/* Kills workers that make no progress, ready or loading, or do not leave. */
void places_watch(struct places *places, uint64_t now);

/* Restarts the clocks that measure missing progress, because this process itself was stopped. */
void places_stood_still(struct places *places, uint64_t now);

/* Sends the signal to all live processes; from then on none is started. */
void places_stop(struct places *places, int signal);

/* Waits for all live processes, then frees slots and pipes. */
void places_deinit(struct places *places);

#endif
