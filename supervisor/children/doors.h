/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHILDREN_DOORS_H
#define SUPERVISOR_CHILDREN_DOORS_H

/* The two sockets on which a worker is reached: its link, on which its broker and it speak of work, and its
 * stream, on which it publishes. They are bound and listen before it starts, and it inherits them: so a
 * worker binds nothing, connects to nothing and needs no right in the run directory, and only a broker that
 * the supervisor tells of them comes to them. */

#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "proto/supervision.h"

struct doors {
    int link_fd, stream_fd; /* listen, close-on-exec; -1: none */
};

/* Writes into the record where its doors will be: below the run directory, under names that no other
 * incarnation has, in this pool or (by the boot number) in one before it. */
void doors_name(struct place_record *record, const char *rundir, uint64_t boot);

/* Makes them there. 0, or -errno with a reason that names the path, and then there are none: -EADDRINUSE
 * where something is at the path, which is left alone. */
int doors_open(const struct place_record *record, struct doors *ret_doors, struct error *err);

/* Closes our descriptors. What was not accepted when no process has them any more is refused. */
void doors_close(struct doors *doors);

/* Removes their paths, in the run directory, wherever that was moved. */
void doors_remove(const struct place_record *record, int rundir_fd);

#endif
