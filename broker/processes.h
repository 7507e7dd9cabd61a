/* SPDX-License-Identifier: MIT */
#ifndef BROKER_PROCESSES_H
#define BROKER_PROCESSES_H

/* Births and deaths of the workers' processes, as the supervisor tells them. */

#include "broker/broker.h"

/* Starts the processes that are due. Every turn. */
void processes_start(struct broker *broker);

/* Takes the ends of dead ones: after SIGCHLD. */
void processes_reap(struct broker *broker);

#endif
