/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_DOOR_H
#define TESTS_INTEGRATION_HOSTILE_DOOR_H

/* By which way, and with whose key, somebody comes to a pool: over the sockets of its run directory, or over
 * TCP with CURVE. A wire is a connection that speaks ZMTP by hand, for what no ZeroMQ socket would send; over
 * CURVE it shakes hands and encrypts by hand, too. One process uses a wire. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quern.h>
#include "common/files/certificate.h"
#include "tests/integration/support/pool.h"

enum door_kind {
    DOOR_RUNDIR,
    DOOR_KNOWN_KEY,   /* of the folder of keys that are let in */
    DOOR_UNKNOWN_KEY, /* of no such folder, by one who knows the server's key */
    DOOR_NO_KEY,      /* in the clear, where keys are asked for */
};

/* The keys of a pool on TCP, in files of a folder of their own. Zeroed: it is not on TCP. */
struct door_keys {
    char folder[RUNDIR_PATH_MAX + 8];   /* the server's certificate, "server", and those of strangers */
    char clients[RUNDIR_PATH_MAX + 24]; /* those that it lets in */
    int port;
    struct certificate server;
};

struct door {
    enum door_kind kind;
    char rundir[RUNDIR_PATH_MAX + 1];
    char frontend[RUNDIR_PATH_MAX + 32]; /* endpoint */
    int port;                            /* of the frontend; the stream's is the next */
    struct certificate server, own;
    char own_path[RUNDIR_PATH_MAX + 48];
};

/* Makes the server's keys, beside this run directory, and chooses a port. What fails ends the program, as in
 * pool.h. */
void door_keys_make(struct door_keys *ret_keys, const char *rundir);
void door_keys_remove(struct door_keys *keys);

/* A way into the pool; with a key of a new pair, which has this name, where the kind takes one. */
void door_make(struct door *ret_door, enum door_kind kind, const struct pool *pool,
               const struct door_keys *keys, const char *name);

/* Whether nobody who comes by it may get in. */
bool door_is_shut(const struct door *door);

/* Connects as libquern does. As quern_connect. */
int door_connect(const struct door *door, int timeout_ms, struct quern **ret_client, struct quern_error *err);

/* ---- wires ---- */

struct wire {
    int fd;          /* -1: none */
    bool let_in;     /* the other end said READY */
    bool encrypts;   /* what is sent is a message of CURVE */
    uint8_t key[32]; /* of both ends */
    uint64_t nonce;
};

/* How far a handshake goes. What is not a whole one is left behind as it is. */
enum handshake { SHAKE_GREETING, SHAKE_HELLO, SHAKE_FALSE_INITIATE, SHAKE_ALL };

/* Connects to "frontend" or "stream", without a word. */
struct wire wire_connect(const struct door *door, const char *name);

/* Connects and shakes hands so far, as a socket of this type ("DEALER", "XSUB"). One with a key that is not
 * known, or with none, waits for no answer at the end: it goes on as if it were let in. */
struct wire wire_shake(const struct door *door, const char *name, const char *type, enum handshake far);
struct wire wire_open(const struct door *door, const char *name, const char *type);

/* Sends one frame, or only its header, which promises `len` bytes. False when the other end has closed. */
bool wire_send(struct wire *wire, uint8_t flags, const void *body, size_t len);
bool wire_promise(struct wire *wire, uint8_t flags, uint64_t len);

/* Sends bytes as they are. */
bool wire_write(struct wire *wire, const void *bytes, size_t len);

/* Whether the other end closes within so many milliseconds. What it sends is thrown away, and looked at: a
 * READY sets let_in. */
bool wire_closes(struct wire *wire, int ms);

void wire_close(struct wire *wire);

#endif
