/* SPDX-License-Identifier: MIT */
/* Both ways go through buffers of our own: the store's memory may change at any time, and a device copies
 * when it likes.
 *
 * A block's number in the store is known while its contents are the same; each allotment raises the block's
 * generation, and what was noted for another generation means nothing. Copies are read in the order in which
 * they were started, so that a block's number is there before the one behind it is put. */

#include "worker/engine/tier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OWED 1024 /* blocks; beyond, they are not kept: 32,768 tokens that one step has computed */
#define BUFFERS   4    /* each way */
#define AT_ONCE   16   /* blocks of one step, each way: a few milliseconds */

struct owed {               /* a block that is to be copied out */
    uint32_t block, before; /* before: meaningless for a first block */
    uint32_t generation, generation_before;
    uint32_t depth;
    uint64_t space, use;
    int32_t ids[BACKEND_BLOCK_TOKENS];
};

struct copying {
    bool busy;
    uint64_t ticket;
    struct owed what; /* on the way out */
    void *bytes;
};

struct known {       /* of a block */
    uint64_t number; /* in the store; 0: not there, or not known to be */
    uint32_t generation;
};

struct tier {
    const struct backend_ops *ops;
    struct backend *backend;
    struct prefix *prefix;
    struct prefix_store *store;
    struct known *known; /* [blocks] */
    struct owed *owed;   /* [MOST_OWED], a ring */
    uint32_t first_owed, n_owed;
    struct copying out[BUFFERS], in[BUFFERS];
    uint32_t first_out, n_out; /* a ring */
    uint32_t left;             /* blocks that may still be brought in this step */
    uint64_t restores;
};

/* ---- life ---- */

int tier_new(const struct backend_ops *ops, struct backend *backend, struct prefix *prefix,
             struct prefix_store *store, struct tier **ret_tier)
{
    struct backend_info info;
    ops->info(backend, &info);
    struct tier *tier = calloc(1, sizeof *tier);
    if (!tier)
        return -ENOMEM;
    *tier = (struct tier){.ops = ops, .backend = backend, .prefix = prefix};
    tier->known = calloc(info.groups[0].n_blocks, sizeof *tier->known);
    tier->owed = calloc(MOST_OWED, sizeof *tier->owed);
    bool all = tier->known && tier->owed;
    for (uint32_t i = 0; i < BUFFERS; i++) {
        tier->out[i].bytes = malloc(info.groups[0].block_bytes);
        tier->in[i].bytes = malloc(info.groups[0].block_bytes);
        all = all && tier->out[i].bytes && tier->in[i].bytes;
    }
    if (!all) {
        tier_free(tier);
        return -ENOMEM;
    }
    tier->store = store;
    *ret_tier = tier;
    return 0;
}

struct tier *tier_free(struct tier *tier)
{
    if (!tier)
        return NULL;
    for (uint32_t i = 0; i < BUFFERS; i++) {
        free(tier->out[i].bytes);
        free(tier->in[i].bytes);
    }
    prefix_store_close(tier->store);
    free(tier->known);
    free(tier->owed);
    free(tier);
    return NULL;
}

void tier_fresh(struct tier *tier, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tier->known[ids[i]].number = 0;
        tier->known[ids[i]].generation++;
    }
}

static uint64_t use_of(struct tier *tier, struct sequence *sequence)
{
    if (sequence->store_use == 0)
        sequence->store_use = prefix_store_use(tier->store);
    return sequence->store_use;
}

/* ---- out ---- */

void tier_offer(struct tier *tier, struct sequence *sequence, uint32_t n)
{
    if (tier->n_owed == MOST_OWED)
        return;
    struct owed *owed = &tier->owed[(tier->first_owed + tier->n_owed++) % MOST_OWED];
    uint32_t block = sequence->blocks[n], before = n > 0 ? sequence->blocks[n - 1] : block;
    *owed = (struct owed){.block = block,
                          .before = before,
                          .generation = tier->known[block].generation,
                          .generation_before = tier->known[before].generation,
                          .depth = n,
                          .space = sequence->space,
                          .use = use_of(tier, sequence)};
    memcpy(owed->ids, sequence->ids.data + (size_t)n * BACKEND_BLOCK_TOKENS, sizeof owed->ids);
}

static bool is_still_there(const struct tier *tier, const struct owed *owed)
{
    return tier->known[owed->block].generation == owed->generation && tier->known[owed->block].number == 0;
}

/* Where it stands in the store; false when what is before it is not there, or the block is another's now. */
static bool find_place(const struct tier *tier, const struct owed *owed, struct prefix_place *ret_place)
{
    const struct known *before = &tier->known[owed->before];
    if (!is_still_there(tier, owed))
        return false;
    if (owed->depth > 0 && (before->generation != owed->generation_before || before->number == 0))
        return false;
    *ret_place = (struct prefix_place){.before = owed->depth > 0 ? before->number : 0,
                                       .salt = prefix_salt(tier->prefix, owed->space),
                                       .ids = owed->ids,
                                       .depth = owed->depth,
                                       .use = owed->use};
    return true;
}

/* Reads the copies that are done, the oldest first. */
static int read_outs(struct tier *tier, struct error *err)
{
    for (; tier->n_out > 0; tier->n_out--, tier->first_out = (tier->first_out + 1) % BUFFERS) {
        struct copying *copying = &tier->out[tier->first_out];
        const struct backend_result *none;
        struct prefix_place place;
        int r = tier->ops->poll(tier->backend, copying->ticket, 0, &none, err);
        if (r < 0)
            return r == -EAGAIN ? 0 : r;
        if (find_place(tier, &copying->what, &place))
            tier->known[copying->what.block].number = prefix_store_put(tier->store, &place, copying->bytes);
    }
    return 0;
}

/* Starts to copy the block that is owed for longest. 0; -EAGAIN: not now; else the device has failed. */
static int start_out(struct tier *tier)
{
    struct owed *owed = &tier->owed[tier->first_owed];
    struct copying *copying = &tier->out[(tier->first_out + tier->n_out) % BUFFERS];
    struct prefix_place place;
    /* Another worker may have put it there. */
    if (find_place(tier, owed, &place))
        tier->known[owed->block].number = prefix_store_find(tier->store, &place);
    if (is_still_there(tier, owed)) {
        const struct backend_copy copy = {.blocks = &owed->block, .n = 1, .host = copying->bytes};
        int r =
            tier->n_out == BUFFERS ? -EAGAIN : tier->ops->copy_out(tier->backend, &copy, &copying->ticket);
        if (r < 0)
            return r;
        copying->what = *owed;
        tier->n_out++;
    }
    tier->first_owed = (tier->first_owed + 1) % MOST_OWED;
    tier->n_owed--;
    return 0;
}

/* ---- in ---- */

static int read_ins(struct tier *tier, struct error *err)
{
    for (uint32_t i = 0; i < BUFFERS; i++) {
        const struct backend_result *none;
        if (!tier->in[i].busy)
            continue;
        int r = tier->ops->poll(tier->backend, tier->in[i].ticket, 0, &none, err);
        if (r < 0 && r != -EAGAIN)
            return r;
        tier->in[i].busy = r == -EAGAIN;
    }
    return 0;
}

static struct copying *free_in(struct tier *tier)
{
    for (uint32_t i = 0; i < BUFFERS; i++)
        if (!tier->in[i].busy)
            return &tier->in[i];
    return NULL;
}

/* The number of the last of n blocks that the cache has; 0: the store has not all of them. */
static uint64_t number_of_last(struct tier *tier, struct sequence *sequence, uint32_t n,
                               struct prefix_place *place)
{
    for (place->depth = 0; place->depth < n; place->depth++) {
        struct known *known = &tier->known[sequence->blocks[place->depth]];
        if (known->number == 0)
            known->number = prefix_store_find(tier->store, place);
        if (known->number == 0)
            return 0;
        place->before = known->number;
        place->ids += BACKEND_BLOCK_TOKENS;
    }
    return place->before;
}

/* Brings one block, to which the caller's table then points. 1: brought; 0: it is not there, or there is no
 * room for it; -EAGAIN: not now. */
static int bring(struct tier *tier, struct sequence *sequence, struct prefix_place *place)
{
    struct copying *copying = free_in(tier);
    uint32_t *block = &sequence->blocks[place->depth];
    if (!copying || tier->left == 0)
        return -EAGAIN;
    uint64_t number = prefix_store_get(tier->store, place, copying->bytes);
    if (number == 0 || !prefix_alloc(tier->prefix, 1, block))
        return 0;
    tier_fresh(tier, block, 1);
    const struct backend_copy copy = {.blocks = block, .n = 1, .host = copying->bytes};
    int r = tier->ops->copy_in(tier->backend, &copy, &copying->ticket);
    copying->busy = r == 0;
    if (r == 0 &&
        prefix_insert(tier->prefix, sequence->space, sequence->ids.data, sequence->blocks, place->depth)) {
        tier->known[*block].number = place->before = number;
        place->ids += BACKEND_BLOCK_TOKENS;
        place->depth++;
        tier->restores++;
        tier->left--;
        return 1;
    }
    prefix_release(tier->prefix, block, 1);
    return r == -EAGAIN ? r : 0;
}

uint32_t tier_restore(struct tier *tier, struct sequence *sequence, uint32_t n, uint32_t most, bool *ret_more)
{
    struct prefix_place place = {.salt = prefix_salt(tier->prefix, sequence->space),
                                 .ids = sequence->ids.data,
                                 .use = use_of(tier, sequence)};
    *ret_more = false;
    if (n > 0 && number_of_last(tier, sequence, n, &place) == 0)
        return 0;
    prefix_hold(tier->prefix, sequence->blocks, n); /* while others are allotted */
    int r = 1;
    while (r == 1 && place.depth < most)
        r = bring(tier, sequence, &place);
    prefix_release(tier->prefix, sequence->blocks, place.depth);
    *ret_more = r == -EAGAIN;
    return place.depth - n;
}

/* ---- each step ---- */

int tier_work(struct tier *tier, struct error *err)
{
    int r = read_ins(tier, err);
    tier->left = AT_ONCE;
    for (uint32_t i = 0; r == 0 && i <= AT_ONCE; i++) {
        r = read_outs(tier, err);
        if (r < 0 || tier->n_owed == 0 || i == AT_ONCE)
            break;
        r = start_out(tier);
        if (r < 0 && r != -EAGAIN)
            error_set(err, r, "a copy of KV blocks could not be started: %s", strerror(-r));
    }
    return r == -EAGAIN ? 0 : r;
}

bool tier_has_work(const struct tier *tier)
{
    return tier->n_owed > 0 || tier->n_out > 0;
}

uint64_t tier_restores(const struct tier *tier)
{
    return tier->restores;
}
