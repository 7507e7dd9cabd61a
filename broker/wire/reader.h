/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_READER_H
#define BROKER_WIRE_READER_H

/* Observes and paces the libzmq thread that reads what clients send. Linking this module replaces
 * epoll_wait(2). */

#include <stdbool.h>
#include <stdint.h>

/* The calling thread is the one. */
void reader_is_here(void);

/* A stamp of this moment, and whether that thread has looked at all of its connections since, or is just
 * doing so. As long as the loop takes messages, it may be busy with connections that it has read from
 * already, and look at no other. Any thread may ask. */
uint32_t reader_stamp(void);
bool reader_looked_since(uint32_t stamp);

/* In that thread, when it is told to ask again later, which it does at once: waits for a millisecond, but for
 * no more than half of its time. */
void reader_pause(void);

#endif
