/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROCESSES_CLIENT_H
#define TESTS_PROCESSES_CLIENT_H

/* A real quern-broker with fake workers, and plain sockets to talk to it. */

#include <stdbool.h>
#include <stdint.h>

#include "proto/message.h"
#include "tests/integration/support/pool.h"

#define POOL_ENDPOINT_MAX (RUNDIR_PATH_MAX + 32)

#define PATIENCE_S 30 /* so that a loaded machine causes no failure */

/* Prepares a pool whose workers are the fakes of this folder: makes its run directory, unless it has one, and
 * a model file in it that contains `behaviour`. Returns the file's path, valid until the next call. */
const char *fake_model(struct pool *pool, const char *behaviour);

struct client {
    void *context, *control, *stream;
    struct message_decoder *decoder;
    struct id128 session;
    bool open;            /* it has a session, whose lease is renewed while it waits */
    uint8_t raw[1 << 20]; /* memory that the last message borrows */
};

/* Connects without sending anything. */
void client_connect(struct client *client, const struct pool *pool);

/* Sends hello as session `name`, subscribes, and waits for its welcome. */
void client_open(struct client *client, const struct pool *pool, uint8_t name);

/* The second half of client_open, for a client that client_connect connected. */
void client_begin(struct client *client, uint8_t name);

/* Joins until a welcome arrives: from then on it receives the stream. */
void client_join(struct client *client);
void client_close(struct client *client);

/* Sends hello again as a client that reports taken answers; reports that it has the answer to `name`. */
void client_tells(struct client *client);
void client_taken(struct client *client, uint8_t name);

void client_send(struct client *client, const struct message *message);

/* The next message on the DEALER; one must arrive within half a minute. */
struct message client_next(struct client *client);

/* Waits for the next message of this kind on the DEALER, skipping all others; it must arrive within half a
 * minute. */
struct message client_expect(struct client *client, enum message_kind kind);

/* The next message on the stream within `ms`; kind MESSAGE_NONE if none arrived. */
struct message client_frame(struct client *client, int ms);

/* Sends a generate with this prompt under id `name`. */
void client_generate(struct client *client, uint8_t name, const char *prompt,
                     void (*change)(struct generation *));

/* Reads the stream until the end of request `name`, checking that seq and off have no gaps; returns the end's
 * reason. */
enum end_reason client_read(struct client *client, uint8_t name, uint64_t *ret_count,
                            enum proto_error *ret_error);

/* A cancel, replay or attach of request `name`; other kinds are left empty. */
struct message named(enum message_kind kind, uint8_t name);

/* Requests the pool's status. */
struct message client_status(struct client *client);

/* Waits until the pool has this many sessions and nothing runs. */
void client_await_idle(struct client *client, uint32_t sessions);

/* Waits for an error on the DEALER and returns its code. */
enum proto_error expect_error(struct client *client);

/* The endpoint of a pool's socket ("frontend", "stream"), written into `ret_endpoint`. */
const char *pool_endpoint(const struct pool *pool, const char *name, char ret_endpoint[POOL_ENDPOINT_MAX]);

/* ---- one pool and two clients, enough for most tests ---- */

extern struct pool the_pool;
extern struct client client_a, client_b;

/* Starts `the_pool` with extra arguments, terminated by NULL, and waits until it serves; opens `client_a`. */
#define open_pool(...)                                                                                       \
    do {                                                                                                     \
        pool_start(&the_pool, fake_model(&the_pool, "ok"), __VA_ARGS__);                                     \
        client_open(&client_a, &the_pool, 'a');                                                              \
    } while (0)

/* Closes `client_a`; the broker, if it still runs, must end successfully. */
void close_pool(void);

#endif
