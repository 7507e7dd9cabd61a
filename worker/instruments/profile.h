/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSTRUMENTS_PROFILE_H
#define WORKER_INSTRUMENTS_PROFILE_H

/* The next steps of a worker, kernel by kernel.
 *
 *     idle ──profile──▶ asked ──between two steps──▶ measuring ──its last step──▶ done
 *       ▲                          nobody has asked for PROFILE_LEASE_NS            │
 *       └───────────────────────────────────────────────────────────────────────────┘
 *
 * Its steps are slower, and nothing else is different. One at a time; who began it asks on until it is done.
 * What has ended does not begin again.
 */

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
    uint64_t run;       /* its name; while idle, that of the last one, 0: there was none */
    uint64_t bandwidth; /* of the device's memory, bytes a second; 0: not known */
    uint32_t steps, made;
    uint64_t before;                                  /* steps of the engine when it began */
    uint64_t until_ns;                                /* end of the lease */
    struct kernel_profile kernels[PROTO_MAX_KERNELS]; /* [n] once it is done */
    char names[PROTO_MAX_KERNELS][BACKEND_KERNEL_NAME];
    uint32_t n;
    struct error failure; /* why it could not begin; text "": it could */
};

void profiler_init(struct profiler *profiler, struct link *link, struct engine *engine);

/* Answers a `profile`: with profile_ok, or an error. In the middle of a step too. */
void profiler_take(struct profiler *profiler, const struct message *message, uint64_t now);

/* Begins and ends it. Between two steps only; costs a branch while it is idle. */
void profiler_tend_now(struct profiler *profiler, uint64_t now);
static inline void profiler_tend(struct profiler *profiler, uint64_t now)
{
    if (profiler->state != PROFILE_IDLE)
        profiler_tend_now(profiler, now);
}

#endif
