/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_RECOVER_H
#define BROKER_CORE_RECOVER_H

/* Taking over from a broker that was killed. */

#include "broker/core/broker.h"
#include "common/error.h"

/* Rebuilds ledger, journal, queue and the books of the workers from the vault. Nothing was admitted yet, and
 * the sockets are there. The holder of a request is assumed alive until the supervisor says otherwise.
 * Counters go on from what is still known. 0, or -ENOMEM with a reason. */
int recover(struct broker *broker, struct error *err);

#endif
