/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROCESSES_HOSTILE_WORKER_H
#define TESTS_PROCESSES_HOSTILE_WORKER_H

/* Data that a compromised worker may send, hand-written on a separate connection because no ZeroMQ socket
 * would send it. Each function accepts the broker's next connection to a door, sends until the other end
 * stops receiving or long enough to matter, and then exits. */

#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

#define HOSTILE_BYTES ((size_t)512 << 20) /* the most that is sent, to protect the machine */

/* Sends parts of a message that never ends. `type`: of the door's socket. */
void hostile_parts(int door, const char *type) __attribute__((noreturn));

/* Sends the first bytes of messages that never end, repeatedly on new connections. */
void hostile_beginnings(int door, const char *type) __attribute__((noreturn));

/* Sends the same message repeatedly: a frame that was published before. */
void hostile_frames(int door, const uint8_t topic[PROTO_TOPIC_BYTES], struct bytes frame)
    __attribute__((noreturn));

#endif
