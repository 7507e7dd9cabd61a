/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CLIENT_LIB_FAKE_BROKER_H
#define TESTS_UNIT_CLIENT_LIB_FAKE_BROKER_H

/* A scripted broker, run as a thread of the test: it opens sessions properly, and for a generate it plays a
 * script of frames on the stream. Frames that the script leaves out are in its journal, for replays. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/files/rundir.h"

/* Steps of a script: a frame's number (0 …), or one of these. */
enum {
    STEP_STOP = -1,         /* the script ends */
    STEP_END = -2,          /* `end` on the DEALER */
    STEP_STALE = -3,        /* a frame of an older epoch with ids that must not be seen */
    STEP_AFTER_REPLAY = -4, /* the rest is published when a replay is requested, before it is answered */
    STEP_MOVE = -5,         /* the epoch grows */
    STEP_FORGET = -6,       /* the broker restarts: another boot, no session known */
};

struct fake_config {
    int n_frames;           /* of a request's output; the last carries the end */
    const int *script;      /* ends with STEP_STOP */
    int page_frames;        /* frames of one page of a replay */
    const int *next_script; /* after STEP_FORGET, if it differs */
    uint64_t next_boot;     /* then; 0: one more than before */
    bool forgets_requests;  /* after STEP_FORGET: attach is answered with unknown_request */
    const char *refusal;    /* a generate is answered with this error */
    bool silent;            /* answers nothing but the opening */
    int hellos_refused;     /* after STEP_FORGET this many hellos are answered with "overloaded" */
    bool knows_no_ids;      /* a tokenize is answered with "no_worker" */
    bool embeds;        /* the last frame has an embedding, of 0.6 and −0.8, and no frame has ids or text */
    bool no_vector;     /* but the embedding is left out */
    bool no_frames;     /* a replay contains no frames */
    bool no_replays;    /* a replay is not answered */
    bool refuses_first; /* hellos and joins are refused before STEP_FORGET, too */
    bool cancels_unknown; /* a cancel is answered with unknown_request */
    bool says_of;         /* errors name the kind of message that they answer */
    bool accepts_late;    /* a generate is not answered before a cancel has arrived */
    int cancels_lost;     /* this many cancels get lost; further ones are acknowledged */
    uint32_t version;     /* of the protocol; 0: the current one */
    const char *stream;   /* the stream's endpoint that it reports; NULL: the real one */
    const char *tcp;      /* address to bind, as "127.0.0.1"; the folder is then an endpoint */
    bool takes_parts;     /* requests longer than 4,096 bytes arrive in parts, up to 64 KiB */
    int welcomes_lost;    /* this many joins get no welcome */
    int joins_refused;    /* this many joins are answered with "overloaded", after STEP_FORGET or according to
                           * refuses_first
                           */
};

struct fake_broker;

/* Starts the broker; `ret_folder` is its run directory. */
struct fake_broker *fake_broker_new(const struct fake_config *config, char ret_folder[RUNDIR_PATH_MAX + 1]);
void fake_broker_free(struct fake_broker *broker);

/* Its run directory. */
const char *fake_broker_folder(const struct fake_broker *broker);

/* How many messages of a kind it received. */
int fake_broker_count(const struct fake_broker *broker, const char *kind);

/* How many answers were reported to it as taken. */
int fake_broker_taken(const struct fake_broker *broker);

/* The prompt of the last generate, once its request has ended, as "text Hi", "ids 1 2" or "chat user: Hi tool
 * add of 7: 4" (the last with name and call id); then what happens to it without its session: ", cancel" or
 * ", keep 30"; then its other fields: ", salt mine, not cached, tools […], pieces, needs embed". */
const char *fake_broker_prompt(const struct fake_broker *broker);

#endif
