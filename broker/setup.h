/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SETUP_H
#define BROKER_SETUP_H

/* Setting up a broker, and freeing it. */

#include "broker/core/broker.h"
#include "common/error.h"

/* Binds the sockets, takes over the vault of an earlier broker, and tells the supervisor that workers may be
 * started. `broker` is all zeros, and only what is needed of it is touched. On failure everything is undone,
 * but the vault keeps its contents; the process must end. 0 or -errno with the reason. */
int broker_init(struct broker *broker, const struct options *options, struct error *err);

/* Closes the sockets, which sends queued messages, and leaves everything else to the next broker. The process
 * must end then. */
void broker_leave(struct broker *broker);

/* Ends the remaining requests and frees everything. The workers belong to the supervisor. */
void broker_deinit(struct broker *broker);

#endif
