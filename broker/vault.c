/* SPDX-License-Identifier: MIT */
/* The buddy system, with its books in two places.
 *
 *     segment:   header │ a byte for each unit of 512 bytes │ the units
 *
 * The byte of a kept block's first unit is its order + 1, all others are 0: that is everything that the next
 * process needs, and a single store keeps, shrinks or frees a block. The lists of free blocks are this
 * process's own, and made anew from those bytes; free memory is never written to.
 *
 * The segment is as large as it may ever get, and empty of pages at first. Pages are asked for a granule at a
 * time, before a block there is handed out, so a machine that has none left is an error here and not a
 * SIGBUS later. */

#include "broker/vault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/shm.h"

#define MAGIC 0x544c5641u /* "AVLT" */
#define VERSION                                                                                              \
    2u             /* of what brokers keep in it too: another layout of records or logs is another version   \
                    */
#define ORDERS  16 /* 512 bytes to 16 MiB */
#define GRANULE ((size_t)1 << 20)
#define NONE    UINT32_MAX

_Static_assert(VAULT_LEAST_BYTES << (ORDERS - 1) == VAULT_MOST_BYTES,
               "the largest order is the largest block");

struct header {
    uint32_t magic, version;
    uint64_t units;
    uint8_t padding[4096 - 16];
};

struct vault {
    struct header *header;
    _Atomic uint8_t *kept; /* [units], in the segment: order + 1 */
    uint8_t *base;         /* of the units */
    size_t bytes;          /* of the segment */
    int fd;
    uint32_t units;
    /* Ours: by unit. */
    uint8_t *orders;        /* of a block that begins there, free or not: order + 1; else 0 */
    bool *free;             /* that block is free */
    uint32_t *next, *prev;  /* in its list */
    uint32_t first[ORDERS]; /* free blocks by order; NONE */
    bool *committed;        /* by granule: it has pages */
    size_t used;
};

static size_t units_of(size_t bytes)
{
    return (bytes + VAULT_MOST_BYTES - 1) / VAULT_MOST_BYTES * (VAULT_MOST_BYTES / VAULT_LEAST_BYTES);
}

static size_t base_offset(size_t units)
{
    return sizeof(struct header) + (units + 4095) / 4096 * 4096;
}

static size_t order_bytes(unsigned order)
{
    return VAULT_LEAST_BYTES << order;
}

static unsigned order_for(size_t size)
{
    unsigned order = 0;
    while (order < ORDERS && order_bytes(order) < size)
        order++;
    return order;
}

/* ---- free lists ---- */

static void add_free(struct vault *vault, uint32_t unit, unsigned order)
{
    vault->orders[unit] = (uint8_t)(order + 1);
    vault->free[unit] = true;
    vault->prev[unit] = NONE;
    vault->next[unit] = vault->first[order];
    if (vault->first[order] != NONE)
        vault->prev[vault->first[order]] = unit;
    vault->first[order] = unit;
}

static void remove_free(struct vault *vault, uint32_t unit, unsigned order)
{
    uint32_t next = vault->next[unit], prev = vault->prev[unit];
    if (prev == NONE)
        vault->first[order] = next;
    else
        vault->next[prev] = next;
    if (next != NONE)
        vault->prev[next] = prev;
    vault->free[unit] = false;
    vault->orders[unit] = 0;
}

/* Frees units, together with their neighbours where those are free. */
static void release(struct vault *vault, uint32_t unit, unsigned order)
{
    for (; order < ORDERS - 1; order++) {
        uint32_t buddy = unit ^ (1u << order);
        if (!vault->free[buddy] || vault->orders[buddy] != order + 1)
            break;
        remove_free(vault, buddy, order);
        unit &= ~(1u << order);
    }
    add_free(vault, unit, order);
}

/* ---- opening ---- */

/* Everything from `from` to `to`, in as few blocks as it takes. */
static void release_range(struct vault *vault, uint32_t from, uint32_t to)
{
    while (from < to) {
        unsigned order = 0;
        while (order < ORDERS - 1 && from % (2u << order) == 0 && to - from >= 2u << order)
            order++;
        release(vault, from, order);
        from += 1u << order;
    }
}

/* The first unit from `unit` on that a block is marked at; `end` when there is none before. Most of a vault
 * is empty, so eight bytes are looked at in one. */
static uint32_t next_marked(const struct vault *vault, uint32_t unit, uint32_t end)
{
    const uint8_t *marks = (const uint8_t *)vault->kept;
    uint64_t eight = 0;
    while (unit < end && marks[unit] == 0) {
        if (unit % sizeof eight == 0 && end - unit >= sizeof eight)
            memcpy(&eight, marks + unit, sizeof eight);
        else
            eight = 1;
        unit += eight == 0 ? sizeof eight : 1;
    }
    return unit;
}

/* Finds the kept blocks; what lies between is free. */
static int take_inventory(struct vault *vault)
{
    uint32_t free_from = 0;
    for (uint32_t unit = 0; (unit = next_marked(vault, unit, vault->units)) < vault->units;) {
        uint8_t mark = atomic_load_explicit(&vault->kept[unit], memory_order_acquire);
        if (mark > ORDERS)
            return -EINVAL;
        uint32_t length = 1u << (mark - 1);
        if (unit % length != 0 || next_marked(vault, unit + 1, unit + length) != unit + length)
            return -EINVAL;
        release_range(vault, free_from, unit);
        vault->orders[unit] = mark;
        vault->used += (size_t)length * VAULT_LEAST_BYTES;
        unit += length;
        free_from = unit;
    }
    release_range(vault, free_from, vault->units);
    return 0;
}

static int map(struct vault *vault)
{
    struct stat st;
    void *memory;
    if (fstat(vault->fd, &st) < 0)
        return -errno;
    if (st.st_size < (off_t)sizeof(struct header))
        return -EINVAL;
    int r = shm_map(vault->fd, (size_t)st.st_size, &memory);
    if (r < 0)
        return r;
    vault->header = memory;
    vault->bytes = (size_t)st.st_size;
    if (vault->header->magic != MAGIC || vault->header->version != VERSION || vault->header->units >= NONE ||
        base_offset(vault->header->units) + vault->header->units * VAULT_LEAST_BYTES != vault->bytes)
        return -EINVAL;
    vault->units = (uint32_t)vault->header->units;
    vault->kept = (_Atomic uint8_t *)memory + sizeof(struct header);
    vault->base = (uint8_t *)memory + base_offset(vault->units);
    return 0;
}

static int make_books(struct vault *vault)
{
    vault->orders = calloc(vault->units, 1);
    vault->free = calloc(vault->units, sizeof *vault->free);
    vault->next = malloc(vault->units * sizeof *vault->next);
    vault->prev = malloc(vault->units * sizeof *vault->prev);
    vault->committed = calloc(vault->units * VAULT_LEAST_BYTES / GRANULE, sizeof *vault->committed);
    for (unsigned order = 0; order < ORDERS; order++)
        vault->first[order] = NONE;
    return vault->orders && vault->free && vault->next && vault->prev && vault->committed ? 0 : -ENOMEM;
}

int vault_create(size_t bytes, int *ret_fd)
{
    size_t units = units_of(bytes);
    const struct header header = {.magic = MAGIC, .version = VERSION, .units = units};
    int fd;
    int r = shm_create("quern-vault", base_offset(units), &fd);
    if (r < 0)
        return r;
    if (pwrite(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        ftruncate(fd, (off_t)(base_offset(units) + units * VAULT_LEAST_BYTES)) < 0)
        r = -errno;
    if (r == 0)
        r = shm_seal_size(fd);
    if (r < 0)
        close(fd);
    else
        *ret_fd = fd;
    return r;
}

int vault_open(int fd, struct vault **ret_vault, struct error *err)
{
    struct vault *vault = calloc(1, sizeof *vault);
    if (!vault)
        return error_set(err, -ENOMEM, "out of memory");
    vault->fd = fd;
    int r = map(vault);
    if (r == 0)
        r = make_books(vault);
    if (r == 0)
        r = take_inventory(vault);
    if (r < 0) {
        vault_close(vault);
        return error_set(err, r, "the shared memory of requests: %s", strerror(-r));
    }
    *ret_vault = vault;
    return 0;
}

struct vault *vault_close(struct vault *vault)
{
    if (vault) {
        if (vault->header)
            munmap(vault->header, vault->bytes);
        free(vault->orders);
        free(vault->free);
        free(vault->next);
        free(vault->prev);
        free(vault->committed);
        free(vault);
    }
    return NULL;
}

/* ---- blocks ---- */

static uint32_t unit_of(const struct vault *vault, const void *block)
{
    return (uint32_t)((size_t)((const uint8_t *)block - vault->base) / VAULT_LEAST_BYTES);
}

/* Asks for the pages of a block. */
static int commit(struct vault *vault, uint32_t unit, unsigned order)
{
    size_t from = unit * VAULT_LEAST_BYTES, to = from + order_bytes(order);
    for (size_t granule = from / GRANULE; granule * GRANULE < to; granule++) {
        if (vault->committed[granule])
            continue;
        off_t at = (off_t)(base_offset(vault->units) + granule * GRANULE);
        if (fallocate(vault->fd, FALLOC_FL_KEEP_SIZE, at, (off_t)GRANULE) < 0)
            return -errno;
        vault->committed[granule] = true;
    }
    return 0;
}

void *vault_take(struct vault *vault, size_t size, size_t *ret_size)
{
    unsigned wanted = order_for(size), order = wanted;
    while (order < ORDERS && vault->first[order] == NONE)
        order++;
    if (order >= ORDERS)
        return NULL;
    uint32_t unit = vault->first[order];
    if (commit(vault, unit, wanted) < 0)
        return NULL;
    remove_free(vault, unit, order);
    while (order > wanted) {
        order--;
        add_free(vault, unit + (1u << order), order);
    }
    vault->orders[unit] = (uint8_t)(wanted + 1);
    vault->used += order_bytes(wanted);
    *ret_size = order_bytes(wanted);
    return vault->base + unit * VAULT_LEAST_BYTES;
}

void vault_keep(struct vault *vault, void *block)
{
    uint32_t unit = unit_of(vault, block);
    atomic_store_explicit(&vault->kept[unit], vault->orders[unit], memory_order_release);
}

size_t vault_shrink(struct vault *vault, void *block, size_t size)
{
    uint32_t unit = unit_of(vault, block);
    unsigned order = vault->orders[unit] - 1u, wanted = order_for(size);
    if (wanted >= order)
        return order_bytes(order);
    vault->orders[unit] = (uint8_t)(wanted + 1);
    if (atomic_load_explicit(&vault->kept[unit], memory_order_relaxed) != 0)
        vault_keep(vault, block);
    vault->used -= order_bytes(order) - order_bytes(wanted);
    for (; wanted < order; wanted++)
        release(vault, unit + (1u << wanted), wanted);
    return order_bytes(vault->orders[unit] - 1u);
}

void vault_give(struct vault *vault, void *block)
{
    uint32_t unit = unit_of(vault, block);
    unsigned order = vault->orders[unit] - 1u;
    atomic_store_explicit(&vault->kept[unit], 0, memory_order_release);
    vault->orders[unit] = 0;
    vault->used -= order_bytes(order);
    release(vault, unit, order);
}

void *vault_next(const struct vault *vault, const void *block, size_t *ret_size)
{
    uint32_t unit = 0;
    if (block) {
        unit = unit_of(vault, block);
        unit += 1u << (vault->orders[unit] - 1);
    }
    /* A block that is not kept, or free, has its length in our books. */
    while (unit < vault->units && atomic_load_explicit(&vault->kept[unit], memory_order_relaxed) == 0)
        unit += 1u << (vault->orders[unit] - 1);
    if (unit >= vault->units)
        return NULL;
    *ret_size = order_bytes(vault->orders[unit] - 1u);
    return vault->base + unit * VAULT_LEAST_BYTES;
}

void vault_trim(struct vault *vault)
{
    for (uint32_t unit = 0; unit < vault->units; unit += 1u << (vault->orders[unit] - 1)) {
        size_t at = unit * VAULT_LEAST_BYTES, bytes = order_bytes(vault->orders[unit] - 1u);
        if (!vault->free[unit] || bytes < GRANULE)
            continue;
        for (size_t granule = at / GRANULE; granule < (at + bytes) / GRANULE; granule++) {
            if (!vault->committed[granule])
                continue;
            fallocate(vault->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      (off_t)(base_offset(vault->units) + granule * GRANULE), (off_t)GRANULE);
            vault->committed[granule] = false;
        }
    }
}

size_t vault_used(const struct vault *vault)
{
    return vault->used;
}
