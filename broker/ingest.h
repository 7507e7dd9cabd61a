/* SPDX-License-Identifier: MIT */
#ifndef BROKER_INGEST_H
#define BROKER_INGEST_H

/* Frames from workers: into the journal, on to the clients, acknowledged. The hot path of the broker. */

#include "broker/broker.h"

/* Connects to the stream of a worker that registered. -errno with the reason. */
int ingest_open(struct broker *broker, struct worker *worker, const struct id128 *subscription,
                struct error *err);

/* Takes up to BROKER_BATCH frames; true when there may be more. */
bool ingest_drain(struct broker *broker, struct worker *worker);

/* Asks the worker for what follows the frames that are here; not more often than it can answer. */
void ingest_ask_again(struct broker *broker, struct worker *worker);

/* Acknowledges what is due. */
void ingest_acknowledge(struct broker *broker, struct worker *worker);

void ingest_close(struct worker *worker);

#endif
