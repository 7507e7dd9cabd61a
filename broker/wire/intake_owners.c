/* SPDX-License-Identifier: MIT */
/* Connections that nobody uses, or nobody may: what the loop knows of them, beside what they send. A
 * connection closed here was not closed for its bytes, and its descriptor is open: close() forgets it before.
 */

#include "broker/wire/intake_table.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"

#define SEVERAL UINT32_MAX /* owners */

static void end_connection(struct connection *connection)
{
    intake_close(connection);
    shutdown((int)(connection - intake_table), SHUT_RDWR);
}

void intake_used(int fd, uint64_t now)
{
    struct connection *connection = intake_lock(fd);
    if (connection)
        connection->used_ns = now;
    pthread_mutex_unlock(&intake.lock);
}

void intake_close_unused(uint64_t now)
{
    const uint64_t most_ns = INTAKE_UNUSED_S * CLOCK_NS_PER_S;
    pthread_mutex_lock(&intake.lock);
    for (struct connection *c = intake_table; c < intake_table + intake.end; c++) {
        bool may_go = c->kind != INTAKE_ANYTHING && !c->listens && !c->closed && !c->heard;
        if (!may_go || now < c->used_ns + most_ns || now < intake.stood_still_ns + most_ns)
            continue;
        intake_refuse(c, INTAKE_UNUSED);
        end_connection(c);
    }
    subscribers_sweep(&intake.subscribers, now);
    pthread_mutex_unlock(&intake.lock);
}

void intake_stood_still(uint64_t now)
{
    pthread_mutex_lock(&intake.lock);
    intake.stood_still_ns = now;
    pthread_mutex_unlock(&intake.lock);
}

static void own(struct connection *connection, uint32_t key)
{
    connection->owner = connection->owner == 0 || connection->owner == key ? key : SEVERAL;
    int r = subscriber_own(&intake.subscribers, &connection->subscriber, key, clock_ns());
    if (r == 0 || connection->closed)
        return;
    intake_refuse(connection, r == -EDQUOT   ? INTAKE_KEY_BYTES
                              : r == -ENOSPC ? INTAKE_SUBSCRIPTIONS_BYTES
                                             : INTAKE_OTHER);
    end_connection(connection);
}

void intake_owned(int fd, uint32_t key)
{
    struct connection *connection = intake_lock(fd);
    if (connection)
        own(connection, key);
    pthread_mutex_unlock(&intake.lock);
}

void intake_unwanted(int fd, uint32_t key)
{
    struct connection *connection = intake_lock(fd);
    if (connection && connection->owner == key && !connection->closed)
        end_connection(connection);
    else if (connection)
        own(connection, key);
    pthread_mutex_unlock(&intake.lock);
}

void intake_subscribed(int fd, bool begins)
{
    struct connection *connection = intake_lock(fd);
    if (connection)
        subscriber_count(&connection->subscriber, begins);
    pthread_mutex_unlock(&intake.lock);
}

uint32_t intake_subscriptions_of(uint32_t key)
{
    pthread_mutex_lock(&intake.lock);
    uint32_t n = subscribers_of(&intake.subscribers, key);
    pthread_mutex_unlock(&intake.lock);
    return n;
}

void intake_again(int fd)
{
    struct connection *connection = intake_lock(fd);
    if (connection && !connection->closed)
        end_connection(connection);
    pthread_mutex_unlock(&intake.lock);
}

void intake_close_owned(bool (*stays)(const void *arg, uint32_t key), const void *arg)
{
    pthread_mutex_lock(&intake.lock);
    for (struct connection *c = intake_table; c < intake_table + intake.end; c++)
        if (c->owner != 0 && !c->closed && (c->owner == SEVERAL || !stays(arg, c->owner)))
            end_connection(c);
    pthread_mutex_unlock(&intake.lock);
}

void intake_closed(uint64_t ret_closed[INTAKE_REASONS])
{
    pthread_mutex_lock(&intake.lock);
    memcpy(ret_closed, intake.n_closed, sizeof intake.n_closed);
    pthread_mutex_unlock(&intake.lock);
}
