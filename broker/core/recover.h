/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_RECOVER_H
#define BROKER_CORE_RECOVER_H

/* Takes over from a broker that was killed or replaced. */

#include "broker/core/broker.h"
#include "common/error.h"

/* Rebuilds ledger, journal, queue and the workers' lists from the vault. Call it after the sockets are
 * created and before anything is admitted. A request's worker is assumed alive until the supervisor reports
 * otherwise. Counters continue from what is still known. 0, or -ENOMEM with a reason. */
int recover(struct broker *broker, struct error *err);

#endif
