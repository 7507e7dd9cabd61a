/* SPDX-License-Identifier: MIT */
/* Calls into libzmq that fail when fault.c is told so. The errors are those that its manual has for a full
 * table, a full queue and a signal. */

#include "tests/processes/faults/fault.h"

#include <errno.h>
#include <poll.h>
#include <zmq.h>

#define WRAP(type, name, ...)                                                                                \
    type __real_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__)

WRAP(void *, zmq_ctx_new, void)
{
    return fault_strikes(FAULT_SOCKETS, "zmq_ctx_new", EMFILE) ? NULL : __real_zmq_ctx_new();
}

WRAP(int, zmq_msg_init_data, zmq_msg_t *message, void *data, size_t len, zmq_free_fn *free, void *hint)
{
    return fault_strikes(FAULT_MEMORY, "zmq_msg_init_data", ENOMEM)
               ? -1
               : __real_zmq_msg_init_data(message, data, len, free, hint);
}

WRAP(int, zmq_msg_init_size, zmq_msg_t *message, size_t len)
{
    return fault_strikes(FAULT_MEMORY, "zmq_msg_init_size", ENOMEM) ? -1
                                                                    : __real_zmq_msg_init_size(message, len);
}

WRAP(void *, zmq_socket, void *context, int type)
{
    return fault_strikes(FAULT_SOCKETS, "zmq_socket", EMFILE) ? NULL : __real_zmq_socket(context, type);
}

WRAP(int, zmq_setsockopt, void *socket, int option, const void *value, size_t len)
{
    return fault_strikes(FAULT_SOCKETS, "zmq_setsockopt", EINVAL)
               ? -1
               : __real_zmq_setsockopt(socket, option, value, len);
}

WRAP(int, zmq_connect, void *socket, const char *endpoint)
{
    return fault_strikes(FAULT_SOCKETS, "zmq_connect", EMFILE) ? -1 : __real_zmq_connect(socket, endpoint);
}

WRAP(int, zmq_bind, void *socket, const char *endpoint)
{
    return fault_strikes(FAULT_SOCKETS, "zmq_bind", EMFILE) ? -1 : __real_zmq_bind(socket, endpoint);
}

WRAP(int, zmq_disconnect, void *socket, const char *endpoint)
{
    return fault_strikes(FAULT_SOCKETS, "zmq_disconnect", ENOENT) ? -1
                                                                  : __real_zmq_disconnect(socket, endpoint);
}

WRAP(int, zmq_socket_monitor, void *socket, const char *endpoint, int events)
{
    return fault_strikes(FAULT_SOCKETS, "zmq_socket_monitor", EMFILE)
               ? -1
               : __real_zmq_socket_monitor(socket, endpoint, events);
}

WRAP(int, zmq_curve_keypair, char *public_key, char *secret_key)
{
    return fault_strikes(FAULT_SOCKETS, "zmq_curve_keypair", ENOTSUP)
               ? -1
               : __real_zmq_curve_keypair(public_key, secret_key);
}

/* The last part that was sent has others behind it. Those libzmq refuses no more: it drops them where the
 * connection is gone. */
static _Thread_local bool amid;

static bool refused(const char *call)
{
    return !amid && fault_strikes(FAULT_SENDING, call, EAGAIN);
}

static int sent(int r, int flags)
{
    if (r >= 0)
        amid = (flags & ZMQ_SNDMORE) != 0;
    return r;
}

WRAP(int, zmq_send, void *socket, const void *data, size_t len, int flags)
{
    return refused("zmq_send") ? -1 : sent(__real_zmq_send(socket, data, len, flags), flags);
}

WRAP(int, zmq_msg_send, zmq_msg_t *message, void *socket, int flags)
{
    return refused("zmq_msg_send") ? -1 : sent(__real_zmq_msg_send(message, socket, flags), flags);
}

WRAP(int, zmq_msg_recv, zmq_msg_t *message, void *socket, int flags)
{
    return fault_strikes(FAULT_RECEIVING, "zmq_msg_recv", EINTR)
               ? -1
               : __real_zmq_msg_recv(message, socket, flags);
}

WRAP(int, poll, struct pollfd *items, nfds_t n, int timeout)
{
    return fault_strikes(FAULT_RECEIVING, "poll", EINTR) ? -1 : __real_poll(items, n, timeout);
}

/* The same, where the compiler knows how many items there is room for. */
WRAP(int, __poll_chk, struct pollfd *items, nfds_t n, int timeout, size_t size)
{
    return fault_strikes(FAULT_RECEIVING, "poll", EINTR) ? -1 : __real___poll_chk(items, n, timeout, size);
}
