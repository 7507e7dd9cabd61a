/* SPDX-License-Identifier: MIT */
/* A bind of libzmq with a descriptor of ours (ZMQ_USE_FD) makes no system call but those that wait for
 * connections, and leaves the path alone at the end. That is why a confined worker needs neither. */

#include "worker/link/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <zmq.h>

static int not_one(int fd, struct error *err)
{
    return error_set(err, -EINVAL, "descriptor %d is not a listening unix socket with a path", fd);
}

int listener_take(int fd, struct listener *ret_listener, struct error *err)
{
    struct sockaddr_un address = {0};
    socklen_t len = sizeof address, int_len = sizeof(int);
    int listens = 0;
    if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_len) < 0)
        return errno == ENOTSOCK ? not_one(fd, err)
                                 : error_set(err, -errno, "descriptor %d: %s", fd, strerror(errno));
    if (address.sun_family != AF_UNIX || !listens || address.sun_path[0] == 0)
        return not_one(fd, err);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return error_set(err, -errno, "descriptor %d: %s", fd, strerror(errno));
    ret_listener->fd = fd;
    snprintf(ret_listener->endpoint, sizeof ret_listener->endpoint, "ipc://%.*s",
             (int)sizeof address.sun_path, address.sun_path);
    return 0;
}

int listener_bind(const struct listener *listener, void *socket, struct error *err)
{
    if ((listener->fd >= 0 && zmq_setsockopt(socket, ZMQ_USE_FD, &listener->fd, sizeof listener->fd) < 0) ||
        zmq_bind(socket, listener->endpoint) < 0)
        return error_set(err, -errno, "%s: %s", listener->endpoint, zmq_strerror(errno));
    return 0;
}
