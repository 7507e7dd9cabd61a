/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_REPLAY_H
#define BROKER_CORE_REPLAY_H

/* Replays send a request's frames again, page by page, when its client asks. Pages are the largest messages
 * to clients, so a page is made only after the client has read the previous messages; until then it is owed,
 * and the client need not ask again. */

#include "broker/core/broker.h"

/* A client asks for the frames of its request from the id at index `next` on. */
void replay_ask(struct broker *broker, struct session *session, struct id128 id, uint64_t next);

/* Sends owed pages to pending sessions that have room now, and removes sessions with nothing left to send
 * from that list. True if more can be sent immediately. */
bool replay_send_owed(struct broker *broker);

#endif
