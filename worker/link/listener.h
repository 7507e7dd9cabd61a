/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LINK_LISTENER_H
#define WORKER_LINK_LISTENER_H

/* Where a socket of the worker is reached: a unix socket that listens already, made by whoever started the
 * worker and inherited. The worker itself makes none. */

#include "common/error.h"

#define LISTENER_ENDPOINT_MAX 128

struct listener {
    int fd;                               /* -1: libzmq makes one at the endpoint, which is of this process */
    char endpoint[LISTENER_ENDPOINT_MAX]; /* "ipc://PATH", "inproc://NAME" */
};

/* Takes over a descriptor that was inherited, and asks it for its endpoint. 0; -EINVAL when it is no unix
 * socket that listens at a path, -errno, with a reason: then the descriptor stays the caller's. */
int listener_take(int fd, struct listener *ret_listener, struct error *err);

/* Has the socket of libzmq listen there. From then on the descriptor is the socket's, and is closed with it.
 * 0 or -errno with the endpoint. */
int listener_bind(const struct listener *listener, void *socket, struct error *err);

#endif
