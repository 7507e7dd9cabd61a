/* SPDX-License-Identifier: MIT */
#ifndef PROTO_SUPERVISION_H
#define PROTO_SUPERVISION_H

/* The messages between supervisor and broker: records of fixed size over a SOCK_SEQPACKET socket pair, one
 * end of which the broker inherits.
 *
 *     supervisor ──welcome, then the state of every place, and again at each change──▶ broker
 *                ◀──serving · ready · kill · stop───────────────────────────────────
 *                ──leave: another broker takes over (a reload)────────────────────▶
 *                ──the gateway's process, for the status──────────────────────────▶
 *
 * A record describes the current state, not an event: only the last of several changes is sent. So records do
 * not accumulate while a broker is stopped, and a restarted broker learns everything. When the connection
 * closes, the other process has ended. */

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define SUPERVISION_VERSION      5u
#define SUPERVISION_PLACES_MAX   64
#define SUPERVISION_ENDPOINT_MAX 128
#define SUPERVISION_REASON_MAX   512

enum place_state {
    PLACE_WAITING,  /* no process; one is started at start_at */
    PLACE_STARTING, /* a process is being created, or is not ready yet */
    PLACE_READY,
    PLACE_FAILED, /* no process, and none will be started: `reason` says why */
    PLACE_GONE,   /* no process, because it was told to leave */
    PLACE_STATE_COUNT
};

/* One place of the pool: a worker, through all its successive processes. */
struct place_record {
    uint32_t index;
    uint32_t state;       /* enum place_state */
    uint32_t incarnation; /* of its current or last process; 0 before the first */
    uint32_t pid;         /* 0: none, or being created */
    uint32_t left;        /* its last process was told to exit and did so with status 0 */
    uint32_t unfit;       /* its last process rejected its settings */
    uint64_t start_at;    /* clock_ns */
    char
        link[SUPERVISION_ENDPOINT_MAX]; /* endpoint of the incarnation's link, to which the broker connects */
    char stream[SUPERVISION_ENDPOINT_MAX]; /* endpoint of its stream */
    char reason[SUPERVISION_REASON_MAX];   /* why the last process died */
};

enum news_kind {
    NEWS_WELCOME,
    NEWS_PLACE,
    NEWS_END,
    NEWS_LEAVE,  /* exit with status 0 and leave everything as it is: the next broker takes over */
    NEWS_GATEWAY /* the gateway's process has changed */
};

struct news { /* to the broker */
    uint32_t kind;
    uint32_t version;
    union {
        struct {
            uint64_t boot;
            uint32_t n_places;
            uint32_t board_version; /* BOARD_VERSION; workers could have changed the copy in their slots */
            /* Inherited: the run directory, the vault, the broker's own slot of the board, the workers'. */
            int32_t rundir_fd, vault_fd, turns_fd, slot_fds[SUPERVISION_PLACES_MAX];
        } welcome; /* always first */
        struct place_record place;
        uint32_t signals;     /* NEWS_END: how often the pool was told to end */
        uint32_t gateway_pid; /* NEWS_GATEWAY; 0: none, which a new broker assumes */
    };
};

enum order_kind {
    ORDER_SERVING, /* the broker can be reached: workers may be started */
    ORDER_READY,   /* this incarnation is ready */
    ORDER_KILL,    /* kill this incarnation: it can no longer be used */
    ORDER_STOP     /* end all workers, and start no more */
};

struct order { /* to the supervisor */
    uint32_t kind, index, incarnation;
};

/* Sends a record without waiting. 0; -EAGAIN: the socket is full; -EPIPE: the other end is closed. */
static inline int supervision_send(int fd, const void *record, size_t size)
{
    return send(fd, record, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Receives a record without waiting. 0; -EAGAIN: none is waiting; -EPIPE: the other end is closed; -EBADMSG:
 * it has a different size, so it comes from another build. */
static inline int supervision_receive(int fd, void *ret_record, size_t size)
{
    ssize_t n = recv(fd, ret_record, size, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    return n == 0 ? -EPIPE : (size_t)n == size ? 0 : -EBADMSG;
}

#endif
