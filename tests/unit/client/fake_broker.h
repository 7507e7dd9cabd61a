/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CLIENT_FAKE_BROKER_H
#define TESTS_UNIT_CLIENT_FAKE_BROKER_H

/* A broker that does what a test tells it: opens sessions properly, and for a generate plays a script of what
 * it puts on the stream. Whatever the script leaves out is in its journal, and comes by replay. A thread of
 * the test. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/rundir.h"

/* Steps of a script: a frame's number (0 …), or one of these. */
enum {
    STEP_STOP = -1,         /* the script ends */
    STEP_END = -2,          /* `end` on the DEALER */
    STEP_STALE = -3,        /* a frame of an older epoch with ids that must not be seen */
    STEP_AFTER_REPLAY = -4, /* what follows is published when a replay was asked for, before it is answered */
    STEP_MOVE = -5,         /* the epoch grows */
    STEP_FORGET = -6,       /* the broker restarts: another boot, no session known */
};

struct fake_config {
    int n_frames;          /* of a request's output; the last carries the end */
    const int *script;     /* ends with STEP_STOP */
    int page_frames;       /* frames of one page of a replay */
    bool forgets_requests; /* after STEP_FORGET: attach is answered with unknown_request */
    const char *refusal;   /* a generate is answered with this error */
    bool silent;           /* answers nothing but the opening */
    int welcomes_lost;     /* so many joins go without a welcome */
};

struct fake_broker;

/* Starts; `folder` is its run directory. */
struct fake_broker *fake_broker_new(const struct fake_config *config, char ret_folder[RUNDIR_PATH_MAX + 1]);
void fake_broker_free(struct fake_broker *broker);

/* Its run directory. */
const char *fake_broker_folder(const struct fake_broker *broker);

/* How many messages of a kind it got. */
int fake_broker_count(const struct fake_broker *broker, const char *kind);

#endif
