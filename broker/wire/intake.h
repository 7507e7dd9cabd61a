/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_INTAKE_H
#define BROKER_WIRE_INTAKE_H

/* Bounds the memory that clients can take by sending.
 *
 * libzmq bounds the size of a message and the number of messages of a connection, but neither the parts of a
 * message nor the bytes of all connections, and it keeps every subscription, even refused ones. So bytes are
 * counted where they are read, and a connection that exceeds a bound is closed. Linking this module is
 * enough: it replaces listen(2), recv(2), send(2) and close(2). Any thread may call these functions. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of all clients: messages that are under way or not yet taken. */
#define INTAKE_MAX_BYTES ((size_t)256 << 20)
/* Of one connection: what libzmq reads ahead, and the message under way. */
#define INTAKE_MAX_AHEAD            8  /* messages; the socket's receive high-water mark */
#define INTAKE_MAX_PARTS            16 /* of a message; requests have one */
#define INTAKE_MAX_CONNECTION_BYTES ((size_t)48 << 20)

/* A connection to the stream subscribes once. libzmq's memory for a subscription is up to two hundred times
 * its bytes, and adding and removing it takes the loop's time. So each connection may send what one
 * subscription takes, handshake included, and beyond that shares a common allowance. */
#define INTAKE_SUBSCRIBER_BYTES       136 /* of 119 to 132 in the clear */
#define INTAKE_SUBSCRIBER_CURVE_BYTES 640 /* of 612 to 625 encrypted */
#define INTAKE_MAX_SUBSCRIBER_BYTES   ((size_t)16 << 10)
#define INTAKE_MAX_SUBSCRIPTION_BYTES ((size_t)256 << 10) /* held */
#define INTAKE_SUBSCRIPTION_BURST     ((size_t)64 << 10)  /* at once, and then */
#define INTAKE_SUBSCRIPTION_BYTES_A_S ((uint64_t)4 << 10)

/* Of that allowance, what the connections of one client key may use together, so that opening more of them
 * gains nothing. */
#define INTAKE_MAX_KEY_BYTES ((size_t)64 << 10) /* held */
#define INTAKE_KEY_BURST     ((size_t)16 << 10) /* at once, and then */
#define INTAKE_KEY_BYTES_A_S ((uint64_t)1 << 10)

/* A descriptor from here on is not counted, so nothing that counts may be accepted there. */
#define INTAKE_MAX_FILES 65536

enum intake_kind {
    INTAKE_ANYTHING, /* not counted */
    INTAKE_MESSAGES,
    INTAKE_MESSAGES_CURVE, /* the same, of clients that have to be let in */
    INTAKE_SUBSCRIPTIONS,
    INTAKE_SUBSCRIPTIONS_CURVE,
    INTAKE_SUBSCRIPTIONS_KEYS, /* the same, of clients with keys */
};

/* What is sent on connections to the listeners that are made from now on. */
void intake_listen_for(enum intake_kind kind);

/* Another descriptor of the listener that was made last, for one more socket that takes connections from it:
 * `shard` 1 … INTAKE_MAX_SHARDS − 1, the first is 0. The caller's to close. -errno. */
#define INTAKE_MAX_SHARDS 32
int intake_share_listener(unsigned shard);

/* Whether a connection that waits is this listener's: of those who share it, the one whose shard has the
 * fewest subscribers takes it. */
bool intake_is_next(int listener);

/* A connection was accepted. */
void intake_accepted(int fd, int listener);

/* The broker took a message of so many bytes, and has it no longer. `fd`: the connection's, which libzmq
 * gives with the message; -1 where it gives none. */
void intake_taken(int fd, size_t bytes);

/* The broker took all messages that were there. */
void intake_emptied(void);

/* Subscribers whose connections ended are let go so many at once, the others when the loop has caught up with
 * those. For each that goes libzmq looks through the subscriptions of its shard, and for those that go
 * together in a single call: 0.5 s of the loop for 500 of one shard, 2.1 s for 1,000, 8.3 s for 2,000. */
#define INTAKE_ENDS_AT_ONCE 16
void intake_caught_up(void);

/* Whether the connection that a subscription came from, as libzmq gives it with the message, still stands. */
bool intake_stands(int fd);

/* The connection is that of a client with this key, as a message of it said, and counts for that from now on.
 */
void intake_owned(int fd, uint32_t key);

/* The same of a key that was taken away: closes the connection, if it is known to be that client's. */
void intake_unwanted(int fd, uint32_t key);

/* The loop took a subscription of this connection, or the end of one, which counts for its key. With the
 * connection all of its subscriptions end. */
void intake_subscribed(int fd, bool begins);

/* How many subscriptions the connections of this key have. */
uint32_t intake_subscriptions_of(uint32_t key);

/* Closes the connection, which its client then opens anew and says again what it had said. */
void intake_again(int fd);

/* Closes the connections whose keys `stays` denies, and those of which several are said: one descriptor may
 * have been two connections by the time their messages are read. */
void intake_close_owned(bool (*stays)(const void *arg, uint32_t key), const void *arg);

/* An unused connection holds a descriptor that others need: one to the frontend by which no session has said
 * anything for so long, one to the stream that has not subscribed by then. A client with a session sends
 * something every second. */
#define INTAKE_UNUSED_S 60

/* A session said something by this connection. */
void intake_used(int fd, uint64_t now);

/* Closes those that were not used. Not before INTAKE_UNUSED_S after the broker stood still: from now on. Now
 * and then. */
void intake_close_unused(uint64_t now);
void intake_stood_still(uint64_t now);

/* For what a connection was closed. */
enum intake_reason {
    INTAKE_OTHER, /* nothing that it sent, or did not */
    INTAKE_NO_ZMTP,
    INTAKE_PARTS,
    INTAKE_CONNECTION_BYTES,
    INTAKE_ALL_BYTES,
    INTAKE_SUBSCRIPTIONS_BYTES,
    INTAKE_KEY_BYTES,
    INTAKE_NO_KEY,
    INTAKE_NOT_LET_IN,
    INTAKE_TIMED_PING,
    INTAKE_UNUSED,
    INTAKE_REASONS
};

/* How many connections were closed so far, for each reason. */
void intake_closed(uint64_t ret_closed[INTAKE_REASONS]);

#endif
