/* SPDX-License-Identifier: MIT */
#ifndef PROTO_SUPERVISION_H
#define PROTO_SUPERVISION_H

/* What the supervisor and the broker say to each other: records of fixed size over a pair of sockets that
 * keeps their bounds (SOCK_SEQPACKET), whose one end the broker inherits.
 *
 *     supervisor ──welcome, then what every place is like, and again at each change──▶ broker
 *                ◀──serving · ready · kill · stop───────────────────────────────────
 *                ──leave: another broker takes over (a reload)────────────────────▶
 *                ──the gateway's process, for the status──────────────────────────▶
 *
 * A record says how things are, not what happened: when several changes meet, the last one is told. So
 * nothing piles up for a broker that stands still, and one that was started again learns all there is. The
 * end of the connection is the end of the other process. */

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
    PLACE_STARTING, /* a process that is not ready, or is being made */
    PLACE_READY,
    PLACE_FAILED, /* no process, and there will be none: `reason` says why */
    PLACE_GONE,   /* no process, because we asked */
    PLACE_STATE_COUNT
};

/* One place of the pool: a worker's, through all the processes that take it. */
struct place_record {
    uint32_t index;
    uint32_t state;       /* enum place_state */
    uint32_t incarnation; /* of the process that has or had it last; 0 before the first */
    uint32_t pid;         /* 0: none, or it is being made */
    uint32_t left;        /* its last process exited with status 0: it was told to */
    uint32_t unfit;       /* it did not understand what it was told: the settings name what there is not */
    uint64_t start_at;    /* clock_ns */
    char
        link[SUPERVISION_ENDPOINT_MAX]; /* endpoint of the incarnation's link, to which the broker connects */
    char stream[SUPERVISION_ENDPOINT_MAX]; /* and of its stream */
    char reason[SUPERVISION_REASON_MAX];   /* of its last death */
};

enum news_kind {
    NEWS_WELCOME,
    NEWS_PLACE,
    NEWS_END,
    NEWS_LEAVE,  /* the broker ends by itself, with status 0 and all as it is: the next one takes over */
    NEWS_GATEWAY /* another process is the gateway, or none is */
};

struct news { /* to the broker */
    uint32_t kind;
    uint32_t version;
    union {
        struct {
            uint64_t boot;
            uint32_t n_places;
            uint32_t board_version; /* BOARD_VERSION: slots say nothing that could be believed */
            /* Inherited; of the board the broker's own slot, and those of the workers. */
            int32_t rundir_fd, vault_fd, turns_fd, slot_fds[SUPERVISION_PLACES_MAX];
        } welcome; /* always first */
        struct place_record place;
        uint32_t signals;     /* NEWS_END: how often the pool was told to end */
        uint32_t gateway_pid; /* NEWS_GATEWAY; 0: none. No broker was told of one before */
    };
};

enum order_kind {
    ORDER_SERVING, /* the broker can be reached: workers may be started */
    ORDER_READY,   /* this incarnation is ready */
    ORDER_KILL,    /* this incarnation is of no use any more */
    ORDER_STOP     /* all workers: end, and no others are started */
};

struct order { /* to the supervisor */
    uint32_t kind, index, incarnation;
};

/* Sends a record without waiting. 0; -EAGAIN: the other end has to read first; -EPIPE: it is gone. */
static inline int supervision_send(int fd, const void *record, size_t size)
{
    return send(fd, record, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Receives a record without waiting. 0; -EAGAIN: none is there; -EPIPE: the other end is gone; -EBADMSG: it
 * is of another size, of another build. */
static inline int supervision_receive(int fd, void *ret_record, size_t size)
{
    ssize_t n = recv(fd, ret_record, size, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    return n == 0 ? -EPIPE : (size_t)n == size ? 0 : -EBADMSG;
}

#endif
