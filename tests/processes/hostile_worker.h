/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROCESSES_HOSTILE_WORKER_H
#define TESTS_PROCESSES_HOSTILE_WORKER_H

/* What a worker that was taken over may send, by hand and on a connection of its own: no ZeroMQ socket would.
 * Each takes the broker's next connection to a door, sends until nobody takes it any more, or for so long
 * that it matters, and then dies. */

#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

#define HOSTILE_BYTES ((size_t)512 << 20) /* most that is sent, so that nobody's machine is at stake */

/* Parts of a message that has no end. `type`: of the door's socket. */
void hostile_parts(int door, const char *type) __attribute__((noreturn));

/* The first bytes of messages that do not end, over and over on new connections. */
void hostile_beginnings(int door, const char *type) __attribute__((noreturn));

/* The same message, one after the other: a frame that was published before. */
void hostile_frames(int door, const uint8_t topic[PROTO_TOPIC_BYTES], struct bytes frame)
    __attribute__((noreturn));

#endif
