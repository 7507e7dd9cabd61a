/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHILDREN_GATEWAY_H
#define SUPERVISOR_CHILDREN_GATEWAY_H

/* The gateway of a pool that serves HTTP: a process that is kept running and can be replaced. It is an
 * ordinary client of the pool, so its failures and the broker's do not affect each other.
 *
 * The listening socket is created here once and passed to one gateway after another. So it exists even while
 * no gateway runs, and connections wait meanwhile. */

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/settings/options.h"
#include "common/system/listen.h"
#include "proto/gateway_report.h"
#include "supervisor/children/restart.h"

#define GATEWAY_RETIRED 8 /* replaced gateways that still answer, at once */
#define GATEWAY_POLL    3 /* most descriptors to poll */

struct gateway_process { /* zeroed: none */
    pid_t pid;
    int report_fd; /* on which it reports that it serves, and later that it leaves; 0: nothing more will come
                    */
    bool serves;   /* it has reported that it serves */
};

enum gateway_trial {
    GATEWAY_TRIAL_NONE,
    GATEWAY_TRIAL_WAITS, /* for an earlier gateway to end */
    GATEWAY_TRIAL_RUNS,  /* the next one is not ready yet */
    GATEWAY_TRIAL_YIELD, /* the next one serves, but the old one still accepts connections too */
    GATEWAY_TRIAL_PASSED,
    GATEWAY_TRIAL_FAILED
};

struct gateway_child {
    const struct options *options;
    char program[PATH_MAX];
    int listen_fd;                /* -1: HTTP is not wanted */
    char address[LISTEN_ADDRESS]; /* the address that it is bound to */
    struct gateway_process current, next;
    struct gateway_process leaving; /* told to leave, may still accept connections; also in `retired` */
    struct gateway_retired {
        pid_t pid;           /* 0: none */
        uint64_t give_up_at; /* clock_ns: when it is killed, unless it has ended by itself */
        bool served;         /* so it may still have requests to answer */
    } retired[GATEWAY_RETIRED];
    uint64_t start_at; /* clock_ns, while there is no current one; UINT64_MAX: never */
    struct restart restart;
    bool served; /* some gateway has served, so the configuration can work */
    enum gateway_trial trial;
    uint64_t trial_by;                    /* clock_ns: when the next one is given up on */
    char reason[GATEWAY_REPORT_TEXT_MAX]; /* why the trial failed */
};

/* Finds the program, if HTTP is wanted. 0; -ENOENT if it is missing. The options must outlive the child. */
int gateway_child_init(struct gateway_child *child, const struct options *options, struct error *err);

/* Creates the socket, or takes the one that the service manager passed. Waits a moment for a port that the
 * gateway of a killed pool still holds. 0 or -errno with a reason that names the address. */
int gateway_child_listen(struct gateway_child *child, struct error *err);

/* When the next start or kill is due; UINT64_MAX: none is. */
uint64_t gateway_child_due(const struct gateway_child *child);

/* Starts and kills what is due. */
void gateway_child_turn(struct gateway_child *child, uint64_t now);

/* Adds descriptors to poll, at most GATEWAY_POLL; returns how many. */
nfds_t gateway_child_poll(const struct gateway_child *child, struct pollfd *ret_items);

/* Handles reports and exits. Restarts a gateway that served or was killed. False if the first one exited by
 * itself: it cannot serve as configured, and has logged why. */
bool gateway_child_reap(struct gateway_child *child, uint64_t now);

/* Starts a successor; `trial` reports its progress. The old one is told to leave when the next is ready, and
 * stays if the next one fails. The trial is passed when the old one accepts no more connections: from then on
 * every new connection uses the new keys and certificates. */
void gateway_child_replace(struct gateway_child *child, uint64_t now);

/* Cancels the successor, if there is one, for this reason. */
void gateway_child_give_up_next(struct gateway_child *child, const char *reason);

/* Sends the signal to all gateways and closes the socket; no more are started. */
void gateway_child_stop(struct gateway_child *child, int signal);

/* The same with SIGTERM; kills the gateways after leaving them a moment for their last answers. */
void gateway_child_end(struct gateway_child *child);

#endif
