/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_MEMBER_H
#define SUPERVISOR_MEMBER_H

/* The pool's own file in the folder of its fleet (`--member DIR/NAME`, common/files/member_file.h).
 *
 * The file is written when the first worker is ready, and removed when the pool begins to end. A worker that
 * restarts does not change it. A killed pool leaves its file behind. Gateways allow for that: the file only
 * says where a pool may be, and they ask it. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/settings/options.h"
#include "common/files/member_file.h"

struct member { /* zeroed: in no fleet */
    char path[PATH_MAX];
    struct member_file file;
    bool written;
    struct error said; /* what was last logged about a file that cannot be written */
    uint64_t again_ns; /* when to try to write it again */
};

/* Takes the file's path and contents from the options: the address of `tcp` or `public-host`, and the public
 * key of `curve-key`. -errno with a reason: the path has no folder, or the name is not valid for a pool. */
int member_init(struct member *member, const struct options *options, struct error *err);

/* `ready`: a worker is ready, or was. `stopping`: the pool is ending. */
void member_turn(struct member *member, bool ready, bool stopping, uint64_t now);

/* When member_turn is due at the latest, with the same states; UINT64_MAX: not before something changes. */
uint64_t member_due(const struct member *member, bool ready, bool stopping);

/* Removes the file if it is there and still this pool's: with its address and its key. */
void member_leave(struct member *member);

#endif
