/* SPDX-License-Identifier: MIT */
#ifndef BROKER_PROCESSES_H
#define BROKER_PROCESSES_H

/* Births and deaths of the workers' processes, as the supervisor tells them. */

#include "broker/core/broker.h"

/* Takes what the supervisor told. Every turn. */
void processes_take(struct broker *broker);

#endif
