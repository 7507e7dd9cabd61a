/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SOCKETS_H
#define BROKER_SOCKETS_H

/* Creates and binds the broker's sockets. */

#include "broker/core/broker.h"
#include "common/error.h"

/* Binds the client link and the stream in the run directory, and on TCP if the options ask for it, and makes
 * the worker link. On failure broker_deinit closes the sockets made so far. 0 or -errno with the
 * reason ("tcp://…: Address already in use"). */
int sockets_bind(struct broker *broker, struct error *err);

/* Removes the sockets that a killed broker and its workers (supervisor/children/doors.h) left in the run
 * directory, which must be locked. Workers that still live can no longer be reached. */
void sockets_clear(int rundir_fd);

/* Removes the bound ipc sockets, while the run directory is still locked. Removes them from that directory
 * even if it was moved: another pool may have its sockets at the old path now. */
void sockets_unlink(const struct broker *broker);

#endif
