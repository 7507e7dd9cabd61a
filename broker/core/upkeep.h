/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_UPKEEP_H
#define BROKER_CORE_UPKEEP_H

#include "broker/core/broker.h"

/* What is done now and then: sessions that listen no more or were silent for too long, requests whose parts
 * do not come, or that should have ended, workers that are ending, what ended long ago. */
void broker_upkeep(struct broker *broker);

#endif
