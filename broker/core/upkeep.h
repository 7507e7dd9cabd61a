/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_UPKEEP_H
#define BROKER_CORE_UPKEEP_H

#include "broker/core/broker.h"

/* Periodic work: sessions without a subscription or silent for too long, requests whose parts are overdue or
 * that should have ended, workers that are ending, requests that ended long ago. */
void broker_upkeep(struct broker *broker);

#endif
