/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_LIFECYCLE_SESSIONS_H
#define BROKER_CORE_LIFECYCLE_SESSIONS_H

/* The effects on requests when sessions open and close. */

#include "broker/core/broker.h"

/* A session opened: it gets back its abandoned requests. */
void lifecycle_adopt(struct broker *broker, struct session *session);

/* Binds a request to another session. -EEXIST if that has another one with this id. */
int lifecycle_attach(struct broker *broker, struct request *request, struct session *session);

/* The last subscription of this session, open or closed, has ended. Its client has left, unless the session
 * is open and the client subscribes again within a lease. */
void lifecycle_left(struct broker *broker, const struct id128 *id);

/* Checks sessions without a subscription: whether they have one again, are gone, or ran out of time. Call it
 * periodically. */
void lifecycle_watch_deaf(struct broker *broker);

/* Closes sessions that are doomed or were silent for too long, then cancels abandoned requests whose time is
 * up. */
void lifecycle_close_sessions(struct broker *broker);

/* Closes all sessions and forgets all requests, whatever their state: the broker is being freed. */
void lifecycle_clear(struct broker *broker);

/* Counts the session for this key instead of its former one; 0: for none. */
void lifecycle_enter_key(struct broker *broker, struct session *session, uint32_t number);

/* Keys of clients were removed: dooms their sessions and closes their connections. */
void lifecycle_keys_gone(struct broker *broker);

#endif
