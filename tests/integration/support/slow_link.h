/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SUPPORT_SLOW_LINK_H
#define TESTS_INTEGRATION_SUPPORT_SLOW_LINK_H

/* A slow link between a pool on TCP and its clients: a process that accepts their connections at another
 * address of this machine and forwards data, to all clients together at most this many bytes per second, as a
 * single line would. It buffers little, so excess data waits at the broker. */

#include <stdint.h>
#include <sys/types.h>

struct slow_link {
    pid_t pid; /* 0: none runs */
    struct slow_link_shared {
        uint32_t bytes_per_s;   /* may be changed at any time; 0: nothing is forwarded */
        uint64_t to_clients[2]; /* bytes so far: from the first port, and from the second */
    } * shared;
};

#define SLOW_LINK_HOST "127.0.0.2" /* listening address; the pool is at 127.0.0.1 */

/* Starts the link for `port` and the next port. Fails the running Check test on an error. */
void slow_link_start(struct slow_link *link, int port, uint32_t bytes_per_s);
/* Ends the link and its connections, if it runs. */
void slow_link_stop(struct slow_link *link);

#endif
