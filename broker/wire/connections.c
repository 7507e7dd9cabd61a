/* SPDX-License-Identifier: MIT */
/* The bound on connections.
 *
 * libzmq accepts whoever comes, on its own thread, and has no bound to set. Out of descriptors its ipc
 * listener ends the process, its tcp listener spins on the connection that it cannot take, and the broker
 * could not start a worker any more. Anyone who may connect could bring that about, and so could a thousand
 * honest clients under a limit of 1,024.
 *
 * So libzmq's accept4 is ours. A new descriptor is the lowest that is free: when it lies beyond the bound,
 * all below are taken, and the connection is one too many. It is closed, and libzmq told that its peer went
 * away, which it is used to. The bound is derived from the limit each time.
 *
 * libzmq's thread makes and ends connections faster than the loop learns of them, whose part in each is
 * larger. So it takes only so many until the loop has caught up; the kernel lets the others wait. Without
 * that, clients that came and went made a backlog of seconds. */

#include "broker/wire/connections.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker/wire/intake.h"
#include "broker/wire/reader.h"

/* Twice what the most sessions need, with a connection each to frontend and stream. */
#define FILES_WANTED ((rlim_t)INTAKE_MAX_FILES)

/* Of our own: sockets and pipes of workers, the board, what libzmq needs for itself. */
#define RESERVE_MAX 512

/* Until the loop has caught up: some milliseconds of its time. */
#define AT_ONCE 64

static atomic_uint accepted; /* since the loop had caught up */

static uint32_t bound(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    rlim_t files = limit.rlim_cur < FILES_WANTED ? limit.rlim_cur : FILES_WANTED;
    rlim_t reserve = files / 4 < RESERVE_MAX ? files / 4 : RESERVE_MAX;
    return (uint32_t)(files - reserve);
}

uint32_t connections_raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < FILES_WANTED) {
        limit.rlim_cur = limit.rlim_max < FILES_WANTED ? limit.rlim_max : FILES_WANTED;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    return bound();
}

void connections_caught_up(void)
{
    atomic_store(&accepted, 0);
    intake_caught_up();
}

int accept4(int listener, struct sockaddr *address, socklen_t *address_len, int flags)
{
    if (atomic_load(&accepted) >= AT_ONCE) {
        reader_pause();
        errno = EAGAIN;
        return -1;
    }
    if (!intake_is_next(listener)) {
        errno = EAGAIN; /* another of those that share it is told too */
        return -1;
    }
    int fd = (int)syscall(SYS_accept4, listener, address, address_len, flags);
    if (fd < 0 && errno == EMFILE)
        errno = ECONNABORTED;
    if (fd < 0 || (uint32_t)fd < bound()) {
        if (fd >= 0)
            atomic_fetch_add(&accepted, 1);
        intake_accepted(fd, listener);
        return fd;
    }
    close(fd);
    errno = ECONNABORTED;
    return -1;
}
