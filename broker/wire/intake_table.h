/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_INTAKE_TABLE_H
#define BROKER_WIRE_INTAKE_TABLE_H

/* The connections that intake.h counts, and their totals. Private to intake.c, through which their bytes
 * pass, and intake_owners.c, where the loop reports their owners. The lock guards everything unless a
 * function says otherwise. */

#include <pthread.h>

#include "broker/wire/handshake.h"
#include "broker/wire/intake.h"
#include "broker/wire/ping.h"
#include "broker/wire/subscriber.h"
#include "broker/wire/zmtp.h"

struct connection {
    enum intake_kind kind;
    bool listens, closed;
    enum intake_reason why;      /* why it must be closed */
    bool heard;                  /* the loop took a subscription of it */
    bool ends;                   /* its end was noticed and counted */
    uint8_t shard;               /* of the stream */
    struct zmtp zmtp;            /* its incoming bytes */
    struct handshake handshake;  /* our outgoing bytes, with CURVE */
    struct ping ping;            /* heartbeats among its bytes, of a subscriber */
    uint8_t n_parts;             /* of the current message, without the last */
    size_t under_way, not_taken; /* bytes of messages */
    uint64_t held_ns;            /* since when it holds bytes, or when a message was last taken */
    struct subscriber subscriber;
    uint64_t used_ns; /* when it was accepted, or a session's message last came on it */
    uint32_t owner;   /* number of its client's key; 0: unknown */
    int next_parted;  /* a descriptor plus one; 0: none */
};

struct intake {
    pthread_mutex_t lock;
    enum intake_kind listening_for;
    int last_listener;
    uint32_t shards[INTAKE_MAX_SHARDS]; /* [n_shards], subscribers of each */
    unsigned n_shards;
    int parted, parted_before; /* lists (next_parted) of subscribers' descriptors to close: since the loop
                                  last caught up, and before */
    int end;                   /* one more than the highest accepted descriptor */
    size_t held;               /* bytes of all connections, orphans included */
    size_t behind;             /* of messages completed since the loop last emptied its sockets, not taken */
    size_t orphaned, orphaned_before; /* of closed connections: since then, and before */
    struct subscribers subscribers;
    uint64_t stood_still_ns; /* when the broker last stood still */
    uint64_t n_closed[INTAKE_REASONS];
};

/* By descriptor. Separate from struct intake, which is not zero at the start: otherwise the whole table would
 * be stored in the program's file. */
extern struct connection intake_table[INTAKE_MAX_FILES];
extern struct intake intake;

/* The connection or listener; NULL: not counted. Without the lock only the thread that reads the connection,
 * or created the listener, may use it. */
struct connection *intake_counted(int fd);

/* The same, and takes the lock, even if it returns NULL because the connection ended before the lock was
 * held. */
struct connection *intake_lock(int fd);

bool intake_is_subscriber(const struct connection *connection);

/* Bytes of messages that the connection holds. */
static inline size_t intake_held(const struct connection *connection)
{
    return connection->under_way + connection->not_taken;
}

/* Notes why the connection is to be closed. Returns false. */
bool intake_refuse(struct connection *connection, enum intake_reason why);

/* Uncounts the connection; nothing more is read from it. The reading thread closes the descriptor. */
void intake_close(struct connection *connection);

#endif
