/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SUPPORT_SLOW_LINK_H
#define TESTS_INTEGRATION_SUPPORT_SLOW_LINK_H

/* A slow link between a pool on TCP and its clients: a process that takes their connections at another
 * address of this machine and passes on what comes, to the clients no more than so many bytes a second over
 * all of them, as one line would. It holds little itself, so what does not fit waits with the broker. */

#include <stdint.h>
#include <sys/types.h>

struct slow_link {
    pid_t pid; /* 0: none runs */
    struct slow_link_shared {
        uint32_t bytes_per_s;   /* may be changed at any time; 0: nothing is passed on */
        uint64_t to_clients[2]; /* bytes so far: from the first port, and from the second */
    } * shared;
};

#define SLOW_LINK_HOST "127.0.0.2" /* where it listens; the pool is at 127.0.0.1 */

/* Begins to stand before `port` and the next one. Fails the running Check test when it cannot. */
void slow_link_start(struct slow_link *link, int port, uint32_t bytes_per_s);
/* Ends it, and its connections. One that does not run is well. */
void slow_link_stop(struct slow_link *link);

#endif
