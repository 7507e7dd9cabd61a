/* SPDX-License-Identifier: MIT */
/* The buddy system, with its books in two places.
 *
 *     segment:   header │ a byte for each unit of 512 bytes │ the units
 *
 * A block that is handed out begins where one of a power of two does, and takes 5 to 8 eighths of that: what
 * is behind is free, in blocks of powers of two, as all free memory is. Without that a request of 4 MiB
 * took 8.
 *
 * The byte of a kept block's first unit is its size (a code), all others are 0: that is everything that the
 * next process needs, and a single store keeps, shrinks or frees a block. The lists of free blocks are this
 * process's own, and made anew from those bytes; free memory is never written to.
 *
 * The segment is as large as it may ever get, and empty of pages at first. Pages are asked for a granule at a
 * time, before a block there is handed out, so a machine that has none left is an error here and not a
 * SIGBUS later. */

#include "broker/books/vault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/shm.h"

#define MAGIC   0x544c5641u /* "AVLT" */
#define VERSION 5u /* also of what brokers keep in it: another layout of records or logs is another one */
#define ORDERS  18 /* 512 bytes to 64 MiB */
#define EIGHTHS 3  /* the first order that has any */
#define LEAST   5  /* eighths; fewer are a smaller order */
#define GAPS    32 /* that are looked at before more memory is taken */
#define GRANULE ((size_t)1 << 20)
#define NONE    UINT32_MAX

#define STEP_ORDER 15 /* of a step, by which a vault grows */
#define STEP       (1u << STEP_ORDER)
#define MARKS_PAGE 4096 /* bytes, from the header on: no page is smaller */

_Static_assert(VAULT_LEAST_BYTES << STEP_ORDER == VAULT_STEP_BYTES, "a step is a block");
_Static_assert(VAULT_LEAST_BYTES << (ORDERS - 1) == VAULT_MOST_BYTES,
               "the largest order is the largest block");

struct header {
    uint32_t magic, version;
    uint64_t units;
    uint8_t padding[4096 - 16];
};

struct vault {
    struct header *header;
    _Atomic uint8_t *kept; /* [units], in the segment: the code of a kept block */
    uint8_t *base;         /* of the units */
    size_t bytes;          /* of the segment */
    int fd;
    uint32_t units;
    uint32_t fresh; /* from here on no block has been, and none is in a list yet: the books of that part are
                       not touched */
    /* Ours, in one mapping: by unit. */
    void *books;
    size_t books_bytes;
    uint8_t *codes;         /* of a block that begins there, free or not; else 0 */
    bool *free;             /* that block is free */
    uint32_t *next, *prev;  /* in its list */
    uint32_t first[ORDERS]; /* free blocks by order; NONE */
    bool *committed;        /* by granule: it has pages, as we know; it may have some that we do not */
    size_t used;
    bool was_damaged;
};

static size_t units_of(size_t bytes)
{
    return (bytes + VAULT_STEP_BYTES - 1) / VAULT_STEP_BYTES * (VAULT_STEP_BYTES / VAULT_LEAST_BYTES);
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

/* ---- sizes ---- */

/* 1 + 4 * order + eighths beyond LEAST; 0 is no size. */
static uint8_t whole(unsigned order)
{
    return (uint8_t)(1 + order * 4 + 8 - LEAST);
}

static unsigned order_of(uint8_t code)
{
    return (code - 1u) / 4;
}

static uint32_t units_in(uint8_t code)
{
    unsigned order = order_of(code), eighths = LEAST + (code - 1u) % 4;
    return order < EIGHTHS ? 1u << order : eighths << (order - EIGHTHS);
}

static size_t bytes_in(uint8_t code)
{
    return units_in(code) * VAULT_LEAST_BYTES;
}

/* Whether a byte that somebody left can be one. */
static bool is_code(uint8_t code)
{
    return code != 0 && order_of(code) < ORDERS &&
           (order_of(code) >= EIGHTHS || code == whole(order_of(code)));
}

/* The smallest that holds so many bytes, which are VAULT_MOST_BYTES at most. */
static uint8_t code_for(size_t size)
{
    uint8_t code = whole(order_for(size));
    if (order_of(code) >= EIGHTHS)
        while ((code - 1u) % 4 > 0 && bytes_in((uint8_t)(code - 1)) >= size)
            code--;
    return code;
}

/* ---- free lists ---- */

static void add_free(struct vault *vault, uint32_t unit, unsigned order)
{
    vault->codes[unit] = whole(order);
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
    vault->codes[unit] = 0;
}

/* Frees units, together with their neighbours where those are free. */
static void release(struct vault *vault, uint32_t unit, unsigned order)
{
    for (; order < ORDERS - 1; order++) {
        uint32_t buddy = unit ^ (1u << order);
        if (buddy >= vault->units || !vault->free[buddy] || vault->codes[buddy] != whole(order))
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

/* The first unit from `unit` on whose mark was ever written: of pages that are not there, looking would make
 * some, 2 KB for each MiB of the vault. */
static uint32_t next_written(const struct vault *vault, uint32_t unit)
{
    const off_t marks = sizeof(struct header), data = lseek(vault->fd, marks + (off_t)unit, SEEK_DATA);
    if (data < 0)
        return errno == ENXIO ? vault->units : unit;
    return data - marks < (off_t)vault->units ? (uint32_t)(data - marks) : vault->units;
}

/* The first unit from `unit` on that a block is marked at; `end` when there is none before. Most of a vault
 * is empty, so eight bytes are looked at in one. */
static uint32_t next_marked(const struct vault *vault, uint32_t unit, uint32_t end)
{
    const uint8_t *marks = (const uint8_t *)vault->kept;
    uint64_t eight = 0;
    while (unit < end) {
        if (unit % MARKS_PAGE == 0 && (unit = next_written(vault, unit)) >= end)
            return end;
        if (marks[unit] != 0)
            break;
        if (unit % sizeof eight == 0 && end - unit >= sizeof eight)
            memcpy(&eight, marks + unit, sizeof eight);
        else
            eight = 1;
        unit += eight == 0 ? sizeof eight : 1;
    }
    return unit;
}

/* Finds the kept blocks; what lies between is free. -EINVAL when they cannot be. */
static int take_inventory(struct vault *vault)
{
    uint32_t free_from = 0;
    for (uint32_t unit = 0; (unit = next_marked(vault, unit, vault->units)) < vault->units;) {
        uint8_t mark = atomic_load_explicit(&vault->kept[unit], memory_order_acquire);
        if (!is_code(mark))
            return -EINVAL;
        uint32_t length = units_in(mark);
        if (unit % (1u << order_of(mark)) != 0 || length > vault->units - unit ||
            next_marked(vault, unit + 1, unit + length) != unit + length)
            return -EINVAL;
        release_range(vault, free_from, unit);
        vault->codes[unit] = mark;
        vault->used += (size_t)length * VAULT_LEAST_BYTES;
        unit += length;
        free_from = unit;
    }
    vault->fresh = (free_from + STEP - 1) / STEP * STEP;
    release_range(vault, free_from, vault->fresh);
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
    struct header header;
    memcpy(&header, vault->header, sizeof header); /* once: what was checked is what is used */
    if (header.magic != MAGIC || header.version != VERSION || header.units >= NONE ||
        base_offset(header.units) + header.units * VAULT_LEAST_BYTES != vault->bytes)
        return -EINVAL;
    vault->units = (uint32_t)header.units;
    vault->kept = (_Atomic uint8_t *)memory + sizeof(struct header);
    vault->base = (uint8_t *)memory + base_offset(vault->units);
    return 0;
}

static void clear_books(struct vault *vault)
{
    memset(vault->codes, 0, vault->units);
    memset(vault->free, 0, vault->units * sizeof *vault->free);
    for (unsigned order = 0; order < ORDERS; order++)
        vault->first[order] = NONE;
    vault->used = 0;
    vault->fresh = 0;
}

/* Which blocks there were cannot be told any more, so all are gone. Only marks are written to: other pages of
 * them may not be there. */
static void empty(struct vault *vault)
{
    clear_books(vault);
    for (uint32_t unit = 0; (unit = next_marked(vault, unit, vault->units)) < vault->units; unit++)
        atomic_store_explicit(&vault->kept[unit], 0, memory_order_release);
    vault->was_damaged = true;
}

/* Zeros, and as sparse as the vault itself: pages come with the first touch, also where malloc() fills what
 * it gives. */
static int make_books(struct vault *vault)
{
    const size_t units = vault->units, granules = units * VAULT_LEAST_BYTES / GRANULE;
    vault->books_bytes =
        units * (sizeof *vault->next + sizeof *vault->prev + sizeof *vault->codes + sizeof *vault->free) +
        granules * sizeof *vault->committed;
    vault->books = mmap(NULL, vault->books_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (vault->books == MAP_FAILED)
        return -errno;
    vault->next = vault->books;
    vault->prev = vault->next + units;
    vault->codes = (uint8_t *)(vault->prev + units);
    vault->free = (bool *)(vault->codes + units);
    vault->committed = vault->free + units;
    for (unsigned order = 0; order < ORDERS; order++)
        vault->first[order] = NONE;
    return 0;
}

int vault_create(size_t bytes, int *ret_fd)
{
    size_t units = units_of(bytes);
    const struct header header = {.magic = MAGIC, .version = VERSION, .units = units};
    int fd;
    int r = shm_create("quern-vault", sizeof header, &fd);
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

/* Granules of this many bytes behind one another that are free. */
static void punch(struct vault *vault, size_t at, size_t bytes)
{
    if (bytes == 0)
        return;
    fallocate(vault->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(base_offset(vault->units) + at),
              (off_t)bytes);
    memset(vault->committed + at / GRANULE, 0, bytes / GRANULE * sizeof *vault->committed);
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
    if (r < 0) {
        vault_close(vault);
        return error_set(err, r, "the shared memory of requests: %s", strerror(-r));
    }
    if (take_inventory(vault) < 0)
        empty(vault);
    /* The process before may have been killed with much that it had given back. */
    punch(vault, vault->fresh * VAULT_LEAST_BYTES, (vault->units - vault->fresh) * VAULT_LEAST_BYTES);
    vault_trim(vault);
    *ret_vault = vault;
    return 0;
}

bool vault_was_damaged(const struct vault *vault)
{
    return vault->was_damaged;
}

struct vault *vault_close(struct vault *vault)
{
    if (vault) {
        if (vault->header)
            munmap(vault->header, vault->bytes);
        if (vault->next)
            munmap(vault->books, vault->books_bytes);
        free(vault);
    }
    return NULL;
}

/* ---- blocks ---- */

static uint32_t unit_of(const struct vault *vault, const void *block)
{
    return (uint32_t)((size_t)((const uint8_t *)block - vault->base) / VAULT_LEAST_BYTES);
}

static int ask_for_pages(const struct vault *vault, size_t at, size_t bytes)
{
    return fallocate(vault->fd, FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)bytes) < 0 ? -errno : 0;
}

/* Asks for the pages of a block, and of its marks. */
static int commit(struct vault *vault, uint32_t unit, uint8_t code)
{
    size_t from = unit * VAULT_LEAST_BYTES, to = from + bytes_in(code);
    for (size_t granule = from / GRANULE; granule * GRANULE < to; granule++) {
        if (vault->committed[granule])
            continue;
        const size_t marks = GRANULE / VAULT_LEAST_BYTES;
        int r = ask_for_pages(vault, sizeof(struct header) + granule * marks, marks);
        if (r == 0)
            r = ask_for_pages(vault, base_offset(vault->units) + granule * GRANULE, GRANULE);
        if (r < 0)
            return r;
        vault->committed[granule] = true;
    }
    return 0;
}

/* Whether free blocks cover the units from `unit` to `end`, the first of them from its beginning. */
static bool is_free(const struct vault *vault, uint32_t unit, uint32_t end)
{
    while (unit < end && vault->free[unit])
        unit += units_in(vault->codes[unit]);
    return unit >= end;
}

/* Where a block of that size was before, whose rest others have by now; NONE. They would keep out all that is
 * as large otherwise, one small block each. */
static uint32_t find_gap(const struct vault *vault, uint8_t code)
{
    unsigned order = order_of(code);
    if (order < EIGHTHS || code == whole(order))
        return NONE;
    uint32_t unit = vault->first[order - 1];
    for (int i = 0; i < GAPS && unit != NONE; i++, unit = vault->next[unit])
        if (unit % (1u << order) == 0 && units_in(code) <= vault->units - unit &&
            is_free(vault, unit, unit + units_in(code)))
            return unit;
    return NONE;
}

/* Steps in which no block has been yet are added until they make one that is large enough. */
static uint32_t find_whole(struct vault *vault, unsigned least)
{
    for (;;) {
        for (unsigned order = least; order < ORDERS; order++)
            if (vault->first[order] != NONE)
                return vault->first[order];
        if (vault->fresh == vault->units)
            return NONE;
        vault->fresh += STEP;
        release(vault, vault->fresh - STEP, STEP_ORDER);
    }
}

/* Takes the free blocks that cover these units out of their lists; what is beyond stays free. */
static void take_out(struct vault *vault, uint32_t unit, uint32_t end)
{
    uint32_t next = unit;
    while (next < end) {
        uint8_t code = vault->codes[next];
        remove_free(vault, next, order_of(code));
        next += units_in(code);
    }
    release_range(vault, end, next);
}

void *vault_take(struct vault *vault, size_t size, size_t *ret_size)
{
    if (size > VAULT_MOST_BYTES)
        return NULL;
    uint8_t code = code_for(size);
    uint32_t unit = find_gap(vault, code);
    if (unit == NONE)
        unit = find_whole(vault, order_of(code));
    if (unit == NONE || commit(vault, unit, code) < 0)
        return NULL;
    take_out(vault, unit, unit + units_in(code));
    vault->codes[unit] = code;
    vault->used += bytes_in(code);
    *ret_size = bytes_in(code);
    return vault->base + unit * VAULT_LEAST_BYTES;
}

void vault_keep(struct vault *vault, void *block)
{
    uint32_t unit = unit_of(vault, block);
    atomic_store_explicit(&vault->kept[unit], vault->codes[unit], memory_order_release);
}

size_t vault_shrink(struct vault *vault, void *block, size_t size)
{
    uint32_t unit = unit_of(vault, block);
    uint8_t before = vault->codes[unit], code = code_for(size);
    if (units_in(code) >= units_in(before))
        return bytes_in(before);
    vault->codes[unit] = code;
    if (atomic_load_explicit(&vault->kept[unit], memory_order_relaxed) != 0)
        vault_keep(vault, block);
    vault->used -= bytes_in(before) - bytes_in(code);
    release_range(vault, unit + units_in(code), unit + units_in(before));
    return bytes_in(code);
}

void vault_give(struct vault *vault, void *block)
{
    uint32_t unit = unit_of(vault, block), units = units_in(vault->codes[unit]);
    atomic_store_explicit(&vault->kept[unit], 0, memory_order_release);
    vault->codes[unit] = 0;
    vault->used -= units * VAULT_LEAST_BYTES;
    release_range(vault, unit, unit + units);
}

void *vault_next(const struct vault *vault, const void *block, size_t *ret_size)
{
    uint32_t unit = 0;
    if (block) {
        unit = unit_of(vault, block);
        unit += units_in(vault->codes[unit]);
    }
    /* A block that is not kept, or free, has its length in our books. */
    while (unit < vault->fresh && atomic_load_explicit(&vault->kept[unit], memory_order_relaxed) == 0)
        unit += units_in(vault->codes[unit]);
    if (unit >= vault->fresh)
        return NULL;
    *ret_size = bytes_in(vault->codes[unit]);
    return vault->base + unit * VAULT_LEAST_BYTES;
}

/* Free blocks of a granule or more begin where granules do, and smaller ones never cover one. */
void vault_trim(struct vault *vault)
{
    size_t from = 0, to = 0;
    for (uint32_t unit = 0; unit < vault->fresh; unit += units_in(vault->codes[unit])) {
        size_t at = unit * VAULT_LEAST_BYTES, bytes = bytes_in(vault->codes[unit]);
        if (!vault->free[unit] || bytes < GRANULE)
            continue;
        if (at != to) {
            punch(vault, from, to - from);
            from = at;
        }
        to = at + bytes;
    }
    punch(vault, from, to - from);
}

size_t vault_bytes(const struct vault *vault)
{
    return vault->units * VAULT_LEAST_BYTES;
}

size_t vault_used(const struct vault *vault)
{
    return vault->used;
}
