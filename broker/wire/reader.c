/* SPDX-License-Identifier: MIT */
/* For every few messages that the loop takes it asks libzmq's thread to go on reading that connection, and
 * the thread does all that it is asked before it looks at the others. With 5,000 connections that never cease
 * to send it is asked for ever, and a client that sent one message waited until they ended. So its looking,
 * epoll_wait(), is ours: the loop knows of it, and takes no more until then. */

#include "broker/wire/reader.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

#define PAUSE_NS CLOCK_NS_PER_MS

static atomic_uint looks;                /* begun and ended: odd while it looks */
static _Thread_local bool is_here;       /* in that thread */
static _Thread_local uint64_t paused_ns; /* when the last pause ended */

void reader_is_here(void)
{
    is_here = true;
}

uint32_t reader_stamp(void)
{
    return atomic_load(&looks);
}

bool reader_looked_since(uint32_t stamp)
{
    uint32_t now = atomic_load(&looks);
    return now != stamp || now % 2 == 1;
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
    if (is_here)
        atomic_fetch_add(&looks, 1);
    int n = (int)syscall(SYS_epoll_pwait, fd, events, max, timeout, NULL, 0);
    if (is_here)
        atomic_fetch_add(&looks, 1);
    return n;
}

void reader_pause(void)
{
    if (clock_ns() - paused_ns < PAUSE_NS)
        return;
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    paused_ns = clock_ns();
}
