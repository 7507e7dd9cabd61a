/* SPDX-License-Identifier: MIT */
/* The board's seqlock.
 *
 * One writer a slot (its worker), any number of readers in other processes. The writer makes the sequence
 * odd, writes, makes it even; a reader copies between two equal even readings. The snapshot itself is copied
 * word by word through relaxed atomics, so that a torn copy is merely discarded and is no data race. A writer
 * killed in between leaves the sequence odd; readers give up after BOARD_READ_TRIES and only the supervisor,
 * who knows it dead, resets it. */

#include "proto/board.h"

#include <errno.h>
#include <string.h>

#define BOARD_READ_TRIES 1000

_Static_assert(sizeof(struct board_snapshot) % 8 == 0, "the snapshot is copied in words of 8 bytes");
#define SNAPSHOT_WORDS (sizeof(struct board_snapshot) / 8)

size_t board_size(uint32_t n_slots)
{
    return sizeof(struct board) + (size_t)n_slots * sizeof(struct board_slot);
}

void board_init(struct board *board, uint32_t n_slots)
{
    board->magic = BOARD_MAGIC;
    board->version = BOARD_VERSION;
    board->n_slots = n_slots;
    board->slot_bytes = sizeof(struct board_slot);
}

int board_check(const struct board *board, size_t size)
{
    if (size < sizeof *board || board->magic != BOARD_MAGIC || board->version != BOARD_VERSION)
        return -EINVAL;
    if (board->slot_bytes != sizeof(struct board_slot) || board->n_slots > BOARD_MAX_SLOTS)
        return -EINVAL;
    return size < board_size(board->n_slots) ? -EINVAL : 0;
}

void board_write(struct board_slot *slot, const struct board_snapshot *snapshot)
{
    uint64_t words[SNAPSHOT_WORDS];
    memcpy(words, snapshot, sizeof words);
    _Atomic uint64_t *to = (_Atomic uint64_t *)&slot->snapshot;
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, sequence | 1, memory_order_relaxed);
    /* Release: the odd sequence is seen before any of the new words. */
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < SNAPSHOT_WORDS; i++)
        atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, (sequence | 1) + 1, memory_order_release);
}

int board_read(const struct board_slot *slot, struct board_snapshot *ret_snapshot)
{
    uint64_t words[SNAPSHOT_WORDS];
    const _Atomic uint64_t *from = (const _Atomic uint64_t *)&slot->snapshot;
    for (int i = 0; i < BOARD_READ_TRIES; i++) {
        uint32_t before = atomic_load_explicit(&slot->sequence, memory_order_acquire);
        if (before & 1)
            continue;
        for (size_t w = 0; w < SNAPSHOT_WORDS; w++)
            words[w] = atomic_load_explicit(&from[w], memory_order_relaxed);
        /* Acquire: the words were read before the sequence is read again. */
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&slot->sequence, memory_order_relaxed) == before) {
            memcpy(ret_snapshot, words, sizeof words);
            return 0;
        }
    }
    return -EAGAIN;
}

void board_reset(struct board_slot *slot)
{
    struct board_snapshot absent = {.state = WORKER_ABSENT};
    atomic_store(&slot->layers, 0);
    atomic_store(&slot->steps, 0);
    board_write(slot, &absent);
}
