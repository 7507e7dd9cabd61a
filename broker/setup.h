/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SETUP_H
#define BROKER_SETUP_H

/* Putting a broker together, and taking it apart. */

#include "broker/core/broker.h"
#include "common/error.h"

/* Binds, takes over what an earlier broker has left, and tells the supervisor of `options` that workers may
 * come. On failure everything is undone, but for what was taken over, which stays in the vault: then the
 * process has to end. 0 or -errno with the reason. */
int broker_init(struct broker *broker, const struct options *options, struct error *err);

/* Closes the sockets, so that what was sent is on its way, and leaves everything else as it is, for the next
 * broker. The process has to end then. */
void broker_leave(struct broker *broker);

/* Ends what is left, and frees everything. Workers are the supervisor's. */
void broker_deinit(struct broker *broker);

#endif
