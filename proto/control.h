/* SPDX-License-Identifier: MIT */
#ifndef PROTO_CONTROL_H
#define PROTO_CONTROL_H

/* Orders to a running pool: records of fixed size, sent to the supervisor's SOCK_SEQPACKET socket
 * RUNDIR/control. Anyone who can enter the run directory may send them.
 *
 *     quern reload, scale, drain, undrain ──request──▶ supervisor
 *                  ◀──progress, at each step and once a second; then done or failed──
 *
 * One order runs at a time, and it runs to its end even if its client disconnects. If the connection closes
 * without a final report, the pool has ended.
 *
 * A record of another version is answered with `failed`; a report's layout is the same in all versions. */

#include <stdint.h>

#define CONTROL_VERSION  1u
#define CONTROL_NAME     "control"
#define CONTROL_TEXT_MAX 512
#define CONTROL_EVERY_MS 1000 /* between reports */

enum control_kind {
    /* Replaces the workers one by one, then the broker and the gateway, with the currently installed
     * programs. */
    CONTROL_RELOAD = 1,
    CONTROL_RELOAD_GATEWAY, /* only the gateway */
    /* These are followed by a number. CONTROL_RELOAD_CONFIG rereads the configuration file, then does
       CONTROL_RELOAD. */
    CONTROL_RELOAD_CONFIG, /* 0 */
    CONTROL_SCALE,         /* the new number of workers */
    CONTROL_DRAIN,         /* a worker: hands over its requests and ends */
    CONTROL_UNDRAIN        /* a drained worker: is started again */
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
