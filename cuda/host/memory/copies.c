/* SPDX-License-Identifier: MIT */
/* A block is contiguous in the pool, and a snapshot among snapshots, so a copy of them is copies of memory
 * and no kernel. What leaves the device lies in the staging when the mark behind it is reached, and goes to
 * the host's own memory when its ticket is polled. */

#include "cuda/host/memory/copies.h"

#include <errno.h>
#include <string.h>

#include "cuda/device/wait.h"

/* At most, unless a block or a snapshot has more; no more than all blocks, or all snapshots, have. */
#define STAGING_BYTES ((size_t)8 << 20)

/* What is copied as a whole: blocks of a group, or snapshots. */
struct copied {
    uint8_t *pool; /* [n][bytes] */
    size_t bytes;
    uint32_t n;
};

static struct copied snapshots_of(const struct device_states *states)
{
    const struct state_pool *pool = &states->pool;
    return (struct copied){(uint8_t *)pool->snapshots, pool->n * sizeof *pool->snapshots, pool->n_snapshots};
}

static struct copied group_of(const struct copies *copies, uint32_t group)
{
    const struct pools *pools = copies->pools;
    if (group >= pools->n_groups)
        return snapshots_of(copies->states);
    return (struct copied){pools->kv[group].pool, pools->kv[group].block_bytes, pools->kv[group].n_blocks};
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

void copies_init(struct copies *copies, struct device_memory *memory, const struct pools *pools,
                 const struct device_states *states)
{
    *copies = (struct copies){.pools = pools, .states = states};
    size_t one = 0, all = 0;
    for (uint32_t g = 0; g <= pools->n_groups; g++) {
        const struct copied what = group_of(copies, g);
        one = larger(one, what.bytes);
        all = larger(all, what.n * what.bytes);
    }
    copies->staging_bytes = larger(one, all < STAGING_BYTES ? all : STAGING_BYTES);
    for (uint32_t i = 0; i < COPIES_AT_ONCE; i++)
        copies->flights[i].staging = device_memory_take_pinned(memory, copies->staging_bytes);
}

size_t copies_give_back(struct copies *copies)
{
    const size_t before = copies_bytes(copies);
    for (struct copy_flight *flight = copies->flights + 1; flight < copies->flights + COPIES_AT_ONCE;
         flight++)
        if (flight->ticket == 0) {
            device_pinned_free(copies->device, flight->staging);
            flight->staging = NULL;
        }
    return before - copies_bytes(copies);
}

size_t copies_bytes(const struct copies *copies)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < COPIES_AT_ONCE; i++)
        bytes += copies->flights[i].staging ? copies->staging_bytes : 0;
    return bytes;
}

/* One that is free and has its staging, taken again if need be; NULL: there is none. */
static struct copy_flight *find_free(struct copies *copies)
{
    for (struct copy_flight *flight = copies->flights; flight < copies->flights + COPIES_AT_ONCE; flight++) {
        if (flight->ticket != 0)
            continue;
        if (!flight->staging)
            flight->staging = device_pinned(copies->device, copies->staging_bytes);
        if (flight->staging)
            return flight;
    }
    return NULL;
}

static uint32_t mark_of(const struct copies *copies, const struct copy_flight *flight)
{
    return MARK_COPIES + (uint32_t)(flight - copies->flights);
}

/* Queues up to a staging of blocks of a pool. */
static int queue_blocks(struct copies *copies, struct copy_flight *flight, const struct copied *what,
                        const uint32_t *blocks, size_t n, bool out)
{
    struct device_stream *stream = device_stream(copies->device);
    const size_t bytes = what->bytes;
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        uint8_t *block = what->pool + blocks[i] * bytes, *staged = flight->staging + i * bytes;
        r = out ? device_copy(stream, staged, block, bytes) : device_copy(stream, block, staged, bytes);
    }
    return r < 0 ? r : device_mark(stream, mark_of(copies, flight));
}

static void deliver(struct copy_flight *flight)
{
    if (flight->bytes > 0)
        memcpy(flight->host, flight->staging, flight->bytes);
    flight->bytes = 0;
}

int copies_begin(struct copies *copies, const struct backend_copy *copy, bool out, uint64_t *ret_ticket)
{
    const struct copied what = group_of(copies, copy->group);
    if (copy->group > copies->pools->n_groups || what.bytes == 0)
        return -EINVAL;
    const size_t most = copies->staging_bytes / what.bytes;
    for (uint32_t i = 0; i < copy->n; i++)
        if (copy->blocks[i] >= what.n)
            return -EINVAL;
    struct copy_flight *flight = find_free(copies);
    if (!flight)
        return -EAGAIN;

    uint8_t *host = copy->host;
    size_t done = 0;
    do {
        const size_t left = copy->n - done;
        const size_t n = left < most ? left : most;
        const size_t bytes = n * what.bytes;
        int r = done > 0 ? device_wait_due(copies->device, mark_of(copies, flight)) : 0;
        if (r == 0)
            deliver(flight);
        if (r == 0 && !out && bytes > 0)
            memcpy(flight->staging, host, bytes);
        if (r == 0)
            r = queue_blocks(copies, flight, &what, copy->blocks + done, n, out);
        if (r < 0)
            return r;
        flight->host = host;
        flight->bytes = out ? bytes : 0;
        host += bytes;
        done += n;
    } while (done < copy->n);
    *ret_ticket = flight->ticket = COPIES_TICKET + ++copies->begun;
    return 0;
}

int copies_poll(struct copies *copies, uint64_t ticket, int timeout_ms, struct error *err)
{
    for (struct copy_flight *flight = copies->flights; flight < copies->flights + COPIES_AT_ONCE; flight++) {
        if (flight->ticket != ticket)
            continue;
        int r = device_wait(copies->device, mark_of(copies, flight), NULL, 0,
                            timeout_ms > 0 ? (uint32_t)timeout_ms : 0);
        if (r == -EAGAIN)
            return r;
        if (r == 0)
            deliver(flight);
        flight->ticket = 0;
        return r;
    }
    return error_set(err, -EINVAL, "no ticket %llu is open", (unsigned long long)ticket);
}

int copies_block(struct copies *copies, uint32_t group, uint32_t from, uint32_t to)
{
    if (group >= copies->pools->n_groups)
        return -EINVAL;
    const struct copied blocks = group_of(copies, group);
    if (from >= blocks.n || to >= blocks.n)
        return -EINVAL;
    if (from == to)
        return 0;
    return device_copy(device_stream(copies->device), blocks.pool + to * blocks.bytes,
                       blocks.pool + from * blocks.bytes, blocks.bytes);
}
