/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SOCKETS_H
#define BROKER_SOCKETS_H

/* Making and binding the broker's sockets. */

#include "broker/core/broker.h"
#include "common/error.h"

/* Binds the client link and the stream in the run directory, and on TCP if the options ask for it, and makes
 * the worker link. On failure broker_deinit closes the sockets made so far. 0 or -errno with the
 * reason ("tcp://…: Address already in use"). */
int sockets_bind(struct broker *broker, struct error *err);

/* Removes from the run directory, which must be locked, the sockets of a broker and of workers
 * (supervisor/children/doors.h) that were killed. Workers that still live are not heard any more. */
void sockets_clear(int rundir_fd);

/* Removes the ipc sockets that were bound, while the run directory is still locked. It removes them from that
 * directory, wherever it was moved: another pool may have its sockets at the old path now. */
void sockets_unlink(const struct broker *broker);

#endif
