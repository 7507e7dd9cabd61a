/* SPDX-License-Identifier: MIT */
/* See intake_table.h. */

#include "broker/wire/intake_table.h"

static const struct subscriber_bounds subscriber_bounds = {
    .most = INTAKE_MAX_SUBSCRIBER_BYTES,
    .all = {INTAKE_MAX_SUBSCRIPTION_BYTES, INTAKE_SUBSCRIPTION_BURST, INTAKE_SUBSCRIPTION_BYTES_A_S},
    .key = {INTAKE_MAX_KEY_BYTES, INTAKE_KEY_BURST, INTAKE_KEY_BYTES_A_S}};

struct connection intake_table[INTAKE_MAX_FILES];
struct intake intake = {.lock = PTHREAD_MUTEX_INITIALIZER, .subscribers = {.bounds = &subscriber_bounds}};

struct connection *intake_counted(int fd)
{
    if (fd < 0 || fd >= INTAKE_MAX_FILES || intake_table[fd].kind == INTAKE_ANYTHING)
        return NULL;
    return &intake_table[fd];
}

struct connection *intake_lock(int fd)
{
    pthread_mutex_lock(&intake.lock);
    return intake_counted(fd);
}

bool intake_is_subscriber(const struct connection *connection)
{
    return !connection->listens &&
           (connection->kind == INTAKE_SUBSCRIPTIONS || connection->kind == INTAKE_SUBSCRIPTIONS_CURVE ||
            connection->kind == INTAKE_SUBSCRIPTIONS_KEYS);
}

bool intake_refuse(struct connection *connection, enum intake_reason why)
{
    connection->why = why;
    return false;
}

void intake_close(struct connection *connection)
{
    intake.held -= intake_held(connection);
    connection->under_way = connection->not_taken = 0;
    connection->closed = true;
    intake.n_closed[connection->why]++;
}
