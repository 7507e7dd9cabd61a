/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_POOL_POOL_H
#define CLIENT_COMMAND_POOL_POOL_H

/* The pool of a verb: a given one, the running one, or a private one for the duration of the verb. */

#include <stdbool.h>
#include <stdint.h>

#include <quern.h>
#include "common/error.h"

struct pool;

struct pool_options {
    const char *connect;    /* an endpoint; or NULL */
    const char *server_key; /* of a pool that encrypts: its public key, or a file that holds it; or NULL */
    const char *client_key; /* the client's certificate there, with its secret key; or NULL */
    const char *model;      /* a private pool with this model; or NULL */
    /* For a private pool; passed to the broker. NULL or 0: its defaults, except one worker. */
    const char *device;
    uint32_t workers, context, slots, kv_blocks, threads;
    uint32_t prefix_store; /* MiB */
    bool has_frame_us;
    uint32_t frame_us;
};

/* Connects. With neither `connect` nor `model`: to the pool of the default run directory if one runs there,
 * else to a private pool (private_pool.h) with $QUERN_MODEL or the model shipped with the program. Waits
 * until the pool has its model, with a progress bar on a terminal. -errno with a reason; -EINTR if the user
 * interrupted. */
int pool_open(const struct pool_options *options, struct pool **ret_pool, struct error *err);

/* Only connects, like quern_connect, with keys as above. */
int pool_connect(const char *connect, const char *server_key, const char *client_key,
                 struct quern **ret_client, struct error *err);

/* The connection, owned by the pool. */
struct quern *pool_client(struct pool *pool);

/* Closes the connection, ends a private pool and removes its directory. Takes NULL; returns NULL. */
struct pool *pool_close(struct pool *pool);

#endif
