/* SPDX-License-Identifier: MIT */
/* The segment: a header of one page, the places, the bytes of each place's block.
 *
 * The header has the size of blocks, settled once by a single compare-and-swap, from which and from the size
 * of the segment all else follows, and the counters of numbers and uses. A place has its word, when it was
 * used, who it is (`identity`), and a checksum of that and of its bytes.
 *
 * The word of a place: a count, the second in which it was claimed, a bit that says that it is. A claim is a
 * compare-and-swap that raises the count; the end of one is another, which fails for a writer that stood
 * still for so long that it was given up: whatever it wrote into a place that is another's by now, the
 * checksum does not fit. A reader compares the word before and after. Identity and bytes are copied before
 * they are looked at, for they may change at any time. */

#include "engine/cache/prefix_store.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/amount.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/system/shm.h"
#include "engine/backend/backend.h"

#define MAGIC      0x51505331u /* "QPS1" */
#define WAYS       8
#define LEAST_SETS 1
#define GIVEN_UP_S 1 /* a claim older than that is of a process that died: a block is written in a moment */
#define PAGE       4096
#define DEPTH_BITS 20
#define MOST_DEPTH ((1u << DEPTH_BITS) - 1)

struct identity {
    uint64_t number, before;
    int32_t ids[BACKEND_BLOCK_TOKENS];
    /* Of a first block, else zero. */
    uint64_t layout;
    uint8_t model[16];
    uint32_t salt_len;
    uint8_t salt[PREFIX_STORE_MAX_SALT];
    uint32_t zero;
};
_Static_assert(sizeof(struct identity) == 8 * 3 + 128 + 16 + 8 + PREFIX_STORE_MAX_SALT,
               "nothing between members");

struct place {
    _Atomic uint64_t word;
    _Atomic uint64_t used; /* use << DEPTH_BITS | MOST_DEPTH − depth */
    uint64_t checksum;
    struct identity identity;
    uint8_t padding[512 - 24 - sizeof(struct identity)];
};
_Static_assert(sizeof(struct place) == 512, "layout of a place");

struct header {
    _Atomic uint64_t shape; /* MAGIC << 32 | bytes of a block; 0: nobody has opened it */
    _Atomic uint64_t numbers, uses;
    uint8_t padding[PAGE - 24];
    struct place places[];
};
_Static_assert(offsetof(struct header, places) == PAGE, "layout of the header");

struct prefix_store {
    struct prefix_store_kind kind;
    struct header *header;
    size_t size;
    uint32_t n_sets;
    uint8_t *bytes; /* [n_sets · WAYS][kind.block_bytes] */
};

/* ---- life ---- */

static int settle(struct prefix_store *store, struct error *err)
{
    uint64_t ours = (uint64_t)MAGIC << 32 | store->kind.block_bytes, found = 0;
    size_t place_bytes = sizeof(struct place) + store->kind.block_bytes;
    uint64_t n_sets = store->size > PAGE ? (store->size - PAGE) / (place_bytes * WAYS) : 0;
    if (n_sets < LEAST_SETS || n_sets > UINT32_MAX / WAYS)
        return error_set(err, -ENOTSUP, "prefix store: %s cannot hold %d blocks of %s",
                         amount_of_bytes(store->size).text, LEAST_SETS * WAYS,
                         amount_of_bytes(store->kind.block_bytes).text);
    if (!atomic_compare_exchange_strong(&store->header->shape, &found, ours) && found != ours)
        return error_set(err, -ENOTSUP, "prefix store: it has blocks of %zu bytes, not %zu",
                         (size_t)(found & UINT32_MAX), store->kind.block_bytes);
    store->n_sets = (uint32_t)n_sets;
    store->bytes = (uint8_t *)store->header + PAGE + n_sets * WAYS * sizeof(struct place);
    return 0;
}

int prefix_store_open(int fd, const struct prefix_store_kind *kind, struct prefix_store **ret_store,
                      struct error *err)
{
    struct stat stat;
    void *memory;
    if (kind->layout == 0 || kind->block_bytes == 0 || kind->block_bytes > UINT32_MAX)
        return error_set(err, -ENOTSUP, "prefix store: the device's KV blocks cannot be exchanged");
    struct prefix_store *store = calloc(1, sizeof *store);
    if (!store)
        return error_set(err, -ENOMEM, "prefix store: out of memory");
    store->kind = *kind;
    int r = fstat(fd, &stat) < 0 ? -errno : 0;
    store->size = r == 0 ? (size_t)stat.st_size : 0;
    if (r == 0)
        r = shm_map(fd, store->size, &memory);
    if (r < 0)
        error_set(err, r, "prefix store: %s", strerror(-r));
    else
        store->header = memory;
    if (r == 0)
        r = settle(store, err);
    if (r < 0) {
        prefix_store_close(store);
        return r;
    }
    *ret_store = store;
    return 0;
}

struct prefix_store *prefix_store_close(struct prefix_store *store)
{
    if (store && store->header)
        munmap(store->header, store->size);
    free(store);
    return NULL;
}

uint32_t prefix_store_room(const struct prefix_store *store)
{
    return store->n_sets * WAYS;
}

/* ---- words ---- */

static bool is_claimed(uint64_t word)
{
    return word & 1;
}

static uint32_t now_s(void)
{
    return (uint32_t)(clock_ns() / CLOCK_NS_PER_S) & 0x7fffffff;
}

static bool is_free_to_claim(uint64_t word, uint32_t now)
{
    return !is_claimed(word) || ((now - (uint32_t)(word >> 1)) & 0x7fffffff) > GIVEN_UP_S;
}

/* Claims a place whose word was `word`; the new word, or 0. */
static uint64_t claim(struct place *place, uint64_t word, uint32_t now)
{
    uint64_t ours = ((word >> 32) + 1) << 32 | (uint64_t)now << 1 | 1;
    if (!atomic_compare_exchange_strong_explicit(&place->word, &word, ours, memory_order_acquire,
                                                 memory_order_relaxed))
        return 0;
    /* Release: the claim is seen before anything that is written under it. */
    atomic_thread_fence(memory_order_release);
    return ours;
}

static bool release(struct place *place, uint64_t ours)
{
    uint64_t done = ((ours >> 32) + 1) << 32;
    return atomic_compare_exchange_strong_explicit(&place->word, &ours, done, memory_order_release,
                                                   memory_order_relaxed);
}

/* Whether what was read since the word was `word` is whole. Not inlined: GCC refuses fences under TSan, which
 * has no say over other processes' memory, wherever it inlines one. */
static __attribute__((noinline)) bool is_unchanged(struct place *place, uint64_t word)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&place->word, memory_order_relaxed) == word;
}

/* ---- places ---- */

static void identify(const struct prefix_store *store, const struct prefix_place *place,
                     struct identity *ret_identity)
{
    *ret_identity = (struct identity){.before = place->before};
    memcpy(ret_identity->ids, place->ids, sizeof ret_identity->ids);
    if (place->before != 0)
        return;
    ret_identity->layout = store->kind.layout;
    memcpy(ret_identity->model, store->kind.model, sizeof ret_identity->model);
    ret_identity->salt_len = (uint32_t)place->salt.len;
    if (place->salt.len > 0)
        memcpy(ret_identity->salt, place->salt.data, place->salt.len);
}

static bool is_same(const struct identity *a, const struct identity *b)
{
    return memcmp((const uint8_t *)a + sizeof a->number, (const uint8_t *)b + sizeof b->number,
                  sizeof *a - sizeof a->number) == 0;
}

/* The first place of the set in which one stands; its number does not count. */
static struct place *set_of(const struct prefix_store *store, const struct identity *identity)
{
    uint64_t hash = hash64((const uint8_t *)identity + sizeof identity->number,
                           sizeof *identity - sizeof identity->number, 0);
    return &store->header->places[hash % store->n_sets * WAYS];
}

static uint8_t *bytes_of(const struct prefix_store *store, const struct place *place)
{
    return store->bytes + (size_t)(place - store->header->places) * store->kind.block_bytes;
}

static uint64_t checksum_of(const struct prefix_store *store, const struct identity *identity,
                            const void *bytes)
{
    return hash64(bytes, store->kind.block_bytes, hash64(identity, sizeof *identity, 0));
}

static void use(struct place *place, const struct prefix_place *where)
{
    uint32_t depth = where->depth < MOST_DEPTH ? where->depth : MOST_DEPTH;
    atomic_store_explicit(&place->used, where->use << DEPTH_BITS | (MOST_DEPTH - depth),
                          memory_order_relaxed);
}

/* The place in which that block is; its word, and its number. NULL: there is none. */
static struct place *find(struct prefix_store *store, const struct identity *identity, uint64_t *ret_word,
                          uint64_t *ret_number)
{
    struct place *set = set_of(store, identity);
    for (struct place *place = set; place < set + WAYS; place++) {
        uint64_t word = atomic_load_explicit(&place->word, memory_order_acquire);
        if (word == 0 || is_claimed(word))
            continue;
        struct identity copy = place->identity;
        if (!is_same(&copy, identity) || !is_unchanged(place, word))
            continue;
        *ret_word = word;
        *ret_number = copy.number;
        return place;
    }
    return NULL;
}

/* ---- what is done with them ---- */

uint64_t prefix_store_use(struct prefix_store *store)
{
    return atomic_fetch_add_explicit(&store->header->uses, 1, memory_order_relaxed) + 1;
}

static bool is_too_long(const struct prefix_place *place)
{
    return place->before == 0 && place->salt.len > PREFIX_STORE_MAX_SALT;
}

uint64_t prefix_store_find(struct prefix_store *store, const struct prefix_place *where)
{
    struct identity identity;
    uint64_t word, number;
    if (is_too_long(where))
        return 0;
    identify(store, where, &identity);
    struct place *place = find(store, &identity, &word, &number);
    if (!place)
        return 0;
    use(place, where);
    return number;
}

/* What is there is not what its checksum says: it is made nothing, so that it can be written again. */
static void discard(struct place *place, uint64_t word)
{
    uint64_t ours = claim(place, word, now_s());
    if (!ours)
        return;
    place->identity = (struct identity){0};
    atomic_store_explicit(&place->used, 0, memory_order_relaxed);
    release(place, ours);
}

uint64_t prefix_store_get(struct prefix_store *store, const struct prefix_place *where, void *ret_bytes)
{
    struct identity identity;
    uint64_t word;
    if (is_too_long(where))
        return 0;
    identify(store, where, &identity);
    struct place *place = find(store, &identity, &word, &identity.number);
    if (!place)
        return 0;
    uint64_t checksum = place->checksum;
    memcpy(ret_bytes, bytes_of(store, place), store->kind.block_bytes);
    if (!is_unchanged(place, word))
        return 0;
    if (checksum != checksum_of(store, &identity, ret_bytes)) {
        discard(place, word);
        return 0;
    }
    use(place, where);
    return identity.number;
}

/* One that was never written, or else the one that was used longest ago. */
static struct place *choose_victim(struct place *set, uint32_t now, uint64_t *ret_word)
{
    struct place *victim = NULL;
    uint64_t oldest = UINT64_MAX;
    for (struct place *place = set; place < set + WAYS; place++) {
        uint64_t word = atomic_load_explicit(&place->word, memory_order_relaxed);
        uint64_t used = word == 0 ? 0 : atomic_load_explicit(&place->used, memory_order_relaxed);
        if (!is_free_to_claim(word, now) || (victim && used >= oldest))
            continue;
        victim = place;
        oldest = used;
        *ret_word = word;
    }
    return victim;
}

uint64_t prefix_store_put(struct prefix_store *store, const struct prefix_place *where, const void *bytes)
{
    struct identity identity;
    uint64_t word, number, known = prefix_store_find(store, where);
    uint32_t now = now_s();
    if (known || is_too_long(where))
        return known;
    identify(store, where, &identity);
    struct place *place = choose_victim(set_of(store, &identity), now, &word);
    uint64_t ours = place ? claim(place, word, now) : 0;
    if (!ours)
        return 0;
    number = identity.number =
        atomic_fetch_add_explicit(&store->header->numbers, 1, memory_order_relaxed) + 1;
    place->identity = identity;
    memcpy(bytes_of(store, place), bytes, store->kind.block_bytes);
    place->checksum = checksum_of(store, &identity, bytes);
    use(place, where);
    return release(place, ours) ? number : 0;
}
