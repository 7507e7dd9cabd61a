/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_INTAKE_H
#define BROKER_WIRE_INTAKE_H

/* Bounds the memory that clients can take by sending.
 *
 * libzmq bounds the size of a message and the number of messages of a connection, but neither the parts of a
 * message nor the bytes of all connections, and it keeps every subscription, even refused ones. So bytes are
 * counted as they are read, and a connection that exceeds a bound is closed. Linking this module is enough:
 * it replaces listen(2), recv(2), send(2) and close(2). Any thread may call these functions. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For all clients together: messages being received or not yet taken. */
#define INTAKE_MAX_BYTES ((size_t)256 << 20)
/* For one connection: what libzmq reads ahead, and the message being received. */
#define INTAKE_MAX_AHEAD            8  /* messages; the socket's receive high-water mark */
#define INTAKE_MAX_PARTS            16 /* of a message; requests have one */
#define INTAKE_MAX_CONNECTION_BYTES ((size_t)48 << 20)

/* A connection to the stream subscribes once. libzmq's memory for a subscription is up to two hundred times
 * its bytes, and adding and removing it takes the loop's time. So each connection may send the bytes of one
 * subscription, handshake included; anything beyond comes out of a common allowance. */
#define INTAKE_SUBSCRIBER_BYTES       136 /* of 119 to 132 in the clear */
#define INTAKE_SUBSCRIBER_CURVE_BYTES 640 /* of 612 to 625 encrypted */
#define INTAKE_MAX_SUBSCRIBER_BYTES   ((size_t)16 << 10)
#define INTAKE_MAX_SUBSCRIPTION_BYTES ((size_t)256 << 10) /* held */
#define INTAKE_SUBSCRIPTION_BURST     ((size_t)64 << 10)  /* at once; then, per second: */
#define INTAKE_SUBSCRIPTION_BYTES_A_S ((uint64_t)4 << 10)

/* The part of that allowance that all connections of one client key may use together, so that opening more of
 * them gains nothing. */
#define INTAKE_MAX_KEY_BYTES ((size_t)64 << 10) /* held */
#define INTAKE_KEY_BURST     ((size_t)16 << 10) /* at once; then, per second: */
#define INTAKE_KEY_BYTES_A_S ((uint64_t)1 << 10)

/* Descriptors from here on are not counted, so counted connections must be below. */
#define INTAKE_MAX_FILES 65536

enum intake_kind {
    INTAKE_ANYTHING, /* not counted */
    INTAKE_MESSAGES,
    INTAKE_MESSAGES_CURVE, /* the same, from clients that authenticate first */
    INTAKE_SUBSCRIPTIONS,
    INTAKE_SUBSCRIPTIONS_CURVE,
    INTAKE_SUBSCRIPTIONS_KEYS, /* the same, from clients that each have a key */
};

/* The kind of connections to the listeners created from now on. */
void intake_listen_for(enum intake_kind kind);

/* Makes another descriptor of the last created listener, for one more socket that accepts its connections.
 * `shard` is 1 … INTAKE_MAX_SHARDS − 1; the listener's own is 0. Returns the descriptor, which the caller
 * closes, or -errno. */
#define INTAKE_MAX_SHARDS 32
int intake_share_listener(unsigned shard);

/* Whether this listener should accept a waiting connection: of several listeners that share it, the one whose
 * shard has the fewest subscribers. */
bool intake_is_next(int listener);

/* A connection was accepted. */
void intake_accepted(int fd, int listener);

/* The broker has taken and freed a message of this many bytes. `fd`: the descriptor of its connection, which
 * libzmq gives with the message; -1: it gave none. */
void intake_taken(int fd, size_t bytes);

/* The broker has taken all available messages. */
void intake_emptied(void);

/* When subscribers' connections end, libzmq sees this many ends at once, and further ones when the loop has
 * caught up. For each, libzmq goes through the subscriptions of its shard; ends that come together are
 * handled in a single call: 0.5 s of the loop for 500 of one shard, 2.1 s for 1,000, 8.3 s for 2,000. */
#define INTAKE_ENDS_AT_ONCE 16
void intake_caught_up(void);

/* Whether the connection of a subscription, as libzmq gives it with the message, is still open. */
bool intake_stands(int fd);

/* A message showed that the connection belongs to a client with this key: it counts for the key from now
 * on. */
void intake_owned(int fd, uint32_t key);

/* The same for a removed key: closes the connection if it is known to belong to that client. */
void intake_unwanted(int fd, uint32_t key);

/* The loop took a subscription of this connection, or the end of one; it counts for the connection's key.
 * When the connection ends, so do all its subscriptions. */
void intake_subscribed(int fd, bool begins);

/* How many subscriptions the connections of this key have. */
uint32_t intake_subscriptions_of(uint32_t key);

/* Closes the connection; its client opens it again and repeats its subscriptions. */
void intake_again(int fd);

/* Closes connections whose key `stays` rejects, and those with messages of several keys: by the time messages
 * are read, a descriptor may have belonged to two connections. */
void intake_close_owned(bool (*stays)(const void *arg, uint32_t key), const void *arg);

/* Unused connections hold descriptors that others need. After this time a connection to the frontend is
 * unused if no session sent a message on it (clients with a session send one every second), and one to the
 * stream if it has not subscribed. */
#define INTAKE_UNUSED_S 60

/* A session's message came on this connection. */
void intake_used(int fd, uint64_t now);

/* Closes unused connections; call it periodically. intake_stood_still: the broker stood still until now, so
 * the time starts again. */
void intake_close_unused(uint64_t now);
void intake_stood_still(uint64_t now);

/* Why a connection was closed. */
enum intake_reason {
    INTAKE_OTHER, /* for a reason other than its messages */
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

/* The number of connections closed so far, for each reason. */
void intake_closed(uint64_t ret_closed[INTAKE_REASONS]);

#endif
