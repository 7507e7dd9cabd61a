/* SPDX-License-Identifier: MIT */
#ifndef PROTO_BOARD_H
#define PROTO_BOARD_H

/* The board: shared memory in which each local worker writes how it is, for the broker, the supervisor and
 * `status` to read. It is how liveness is seen without a message: the layer counter moves while work is done.
 *
 * A slot is a segment of its own, one for each place of the pool, which the supervisor makes. Its worker
 * inherits that one, maps it, and closes the descriptor before it reads any untrusted input. So a compromised
 * worker can write only to its own slot; of one segment with all slots no mapping of a part would keep it off
 * the others (mremap(2) and remap_file_pages(2) show the rest). The segment is sealed: nobody can shrink it
 * under its readers, nor seal it against the next worker. The broker has a slot that no worker has, where it
 * counts the turns of its loop for the supervisor, and maps the others for reading.
 *
 * A worker knows by magic and version that it was started by a supervisor that lays out slots as it does, and
 * refuses others. Both stand where it may write, so they are nothing to its readers: a broker is told the
 * version by the supervisor (proto/supervision.h), who writes them anew before the next worker reads them.
 *
 * A slot's snapshot is guarded by a seqlock (odd while it is being written); the two counters outside of it
 * are single atomic words that the worker bumps at will. A worker killed inside a write leaves an odd
 * sequence: readers retry a bounded number of times, then say -EAGAIN, and the supervisor resets the slot of
 * a dead worker before it starts another on it. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/gauges.h"
#include "proto/message.h"

#define BOARD_MAGIC 0x44524f42u /* "BORD" */
/* The number of gauges is part of it: a new one needs no other version, any other change does. */
#define BOARD_ONE_MORE(...) +1u
#define BOARD_VERSION       (6u << 16 | (0u WORKER_GAUGES(BOARD_ONE_MORE)))

struct board_snapshot {
    uint32_t state; /* enum worker_state */
    uint32_t pid;
    uint32_t incarnation;
    uint32_t slots;
    WORKER_GAUGES(STATUS_MEMBER) /* totals are since the start */
    double tokens_per_s;         /* over the last second or so */
    uint64_t step_started_ns;    /* clock_ns of the running step; 0 when idle */
    char device[32];             /* zero-terminated */
};

struct board_slot {
    uint32_t magic, version;   /* for its worker, before that begins to write */
    _Atomic uint32_t sequence; /* seqlock of `snapshot` */
    uint32_t reserved;
    _Atomic uint64_t layers; /* layers done since the start: progress */
    _Atomic uint64_t steps;  /* of the broker: turns of its loop */
    struct board_snapshot snapshot;
    uint8_t padding[4096 - 32 - sizeof(struct board_snapshot)];
};
_Static_assert(sizeof(struct board_slot) == 4096, "board slot layout");

/* Makes an empty slot, sealed, and maps it; the descriptor is close-on-exec. Both are the caller's. 0 or
 * -errno. */
int board_create(int *ret_fd, struct board_slot **ret_slot);

/* Maps a slot for its writer. 0 or -errno; -EINVAL: it is smaller than one, or of another version. The
 * descriptor stays the caller's. */
int board_map(int fd, struct board_slot **ret_slot);

/* Maps a slot for reading, whatever its worker has made of magic and version. 0 or -errno; -EINVAL: it is
 * smaller than a slot. The descriptor stays the caller's. */
int board_map_readonly(int fd, const struct board_slot **ret_slot);

/* Ends a mapping; NULL is none. Returns NULL. */
struct board_slot *board_unmap(const struct board_slot *slot);

/* Publishes a snapshot; only the slot's own worker calls it. */
void board_write(struct board_slot *slot, const struct board_snapshot *snapshot);

/* Copies a consistent snapshot of whatever was written: text may be unterminated, reals may be NaN. -EAGAIN
 * after a bounded number of retries. */
int board_read(const struct board_slot *slot, struct board_snapshot *ret_snapshot);

/* Makes the slot of a dead worker one that can be read, and mapped by the next: state ABSENT, counters zero.
 * Only the supervisor calls it. */
void board_reset(struct board_slot *slot);

#endif
