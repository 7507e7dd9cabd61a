/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LINKS_ZAP_H
#define BROKER_LINKS_ZAP_H

/* Decides which clients may connect over TCP: libzmq asks about each connection that has proven its key (ZAP,
 * RFC 27), and the folder of keys decides. Messages of the connection then carry the key's number. */

#include <stdbool.h>
#include <stdint.h>

#include <zmq.h>

#include "broker/books/client_keys.h"
#include "common/error.h"
#include "common/system/socket_news.h"

struct zap {      /* zeroed: not in use */
    void *socket; /* polled by the loop */
    struct socket_news news;
    struct client_keys *keys; /* the caller's */
    uint64_t refused, said;   /* rejected connections; of those, logged ones */
    uint64_t said_ns;
    char from[64]; /* the address of the last one */
};

/* Answers from `keys` for all sockets of the context given to zap_guard. Call it before they are bound, and
 * zap_deinit after they are closed. 0 or -errno. */
int zap_init(struct zap *zap, void *context, struct client_keys *keys, struct error *err);
void zap_deinit(struct zap *zap);

/* Endpoints that this socket binds from now on accept only known keys. 0 or -errno. */
int zap_guard(void *socket, struct error *err);

/* Answers one question; false: there is none. */
bool zap_answer(struct zap *zap);

/* Logs rejected clients, at most once a second. */
void zap_report(struct zap *zap, uint64_t now);

/* The number of the sender's key; 0: it has none, as in the run directory. */
uint32_t zap_key_of(zmq_msg_t *message);

#endif
