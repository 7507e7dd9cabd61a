/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_INSIDE_H
#define ENGINE_INSIDE_H

/* The parts of an engine, for engine.c and steps.c only. */

#include "engine/delivery.h"
#include "engine/engine.h"
#include "engine/plan.h"
#include "engine/sampling/masks.h"
#include "engine/scheduler.h"

#define MOST_FLIGHTS 2

struct flight {
    struct plan plan;
    uint64_t ticket;
    uint64_t submitted_ns;
};

struct engine {
    struct engine_config config;
    struct backend *backend;
    struct scheduler scheduler;
    struct planner planner;
    struct delivery delivery;
    struct masks *masks;
    uint64_t n_arrived;
    uint32_t n_due;          /* sequences marked since the last check */
    uint64_t first_deadline; /* the earliest of all alive, or earlier; UINT64_MAX: none */

    struct flight flights[MOST_FLIGHTS]; /* a ring of most_flights: n_flights from first_flight */
    uint32_t first_flight, n_flights, most_flights;
    uint64_t last_read_ns;

    struct engine_stats stats;
    struct measures measures;
    const struct engine_observer *observer; /* NULL: none */
    bool profiles;
    enum backend_watch watched; /* what the backend records for those two */
    int failed;                 /* -errno: why, after the device was lost */
    struct error failure;
};

#endif
