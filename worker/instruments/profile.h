/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSTRUMENTS_PROFILE_H
#define WORKER_INSTRUMENTS_PROFILE_H

/* Profiles the next steps of a worker, kernel by kernel.
 *
 *     idle ──profile──▶ asked ──between two steps──▶ measuring ──its last step──▶ done
 *       ▲                          not asked for during PROFILE_LEASE_NS            │
 *       └───────────────────────────────────────────────────────────────────────────┘
 *
 * The profiled steps are slower, and otherwise unchanged. There is one profile at a time; the client that
 * began it repeats its question until it is done. A finished profile does not begin again. */

#include <stdint.h>

#include "common/clock.h"
#include "engine/engine.h"
#include "proto/message.h"
#include "worker/link/link.h"

#define PROFILE_LEASE_NS (3 * CLOCK_NS_PER_S)

enum profile_state { PROFILE_IDLE, PROFILE_ASKED, PROFILE_MEASURING, PROFILE_DONE };

struct profiler {
    struct link *link;
    struct engine *engine;
    enum profile_state state;
    uint64_t run;       /* number of the profile; while idle, of the last one; 0: none yet */
    uint64_t bandwidth; /* of the device's memory, bytes per second; 0: not known */
    uint32_t steps, made;
    uint64_t before;                                  /* steps of the engine when it began */
    uint64_t until_ns;                                /* end of the lease */
    struct kernel_profile kernels[PROTO_MAX_KERNELS]; /* [n] once it is done */
    char names[PROTO_MAX_KERNELS][BACKEND_KERNEL_NAME];
    uint32_t n;
    struct error failure; /* why it could not begin; text "": it could */
};

void profiler_init(struct profiler *profiler, struct link *link, struct engine *engine);

/* Answers a `profile`: with profile_ok, or an error. Allowed inside a step too. */
void profiler_take(struct profiler *profiler, const struct message *message, uint64_t now);

/* Starts and ends it. Between steps only; costs one branch while it is idle. */
void profiler_tend_now(struct profiler *profiler, uint64_t now);
static inline void profiler_tend(struct profiler *profiler, uint64_t now)
{
    if (profiler->state != PROFILE_IDLE)
        profiler_tend_now(profiler, now);
}

#endif
