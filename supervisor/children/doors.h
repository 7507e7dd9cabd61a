/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHILDREN_DOORS_H
#define SUPERVISOR_CHILDREN_DOORS_H

/* The two sockets of a worker: its link, for work from the broker, and its stream, on which it publishes.
 * They are bound and listen before the worker starts, and it inherits them. So a worker binds nothing,
 * connects to nothing, and needs no access to the run directory. Only the supervisor's broker learns their
 * paths. */

#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "proto/supervision.h"

struct doors {
    int link_fd, stream_fd; /* listen, close-on-exec; -1: none */
};

/* Writes the paths of the doors into the record: in the run directory, with names unique to the incarnation,
 * even across pools (by the boot number). */
void doors_name(struct place_record *record, const char *rundir, uint64_t boot);

/* Creates both or none. 0, or -errno with a reason that names the path; -EADDRINUSE if something exists
 * there, which is left alone. */
int doors_open(const struct place_record *record, struct doors *ret_doors, struct error *err);

/* Closes our descriptors. Once no process has them, pending connections are refused. */
void doors_close(struct doors *doors);

/* Removes their paths from the run directory, even if it was moved. */
void doors_remove(const struct place_record *record, int rundir_fd);

#endif
