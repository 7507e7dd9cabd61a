/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_READER_H
#define BROKER_WIRE_READER_H

/* Observes and paces the libzmq thread that reads from clients. Linking this module replaces epoll_wait(2).
 */

#include <stdbool.h>
#include <stdint.h>

/* Declares the calling thread to be that thread. */
void reader_is_here(void);

/* A stamp of this moment, and whether that thread has checked all of its connections since, or is doing so
 * now. While the loop takes messages, the thread may be busy with connections that it has already read from
 * and check no other: 5,000 busy sessions delayed another client by 13 s. Any thread may call these. */
uint32_t reader_stamp(void);
bool reader_looked_since(uint32_t stamp);

/* Called in that thread when a read is to be retried later; libzmq retries at once. Waits for a millisecond,
 * but uses at most half of the thread's time. */
void reader_pause(void);

#endif
