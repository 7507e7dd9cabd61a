/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_REPLAY_H
#define BROKER_CORE_REPLAY_H

/* Replays send a request's frames again, page by page, when its client asks. Pages are the largest messages
 * to clients, so a page is made only when the client has read what was sent before; until then it is owed,
 * and the client need not ask again. */

#include "broker/core/broker.h"

/* A client asks for the frames of its request from id number `next` on. */
void replay_ask(struct broker *broker, struct session *session, struct id128 id, uint64_t next);

/* Sends what is owed to pending sessions that have room now, and removes sessions with nothing left to send.
 * True when there is more to send at once. */
bool replay_send_owed(struct broker *broker);

#endif
