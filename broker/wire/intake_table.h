/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_INTAKE_TABLE_H
#define BROKER_WIRE_INTAKE_TABLE_H

/* The connections that intake.h counts, and what they hold together. For its two halves only: intake.c, by
 * which their bytes pass, and intake_owners.c, where the loop says whose they are. Everything is under the
 * lock, except where a function says otherwise. */

#include <pthread.h>

#include "broker/wire/handshake.h"
#include "broker/wire/intake.h"
#include "broker/wire/ping.h"
#include "broker/wire/subscriber.h"
#include "broker/wire/zmtp.h"

struct connection {
    enum intake_kind kind;
    bool listens, closed;
    enum intake_reason why;      /* it is to be closed */
    bool heard;                  /* the loop took a subscription of it */
    bool ends;                   /* it was seen to be over, and counted */
    uint8_t shard;               /* of the stream */
    struct zmtp zmtp;            /* what is sent on it */
    struct handshake handshake;  /* what we sent, where clients come by CURVE */
    struct ping ping;            /* in that, of a subscriber */
    uint8_t n_parts;             /* of a message, but the last */
    size_t under_way, not_taken; /* bytes of messages */
    uint64_t held_ns;            /* since when, or since a message was taken */
    struct subscriber subscriber;
    uint64_t used_ns; /* when it was accepted, or a session last said something by it */
    uint32_t owner;   /* number of its client's key; 0: not known */
    int next_parted;  /* a descriptor and one; 0: none */
};

struct intake {
    pthread_mutex_t lock;
    enum intake_kind listening_for;
    int last_listener;
    uint32_t shards[INTAKE_MAX_SHARDS]; /* [n_shards], subscribers of each */
    unsigned n_shards;
    int parted, parted_before; /* subscribers' descriptors that are to be closed, see next_parted: since the
                                  loop had caught up, and before */
    int end;                   /* beyond the highest that was accepted */
    size_t held;               /* of all connections, orphans included */
    size_t behind;             /* complete since the loop last saw the end, not taken */
    size_t orphaned, orphaned_before; /* since the loop last saw the end, and before */
    struct subscribers subscribers;
    uint64_t stood_still_ns; /* until then nobody could say anything */
    uint64_t n_closed[INTAKE_REASONS];
};

/* By descriptor. Apart from what is not zero at the start, or the program's file would have all of it. */
extern struct connection intake_table[INTAKE_MAX_FILES];
extern struct intake intake;

/* NULL: not counted. Without the lock it is for the thread that reads the connection, or who made a listener.
 */
struct connection *intake_counted(int fd);

/* The same, and takes the lock. NULL: it has ended before the lock was ours, which it is then too. */
struct connection *intake_lock(int fd);

bool intake_is_subscriber(const struct connection *connection);

/* Bytes of its messages. */
static inline size_t intake_held(const struct connection *connection)
{
    return connection->under_way + connection->not_taken;
}

/* Notes what it is to be closed for. False. */
bool intake_refuse(struct connection *connection, enum intake_reason why);

/* What it holds is held no more, and nothing more is taken from it. Who reads it closes the descriptor. */
void intake_close(struct connection *connection);

#endif
