/* SPDX-License-Identifier: MIT */
#ifndef BROKER_PROCESSES_H
#define BROKER_PROCESSES_H

/* Starts and ends of workers' processes, as the supervisor reports them. */

#include "broker/core/broker.h"

/* Takes the supervisor's news. Call it every turn. */
void processes_take(struct broker *broker);

#endif
