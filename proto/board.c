/* SPDX-License-Identifier: MIT */
/* The slots of the board, and their seqlock.
 *
 * One writer a slot (its worker), any number of readers in other processes. The writer makes the sequence
 * odd, writes, makes it even; a reader copies between two equal even readings. The snapshot itself is copied
 * word by word through relaxed atomics, so that a torn copy is merely discarded and is no data race. A writer
 * killed in between leaves the sequence odd; readers give up after BOARD_READ_TRIES and only the supervisor,
 * who knows it dead, resets it. */

#include "proto/board.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/system/shm.h"

#define BOARD_READ_TRIES 1000

_Static_assert(sizeof(struct board_snapshot) % 8 == 0, "the snapshot is copied in words of 8 bytes");
#define SNAPSHOT_WORDS (sizeof(struct board_snapshot) / 8)

static void sign(struct board_slot *slot)
{
    slot->magic = BOARD_MAGIC;
    slot->version = BOARD_VERSION;
}

int board_create(int *ret_fd, struct board_slot **ret_slot)
{
    void *memory = NULL;
    int fd;
    int r = shm_create("quern-board", sizeof(struct board_slot), &fd);
    if (r < 0)
        return r;
    r = shm_map(fd, sizeof(struct board_slot), &memory);
    if (r == 0)
        r = shm_seal_size(fd);
    if (r < 0) {
        board_unmap(memory);
        close(fd);
        return r;
    }
    *ret_slot = memory;
    sign(*ret_slot);
    *ret_fd = fd;
    return 0;
}

int board_map(int fd, struct board_slot **ret_slot)
{
    void *memory;
    int r = shm_map(fd, sizeof(struct board_slot), &memory);
    if (r < 0)
        return r;
    struct board_slot *slot = memory;
    if (slot->magic != BOARD_MAGIC || slot->version != BOARD_VERSION) {
        board_unmap(slot);
        return -EINVAL;
    }
    *ret_slot = slot;
    return 0;
}

int board_map_readonly(int fd, const struct board_slot **ret_slot)
{
    const void *memory;
    int r = shm_map_readonly(fd, sizeof(struct board_slot), &memory);
    if (r == 0)
        *ret_slot = memory;
    return r;
}

struct board_slot *board_unmap(const struct board_slot *slot)
{
    if (slot)
        munmap((void *)slot, sizeof *slot);
    return NULL;
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
    sign(slot);
    atomic_store(&slot->layers, 0);
    atomic_store(&slot->steps, 0);
    board_write(slot, &absent);
}
