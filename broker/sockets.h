/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SOCKETS_H
#define BROKER_SOCKETS_H

/* Making and binding the broker's sockets. */

#include "broker/core/broker.h"
#include "common/error.h"

/* Binds the link of clients and the stream in the run directory, makes the one of workers, and what clients
 * use on TCP too if asked. On failure the sockets made so far are left to broker_deinit. 0 or -errno with the
 * reason ("tcp://…: Address already in use"). */
int sockets_bind(struct broker *broker, struct error *err);

/* Removes sockets of a broker and of workers (supervisor/children/doors.h) that were killed from the run
 * directory, which must be locked. The workers, if any still live, have nothing more to say to us. */
void sockets_clear(int rundir_fd);

/* Removes the ipc sockets that were bound, while the run directory is still locked: from that directory,
 * wherever it was moved, for another pool may have its sockets at the path now. */
void sockets_unlink(const struct broker *broker);

#endif
