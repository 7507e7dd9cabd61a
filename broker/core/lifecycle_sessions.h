/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_LIFECYCLE_SESSIONS_H
#define BROKER_CORE_LIFECYCLE_SESSIONS_H

/* What happens to requests when sessions open and close. */

#include "broker/core/broker.h"

/* A session opened: it gets back the requests that it left running. */
void lifecycle_adopt(struct broker *broker, struct session *session);

/* Binds a request to another session. -EEXIST when that has one of this id. */
int lifecycle_attach(struct broker *broker, struct request *request, struct session *session);

/* The client of this session, open or closed, listens no more. It has left, unless it still has the session
 * and listens again within a lease. */
void lifecycle_left(struct broker *broker, const struct id128 *id);

/* Looks after sessions that listen no more: whether they do again, are gone, or have had their time. Now and
 * then. */
void lifecycle_watch_deaf(struct broker *broker);

/* Closes the sessions that are doomed or were silent for too long, then cancels what was abandoned and has
 * had its time. */
void lifecycle_close_sessions(struct broker *broker);

/* Closes all sessions and forgets all requests, whatever state they are in: the broker is taken apart. */
void lifecycle_clear(struct broker *broker);

/* The session counts for a key, and no longer for another; 0: for none. */
void lifecycle_enter_key(struct broker *broker, struct session *session, uint32_t number);

/* Keys of clients were taken away: their sessions are doomed, their connections closed. */
void lifecycle_keys_gone(struct broker *broker);

#endif
