/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROCESSES_CLIENT_H
#define TESTS_PROCESSES_CLIENT_H

/* A real quern-broker with fake workers, and plain sockets to talk to it. */

#include <stdbool.h>
#include <stdint.h>

#include "proto/message.h"
#include "tests/integration/support/pool.h"

#define POOL_ENDPOINT_MAX (RUNDIR_PATH_MAX + 32)

#define PATIENCE_S 30 /* a loaded machine is no failure */

/* Prepares a pool whose workers are the fakes of this folder: its run directory, unless it has one, and in
 * that a model file that holds `behaviour`, whose path is returned; it lives until the next call. */
const char *fake_model(struct pool *pool, const char *behaviour);

struct client {
    void *context, *control, *stream;
    struct message_decoder *decoder;
    struct id128 session;
    bool open;            /* it has a session, whose lease is kept while it waits */
    uint8_t raw[1 << 20]; /* what the last message borrows from */
};

/* Connects without a word. */
void client_connect(struct client *client, const struct pool *pool);

/* Says hello as session `name`, subscribes, and waits for its welcome. */
void client_open(struct client *client, const struct pool *pool, uint8_t name);

/* The second half of client_open, for a client that client_connect connected. */
void client_begin(struct client *client, uint8_t name);

/* Joins until a welcome comes: from then on the stream is heard. */
void client_join(struct client *client);
void client_close(struct client *client);

/* Says hello again as one that tells what it has taken; and tells that it has the answer to `name`. */
void client_tells(struct client *client);
void client_taken(struct client *client, uint8_t name);

void client_send(struct client *client, const struct message *message);

/* The next message on the DEALER; one must come within half a minute. */
struct message client_next(struct client *client);

/* Waits (half a minute) for the next message of this kind on the DEALER, skipping pongs and others; it must
 * come. */
struct message client_expect(struct client *client, enum message_kind kind);

/* The next message on the stream within `ms`; kind MESSAGE_NONE when none came. */
struct message client_frame(struct client *client, int ms);

/* Sends a generate with this prompt under id `name`. */
void client_generate(struct client *client, uint8_t name, const char *prompt,
                     void (*change)(struct generation *));

/* Reads the stream until the end of request `name`, checking that seq and off are whole; returns why. */
enum end_reason client_read(struct client *client, uint8_t name, uint64_t *ret_count,
                            enum proto_error *ret_error);

/* A cancel, replay or attach of request `name`; other kinds come out empty. */
struct message named(enum message_kind kind, uint8_t name);

/* Asks how the pool is. */
struct message client_status(struct client *client);

/* Waits until the pool has so many sessions, and nothing runs. */
void client_await_idle(struct client *client, uint32_t sessions);

/* Waits for an error on the DEALER: which one it is. */
enum proto_error expect_error(struct client *client);

/* The endpoint of a pool's socket ("frontend", "stream"), written into `ret_endpoint`. */
const char *pool_endpoint(const struct pool *pool, const char *name, char ret_endpoint[POOL_ENDPOINT_MAX]);

/* ---- one pool and two clients: all that most tests need ---- */

extern struct pool the_pool;
extern struct client client_a, client_b;

/* Starts `the_pool` with extra arguments, ended by NULL, and waits until it serves; opens `client_a`. */
#define open_pool(...)                                                                                       \
    do {                                                                                                     \
        pool_start(&the_pool, fake_model(&the_pool, "ok"), __VA_ARGS__);                                     \
        client_open(&client_a, &the_pool, 'a');                                                              \
    } while (0)

/* Closes `client_a`; the broker, if it still runs, must end well. */
void close_pool(void);

#endif
