/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_RECOVER_H
#define BROKER_CORE_RECOVER_H

/* Taking over from a broker that was killed. */

#include "broker/core/broker.h"
#include "common/error.h"

/* Rebuilds ledger, journal, queue and the workers' books from the vault. Call it before anything is admitted,
 * with the sockets made. A request's worker is assumed alive until the supervisor says otherwise. Counters
 * continue from what is still known. 0, or -ENOMEM with a reason. */
int recover(struct broker *broker, struct error *err);

#endif
