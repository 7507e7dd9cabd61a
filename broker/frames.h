/* SPDX-License-Identifier: MIT */
#ifndef BROKER_FRAMES_H
#define BROKER_FRAMES_H

/* Frames from workers: entered in the journal, sent on to clients, acknowledged. The broker's hot path. */

#include "broker/core/broker.h"
#include "common/error.h"

/* Connects to the stream of a registered worker. 0 or -errno with the reason. */
int frames_open(struct broker *broker, struct worker *worker, const struct id128 *subscription,
                struct error *err);

/* Takes up to BROKER_BATCH frames; true: there may be more. */
bool frames_drain(struct broker *broker, struct worker *worker);

void frames_close(struct worker *worker);

/* Tells a worker adopted from another broker which requests it should have, once its earlier frames have
 * arrived. */
void frames_settle(struct broker *broker, struct worker *worker);

#endif
