/* SPDX-License-Identifier: MIT */
#ifndef PROTO_BOARD_H
#define PROTO_BOARD_H

/* The board: shared memory in which each local worker publishes its state, for the broker, the supervisor and
 * `status` to read. It also shows that a worker is alive without a message: its layer counter moves while it
 * works.
 *
 * The supervisor creates one slot, a separate segment, for each place of the pool. The worker inherits only
 * its slot, maps it, and closes the descriptor before it reads untrusted input, so a compromised worker can
 * write to no other slot. (With all slots in one segment, mremap(2) and remap_file_pages(2) would reach the
 * others.) The segment is sealed: no process can shrink it under its readers or seal it against the next
 * worker. The broker has a slot too, in which it counts the turns of its loop for the supervisor; it maps the
 * others read-only.
 *
 * Magic and version tell a worker whether its supervisor uses the same layout; if not, it refuses to start.
 * Readers do not rely on them, because the worker can overwrite them: the supervisor tells the broker the
 * version (proto/supervision.h), and restores both before it starts the next worker.
 *
 * A seqlock guards the snapshot (odd: a write is in progress). The two counters outside it are single atomic
 * words. A worker that is killed during a write leaves an odd sequence: readers retry a bounded number of
 * times and then return -EAGAIN, and the supervisor resets the slot before it starts another worker there. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/gauges.h"
#include "proto/histograms.h"
#include "proto/message.h"

#define BOARD_MAGIC 0x44524f42u /* "BORD" */
/* Includes the number of gauges and histograms: adding one needs no new version here, any other change
 * does. */
#define BOARD_ONE_MORE(...) +1u
#define BOARD_VERSION       (7u << 16 | (0u WORKER_GAUGES(BOARD_ONE_MORE) WORKER_HISTOGRAMS(BOARD_ONE_MORE)))

struct board_snapshot {
    uint32_t state; /* enum worker_state */
    uint32_t pid;
    uint32_t incarnation;
    uint32_t slots;
    WORKER_GAUGES(STATUS_MEMBER) /* totals count from the worker's start */
    WORKER_HISTOGRAMS(STATUS_MEMBER)
    double tokens_per_s;      /* over about the last second */
    uint64_t step_started_ns; /* clock_ns of the running step; 0: idle */
    char device[32];          /* zero-terminated */
};

struct board_slot {
    uint32_t magic, version;   /* checked by the worker before it writes */
    _Atomic uint32_t sequence; /* seqlock of `snapshot` */
    uint32_t reserved;
    _Atomic uint64_t layers; /* layers computed since the worker's start */
    _Atomic uint64_t steps;  /* in the broker's slot: turns of its loop */
    struct board_snapshot snapshot;
    uint8_t padding[4096 - 32 - sizeof(struct board_snapshot)];
};
_Static_assert(sizeof(struct board_slot) == 4096, "board slot layout");

/* Creates, seals and maps an empty slot. The caller owns the mapping and the descriptor, which is
 * close-on-exec. 0 or -errno. */
int board_create(int *ret_fd, struct board_slot **ret_slot);

/* Maps a slot for writing. The caller keeps the descriptor. 0 or -errno; -EINVAL: the segment is smaller than
 * a slot, or has a different version. */
int board_map(int fd, struct board_slot **ret_slot);

/* Maps a slot for reading and ignores magic and version, which its worker may have changed. The caller keeps
 * the descriptor. 0 or -errno; -EINVAL: the segment is smaller than a slot. */
int board_map_readonly(int fd, const struct board_slot **ret_slot);

/* Unmaps a slot; takes NULL and returns NULL. */
struct board_slot *board_unmap(const struct board_slot *slot);

/* Publishes a snapshot; only the slot's own worker calls it. */
void board_write(struct board_slot *slot, const struct board_snapshot *snapshot);

/* Copies a consistent snapshot. Its contents are not checked: text may be unterminated, reals may be NaN.
 * -EAGAIN after a bounded number of retries. */
int board_read(const struct board_slot *slot, struct board_snapshot *ret_snapshot);

/* Resets the slot of a dead worker, so that it can be read and the next worker can map it: state ABSENT,
 * counters zero. Only the supervisor calls it. */
void board_reset(struct board_slot *slot);

#endif
