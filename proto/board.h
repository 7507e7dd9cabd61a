/* SPDX-License-Identifier: MIT */
#ifndef PROTO_BOARD_H
#define PROTO_BOARD_H

/* The board: a shared memory segment in which each local worker writes its own slot and the broker and
 * `status` read all of them. It is how liveness is seen without a message: the layer counter moves while work
 * is done.
 *
 * The broker has no slot but a counter in the header, by which the supervisor sees that its loop turns.
 *
 * Layout: one page of header, then `n_slots` slots of 256 bytes. A slot's snapshot is guarded by a seqlock
 * (odd while it is being written); the two counters outside of it are single atomic words that the worker
 * bumps at will. A worker killed inside a write leaves an odd sequence: readers retry a bounded number of
 * times, then say -EAGAIN, and the supervisor resets the slot of a dead worker before it starts another on
 * it. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

#define BOARD_MAGIC     0x44524f42u /* "BORD" */
#define BOARD_VERSION   3u
#define BOARD_MAX_SLOTS 64

struct board_snapshot {
    uint32_t state; /* enum worker_state */
    uint32_t pid;
    uint32_t incarnation;
    uint32_t active, waiting, slots;
    uint32_t kv_free, kv_total; /* blocks */
    uint64_t tokens;            /* made since the start */
    uint64_t cache_hits;        /* prompt tokens taken from the prefix cache */
    double tokens_per_s;        /* over the last second or so */
    uint64_t step_started_ns;   /* clock_ns of the running step; 0 when idle */
    char device[32];            /* zero-terminated */
    uint64_t prefill_tokens;    /* computed for prompts, and again for who had to make room */
    uint64_t evictions;         /* blocks that the prefix cache gave up */
    uint64_t restores;          /* blocks that it brought from the prefix store */
    uint32_t kv_cached;         /* blocks that it keeps, those in use included */
    uint32_t kv_block_bytes;    /* of one block; all KV memory ÷ kv_total */
};

struct board_slot {
    _Atomic uint32_t sequence; /* seqlock of `snapshot` */
    uint32_t reserved;
    _Atomic uint64_t layers; /* layers done since the start: progress */
    _Atomic uint64_t steps;
    struct board_snapshot snapshot;
    uint8_t padding[256 - 24 - sizeof(struct board_snapshot)];
};
_Static_assert(sizeof(struct board_slot) == 256, "board slot layout");

struct board {
    uint32_t magic, version, n_slots, slot_bytes;
    _Atomic uint64_t broker_turns;
    uint8_t padding[4096 - 24];
    struct board_slot slots[];
};
_Static_assert(offsetof(struct board, slots) == 4096, "board layout");

/* Bytes of a board for n slots. */
size_t board_size(uint32_t n_slots);

/* Writes the header of a zeroed mapping; the supervisor does it once. */
void board_init(struct board *board, uint32_t n_slots);

/* Checks magic, version, slot size and that `size` bytes hold all the slots. 0 or -EINVAL. */
int board_check(const struct board *board, size_t size);

/* Publishes a snapshot; only the slot's own worker calls it. */
void board_write(struct board_slot *slot, const struct board_snapshot *snapshot);

/* Copies a consistent snapshot; -EAGAIN after a bounded number of retries. */
int board_read(const struct board_slot *slot, struct board_snapshot *ret_snapshot);

/* Makes the slot of a dead worker readable again: state ABSENT, counters zero. Only the supervisor calls it.
 */
void board_reset(struct board_slot *slot);

#endif
