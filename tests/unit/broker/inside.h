/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_BROKER_INSIDE_H
#define TESTS_UNIT_BROKER_INSIDE_H

/* A broker inside the test: all of its parts except the loop and the processes, with a clock that the test
 * sets. The test plays its clients and workers over sockets within the process, so nothing ever waits. */

#include "broker/core/broker.h"

#include <check.h>

enum { INSIDE_CLIENTS = 2, INSIDE_WORKERS = 2, INSIDE_BOOT = 5 };

extern struct broker *broker;
extern struct session *sessions[INSIDE_CLIENTS]; /* open sessions */
extern int inside_orders; /* the supervisor's end, which receives the broker's orders */

/* Checked fixtures: the clock is at a thousand seconds, the sessions are open and listen, the workers are
 * ready. They serve one model, "m", with four slots and a context of 4,096 tokens. */
void inside_set_up(void);
void inside_tear_down(void);

/* Advances the clock. */
void inside_pass(uint64_t ns);

/* Sends a message from a client, which the broker then takes. */
void client_says(int client, const struct message *message);
void client_says_bytes(int client, const void *bytes, size_t len);
/* The next message that the client received, valid until the next call of any of these; kind MESSAGE_NONE:
 * none. */
struct message client_hears(int client);
/* The same on the stream. */
struct message client_listens(int client);
/* Ends the client's subscription, or begins it again; the broker notices. */
void client_listens_no_more(int client);
void client_listens_again(int client);

/* The same for a worker, and for its frames: on its stream, with the topic of this home. */
void worker_says(int worker, const struct message *message);
void worker_says_bytes(int worker, const void *bytes, size_t len);
struct message worker_hears(int worker);
void worker_publishes_under(int worker, const struct request_key *topic, const struct frame *frame);
void worker_publishes(int worker, struct id128 session, const struct frame *frame);

/* Sends hello again, as after a lost connection. */
void client_opens(int client);

/* Registers again and is ready, as a worker that has published frames up to wseq, acknowledged up to `acked`.
 * The broker connects to its stream if it is not connected. */
void worker_registers(int worker, uint64_t wseq, uint64_t acked);

/* A client sends a generate with the id `name` and defaults as modified by `change`. Returns the answer. */
struct message client_generates(int client, uint8_t name, void (*change)(struct generation *));
/* The same, which must be accepted; returns the request. */
struct request *inside_admit(int client, uint8_t name, void (*change)(struct generation *));
struct request *inside_find(int client, uint8_t name);
struct id128 inside_id(uint8_t name);

/* The worker that has the request publishes `n` ids of it, and its end unless `reason` is
 * END_REASON_COUNT. */
void inside_produce(const struct request *request, unsigned n, enum end_reason reason);

/* How often the supervisor was told to kill a worker since the last call; *ret_index: the last one. */
int inside_killed(uint32_t *ret_index);

#endif
