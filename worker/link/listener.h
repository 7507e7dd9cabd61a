/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LINK_LISTENER_H
#define WORKER_LINK_LISTENER_H

/* The address of a worker's socket: an inherited Unix socket that already listens. The worker itself creates
 * none. */

#include "common/error.h"

#define LISTENER_ENDPOINT_MAX 128

struct listener {
    int fd;                               /* -1: libzmq creates one at the endpoint, within this process */
    char endpoint[LISTENER_ENDPOINT_MAX]; /* "ipc://PATH", "inproc://NAME" */
};

/* Takes an inherited descriptor, and reads its endpoint. 0; -EINVAL if it is not a Unix socket that listens
 * at a path, or -errno, with a reason: the descriptor then still belongs to the caller. */
int listener_take(int fd, struct listener *ret_listener, struct error *err);

/* Makes the libzmq socket listen there. The descriptor then belongs to the socket, which closes it. 0 or
 * -errno with the endpoint. */
int listener_bind(const struct listener *listener, void *socket, struct error *err);

#endif
