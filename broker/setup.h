/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SETUP_H
#define BROKER_SETUP_H

/* Putting a broker together, and taking it apart. */

#include "broker/core/broker.h"
#include "common/error.h"

/* Binds the sockets, takes over what an earlier broker left, and tells the supervisor that workers may come.
 * On failure everything is undone except what was taken over: that stays in the vault, and the process must
 * end. 0 or -errno with the reason. */
int broker_init(struct broker *broker, const struct options *options, struct error *err);

/* Closes the sockets, which sends what is still queued, and leaves everything else to the next broker. The
 * process must end then. */
void broker_leave(struct broker *broker);

/* Ends the remaining requests and frees everything. The workers belong to the supervisor. */
void broker_deinit(struct broker *broker);

#endif
