/* SPDX-License-Identifier: MIT */
#ifndef PROTO_CONTROL_H
#define PROTO_CONTROL_H

/* Orders to a running pool: records of fixed size on RUNDIR/control, a socket of the supervisor that keeps
 * their bounds (SOCK_SEQPACKET). Anyone who can enter the run directory may send them.
 *
 *     quern reload, scale, drain, undrain ──request──▶ supervisor
 *                  ◀──progress, at each step and once a second; then done or failed──
 *
 * One order runs at a time, and to its end even if no one listens any more. The end of the connection without
 * a last report is the end of the pool.
 *
 * Another version of these records is answered by a report of `failed`, whose layout is the same in all. */

#include <stdint.h>

#define CONTROL_VERSION  1u
#define CONTROL_NAME     "control"
#define CONTROL_TEXT_MAX 512
#define CONTROL_EVERY_MS 1000 /* between reports */

enum control_kind {
    /* Replace the workers one by one, then broker and gateway: by the programs that stand there now. */
    CONTROL_RELOAD = 1,
    CONTROL_RELOAD_GATEWAY, /* the gateway alone */
    /* As CONTROL_RELOAD, after the file of settings was read anew. These have a number behind the kind. */
    CONTROL_RELOAD_CONFIG, /* 0 */
    CONTROL_SCALE,         /* how many workers there are to be */
    CONTROL_DRAIN,         /* of a worker, which hands over what it has and ends */
    CONTROL_UNDRAIN        /* of a worker that was drained, which is started again */
};

struct control_request {
    uint32_t version;
    uint32_t kind; /* enum control_kind */
};

struct control_numbered_request {
    struct control_request request;
    uint32_t number;
};

enum control_result { CONTROL_PROGRESS = 1, CONTROL_DONE, CONTROL_FAILED };

struct control_report {
    uint32_t version;
    uint32_t result; /* enum control_result; after DONE or FAILED the supervisor closes the connection */
    char text[CONTROL_TEXT_MAX]; /* for people; zero-terminated, one line */
};

#endif
