/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_BROKER_POOL_H
#define TESTS_UNIT_BROKER_POOL_H

/* A real quern-broker in a run directory of its own, with fake workers, and plain sockets to talk to it. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/rundir.h"
#include "proto/message.h"

#define POOL_ENDPOINT_MAX (RUNDIR_PATH_MAX + 32)

struct pool {
    char rundir[RUNDIR_PATH_MAX + 1];
    char model[RUNDIR_PATH_MAX + 16];
    pid_t pid;
    int out; /* the broker's stderr */
    char said[16384];
    size_t said_len;
};

/* Starts the broker on a model file that holds `behaviour`, with extra arguments (NULL-ended, may be NULL).
 */
void pool_start(struct pool *pool, const char *behaviour, const char *const *arguments);

/* The same in a run directory that exists already. */
void pool_start_in(struct pool *pool, const char *rundir, const char *behaviour,
                   const char *const *arguments);

/* Waits until the broker has said `text`, counted from `from` in pool->said. False after half a minute. */
bool pool_said(struct pool *pool, size_t from, const char *text);

/* Waits for the broker's end: its exit status, or −signal, or −1000 after half a minute. */
int pool_wait(struct pool *pool);

/* Ends the broker with SIGTERM, checks that it leaves nothing behind, and removes the run directory. */
void pool_stop(struct pool *pool);

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
void client_close(struct client *client);

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

/* Reads the stream until the end of request `name`, checking that seq and off are whole; returns the reason.
 */
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

/* The endpoint of a pool's socket ("frontend", "backend"), written into `ret_endpoint`. */
const char *pool_endpoint(const struct pool *pool, const char *name, char ret_endpoint[POOL_ENDPOINT_MAX]);

/* ---- one pool and two clients: all that most tests need ---- */

extern struct pool the_pool;
extern struct client client_a, client_b;

/* Starts `the_pool` and waits until it serves; opens `client_a`. */
void open_pool(const char *const *arguments);
void close_pool(void);

#endif
