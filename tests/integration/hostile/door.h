/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_DOOR_H
#define TESTS_INTEGRATION_HOSTILE_DOOR_H

/* The ways to connect to a pool: over the sockets of its run directory, or over TCP with CURVE and some key.
 * A wire is a connection that speaks hand-written ZMTP, to send what no ZeroMQ socket would; with CURVE its
 * handshake and encryption are hand-written, too. Only one process may use a wire. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quern.h>
#include "common/files/certificate.h"
#include "tests/integration/support/pool.h"

enum door_kind {
    DOOR_RUNDIR,
    DOOR_KNOWN_KEY,   /* in the folder of accepted keys */
    DOOR_UNKNOWN_KEY, /* not in that folder, but the client knows the server's key */
    DOOR_NO_KEY,      /* unencrypted, although keys are required */
};

/* The keys of a pool on TCP, in files of a separate folder. Zeroed: the pool is not on TCP. */
struct door_keys {
    char folder[RUNDIR_PATH_MAX + 8];   /* with the server's certificate, "server", and those of strangers */
    char clients[RUNDIR_PATH_MAX + 24]; /* accepted ones */
    int port;
    struct certificate server;
};

struct door {
    enum door_kind kind;
    char rundir[RUNDIR_PATH_MAX + 1];
    char frontend[RUNDIR_PATH_MAX + 32]; /* endpoint */
    int port;                            /* of the frontend; the stream has the next one */
    struct certificate server, own;
    char own_path[RUNDIR_PATH_MAX + 48];
};

/* Makes the server's keys, beside this run directory, and chooses a port. A failure ends the program, as in
 * pool.h. */
void door_keys_make(struct door_keys *ret_keys, const char *rundir);
void door_keys_remove(struct door_keys *keys);

/* Makes a door to the pool; if the kind needs a key, with a new pair of this name. */
void door_make(struct door *ret_door, enum door_kind kind, const struct pool *pool,
               const struct door_keys *keys, const char *name);

/* Whether the pool must reject all clients at this door. */
bool door_is_shut(const struct door *door);

/* Connects with libquern. Results as quern_connect. */
int door_connect(const struct door *door, int timeout_ms, struct quern **ret_client, struct quern_error *err);

/* ---- wires ---- */

struct wire {
    int fd;          /* -1: none */
    bool let_in;     /* the other end has sent READY */
    bool encrypts;   /* data is sent as CURVE messages */
    uint8_t key[32]; /* shared by both ends */
    uint64_t nonce;
};

/* How far a handshake goes. An incomplete handshake is left as it is. */
enum handshake { SHAKE_GREETING, SHAKE_HELLO, SHAKE_FALSE_INITIATE, SHAKE_ALL };

/* Connects to "frontend" or "stream" without sending anything. */
struct wire wire_connect(const struct door *door, const char *name);

/* Connects and does the handshake up to this point, as a socket of this type ("DEALER", "XSUB"). With an
 * unknown key, or none, it does not wait for the last answer and continues as if accepted. */
struct wire wire_shake(const struct door *door, const char *name, const char *type, enum handshake far);
struct wire wire_open(const struct door *door, const char *name, const char *type);

/* Sends one frame, or only its header, which promises `len` bytes. False if the other end has closed. */
bool wire_send(struct wire *wire, uint8_t flags, const void *body, size_t len);
bool wire_promise(struct wire *wire, uint8_t flags, uint64_t len);

/* Sends raw bytes. */
bool wire_write(struct wire *wire, const void *bytes, size_t len);

/* Whether the other end closes within this many milliseconds. Received data is discarded, except that a READY
 * sets let_in. */
bool wire_closes(struct wire *wire, int ms);

void wire_close(struct wire *wire);

#endif
