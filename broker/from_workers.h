/* SPDX-License-Identifier: MIT */
#ifndef BROKER_FROM_WORKERS_H
#define BROKER_FROM_WORKERS_H

/* Workers' messages on the worker link: registrations, heartbeats, ends. */

#include "broker/core/broker.h"

/* Takes up to BROKER_BATCH messages; true: there may be more. */
bool from_workers_drain(struct broker *broker);

#endif
