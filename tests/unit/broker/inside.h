/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_BROKER_INSIDE_H
#define TESTS_UNIT_BROKER_INSIDE_H

/* A broker inside the test: all of its parts but the loop and the processes, with a clock that the test sets.
 * The test is its clients and its workers, over sockets within the process, so nothing is ever waited for. */

#include "broker/core/broker.h"

#include <check.h>

enum { INSIDE_CLIENTS = 2, INSIDE_WORKERS = 2, INSIDE_BOOT = 5 };

extern struct broker *broker;
extern struct session *sessions[INSIDE_CLIENTS]; /* that are open */
extern int inside_orders;                        /* what the supervisor is told */

/* Checked fixtures: the clock stands at a thousand seconds, the sessions are open and listen, the workers
 * are ready. Of one model, "m", with four slots and a context of 4,096 tokens. */
void inside_set_up(void);
void inside_tear_down(void);

/* So much later. */
void inside_pass(uint64_t ns);

/* A client says this, and the broker takes it. */
void client_says(int client, const struct message *message);
void client_says_bytes(int client, const void *bytes, size_t len);
/* The next message that it has got, until the next call of any of these; kind MESSAGE_NONE: there is none. */
struct message client_hears(int client);
/* The same on the stream. */
struct message client_listens(int client);
/* Its subscription ends, and comes again; the broker takes note. */
void client_listens_no_more(int client);
void client_listens_again(int client);

/* The same of a worker, and of its frames: on its stream, with the topic of this home. */
void worker_says(int worker, const struct message *message);
void worker_says_bytes(int worker, const void *bytes, size_t len);
struct message worker_hears(int worker);
void worker_publishes_under(int worker, const struct request_key *topic, const struct frame *frame);
void worker_publishes(int worker, struct id128 session, const struct frame *frame);

/* Says hello again, as after a lost connection. */
void client_opens(int client);

/* Registers anew, and is ready: as one that has made and published frames up to wseq, acknowledged up to
 * `acked`. The broker connects to its stream, if it is not. */
void worker_registers(int worker, uint64_t wseq, uint64_t acked);

/* A client asks for an output: under the id `name`, with defaults but for what `change` makes of them. What
 * it is answered. */
struct message client_generates(int client, uint8_t name, void (*change)(struct generation *));
/* The same, accepted; the request. */
struct request *inside_admit(int client, uint8_t name, void (*change)(struct generation *));
struct request *inside_find(int client, uint8_t name);
struct id128 inside_id(uint8_t name);

/* The worker that has the request publishes so many ids of it, and its end if it is not END_REASON_COUNT. */
void inside_produce(const struct request *request, unsigned n, enum end_reason reason);

/* How often the supervisor was told to kill a worker since the last call; which, last. */
int inside_killed(uint32_t *ret_index);

#endif
