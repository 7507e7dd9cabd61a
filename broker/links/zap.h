/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LINKS_ZAP_H
#define BROKER_LINKS_ZAP_H

/* Decides who may connect over TCP: libzmq asks about each connection that has proven its key (ZAP, RFC 27),
 * and the folder of keys answers. Messages of such a connection then carry the number of its key. */

#include <stdbool.h>
#include <stdint.h>

#include <zmq.h>

#include "broker/books/client_keys.h"
#include "common/error.h"

struct zap {                  /* zeroed: nobody is asked */
    void *socket;             /* polled by the loop */
    struct client_keys *keys; /* the caller's */
    uint64_t refused, said;   /* connections; of those, told in the log */
    uint64_t said_ns;
    char from[64]; /* the address of the last */
};

/* Asks `keys` for all sockets of the context that zap_guard is called for. It must be there before they are
 * bound and after they are closed. -errno. */
int zap_init(struct zap *zap, void *context, struct client_keys *keys, struct error *err);
void zap_deinit(struct zap *zap);

/* Endpoints that this socket binds from now on accept only known keys. -errno. */
int zap_guard(void *socket, struct error *err);

/* Answers what is asked; false when nothing more is. */
bool zap_answer(struct zap *zap);

/* Logs refused clients, at most once a second. */
void zap_report(struct zap *zap, uint64_t now);

/* The number of the sender's key; 0: sent without one, from the run directory. */
uint32_t zap_key_of(zmq_msg_t *message);

#endif
