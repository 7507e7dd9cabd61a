/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_WORKER_SCRIPTED_BROKER_H
#define TESTS_INTEGRATION_WORKER_SCRIPTED_BROKER_H

/* The broker's side of a real quern-worker process, message by message.
 *
 * Heartbeats are counted and answered automatically; a test takes all other messages with `expect`. Each call
 * waits at most WAIT_MS and then fails the test. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/bytes.h"
#include "common/files/rundir.h"
#include "proto/board.h"
#include "proto/message.h"

#define WAIT_MS 60000 /* for expected messages; generous, for sanitizers on busy machines */

/* The extra arguments of a worker. */
#define ARGS(...)                                                                                            \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

struct scripted {
    char folder[RUNDIR_PATH_MAX + 1];
    char model[128], link[128], stream[128], stderr_file[128];
    void *zmq, *dealer, *sub;
    pid_t worker;
    struct message_decoder *control_decoder, *frame_decoder;
    uint8_t control_bytes[1 << 16], frame_bytes[1 << 16]; /* memory that the last message taken borrows */
    uint8_t topic[PROTO_TOPIC_BYTES];
    uint64_t heartbeats;
    struct message heartbeat; /* the last one */
    bool mute;                /* heartbeats are not answered */
    struct board_slot *slot;
};

/* Makes a model and two sockets, and starts build/quern-worker with these, a board and the extra arguments
 * (NULL-terminated). */
struct scripted *scripted_new(const char *const *extra);

/* The same with a model that has this chat template. */
struct scripted *scripted_new_with_template(const char *chat_template);

/* The same on the CPU, with a model whose token `id` is a control token of this name. */
struct scripted *scripted_new_with_mark(const char *chat_template, uint32_t id, const char *name);
void scripted_free(struct scripted *s); /* kills the worker if it still runs */

/* The next message other than heartbeats. It must be of this kind and arrive within WAIT_MS. */
struct message expect(struct scripted *s, enum message_kind kind);
bool said_nothing(struct scripted *s, int ms); /* except heartbeats */
void say(struct scripted *s, const struct message *message);
void say_bytes(struct scripted *s, const void *data, size_t len, bool more);

/* The next frame on the stream. False: none arrived within the time. */
bool next_frame(struct scripted *s, int ms, struct frame *ret_frame);

/* register → register_ok → subscription → ready. */
void handshake(struct scripted *s);

/* An assign of a request whose prompt has `n_prompt` ids. */
struct message assignment(uint8_t id, uint32_t n_prompt, uint32_t max_tokens);

/* Waits for the worker's end; returns the exit status, or 1000 + the signal. Fails after WAIT_MS. */
int worker_status(struct scripted *s);

/* The worker's stderr, as one text. */
const char *worker_stderr(struct scripted *s);

#endif
