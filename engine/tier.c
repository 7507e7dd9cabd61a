/* SPDX-License-Identifier: MIT */
/* Both ways go through buffers of our own: the store's memory may change at any time, and a device copies
 * when it likes. A buffer takes a block of each group, and is one copy for each.
 *
 * A block's number in the store is known while its contents are the same; each allotment raises the block's
 * generation, and what was noted for another generation means nothing. Copies are read in the order in which
 * they were started, so that a block's number is there before the one behind it is put. */

#include "engine/tier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tier_snapshots.h"

#define MOST_OWED 1024 /* blocks; beyond, they are not kept: 32,768 tokens that one step has computed */
#define BUFFERS   4    /* each way; on the way in, a step fills each once */
#define AT_ONCE   16   /* blocks of one step on the way out: a few milliseconds */

struct owed {                             /* a node of the cache that is to be copied out */
    uint32_t blocks[BACKEND_MOST_GROUPS]; /* of it */
    uint32_t generations[BACKEND_MOST_GROUPS];
    uint32_t before, generation_before; /* of group 0; meaningless for a first one */
    uint32_t depth;
    uint64_t space, use;
    int32_t ids[BACKEND_BLOCK_TOKENS];
};

struct copying {
    bool busy;
    bool whole; /* all groups are on their way */
    uint64_t tickets[BACKEND_MOST_GROUPS];
    uint32_t n_tickets;
    struct owed what;                   /* on the way out */
    uint32_t held[BACKEND_MOST_GROUPS]; /* on the way in: [n_groups], nobody else's until they are there */
    uint8_t *bytes;
};

struct known {       /* of a block */
    uint64_t number; /* of group 0: in the store; 0: not there, or not known to be */
    uint32_t generation;
};

struct tier {
    const struct backend_ops *ops;
    struct backend *backend;
    struct prefix *prefix;
    struct prefix_store *store;
    struct backend_group groups[BACKEND_MOST_GROUPS];
    uint32_t n_groups;
    struct known *known[BACKEND_MOST_GROUPS]; /* [the group's blocks] */
    struct owed *owed;                        /* [MOST_OWED], a ring */
    uint32_t first_owed, n_owed;
    struct tier_snapshots *snapshots; /* NULL: the model's sequences have no states */
    struct copying out[BUFFERS], in[BUFFERS];
    uint32_t first_out, n_out; /* a ring */
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
    *tier = (struct tier){.ops = ops, .backend = backend, .prefix = prefix, .n_groups = info.n_groups};
    tier->owed = calloc(MOST_OWED, sizeof *tier->owed);
    bool all = tier->owed != NULL;
    size_t bytes = 0;
    for (uint32_t g = 0; g < info.n_groups; g++) {
        tier->groups[g] = info.groups[g];
        tier->known[g] = calloc(info.groups[g].n_blocks, sizeof *tier->known[g]);
        all = all && tier->known[g];
        bytes += info.groups[g].block_bytes;
    }
    for (uint32_t i = 0; i < BUFFERS; i++) {
        tier->out[i].bytes = malloc(bytes);
        tier->in[i].bytes = malloc(bytes);
        all = all && tier->out[i].bytes && tier->in[i].bytes;
    }
    if (info.state_bytes > 0)
        all = all && tier_snapshots_new(ops, backend, prefix, store, bytes, &tier->snapshots) == 0;
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
    tier_snapshots_free(tier->snapshots);
    prefix_store_close(tier->store);
    for (uint32_t g = 0; g < tier->n_groups; g++)
        free(tier->known[g]);
    free(tier->owed);
    free(tier);
    return NULL;
}

void tier_fresh(struct tier *tier, uint32_t group, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tier->known[group][ids[i]].number = 0;
        tier->known[group][ids[i]].generation++;
    }
}

static uint64_t use_of(struct tier *tier, struct sequence *sequence)
{
    if (sequence->store_use == 0)
        sequence->store_use = prefix_store_use(tier->store);
    return sequence->store_use;
}

/* ---- copies ---- */

/* Starts to copy the blocks, one of each group, out to the buffer or in from it. 0; -EAGAIN: not all of them,
 * and what was started is waited for as all of it is. */
static int start_copies(struct tier *tier, struct copying *copying, const uint32_t *blocks, bool out)
{
    uint8_t *host = copying->bytes;
    int r = 0;
    copying->n_tickets = 0;
    for (uint32_t g = 0; r == 0 && g < tier->n_groups; host += tier->groups[g++].block_bytes) {
        const struct backend_copy copy = {.group = g, .blocks = &blocks[g], .n = 1, .host = host};
        uint64_t *ticket = &copying->tickets[copying->n_tickets];
        r = out ? tier->ops->copy_out(tier->backend, &copy, ticket)
                : tier->ops->copy_in(tier->backend, &copy, ticket);
        copying->n_tickets += r == 0;
    }
    copying->whole = r == 0;
    return r;
}

/* 0 when all are done, -EAGAIN, or the device has failed. Waits for each up to timeout_ms. */
static int read_copies(struct tier *tier, struct copying *copying, int timeout_ms, struct error *err)
{
    int r = 0;
    while (r == 0 && copying->n_tickets > 0) {
        const struct backend_result *none;
        r = tier->ops->poll(tier->backend, copying->tickets[copying->n_tickets - 1], timeout_ms, &none, err);
        copying->n_tickets -= r == 0;
    }
    return r;
}

/* ---- out ---- */

void tier_offer(struct tier *tier, struct sequence *sequence, uint32_t n, uint64_t before)
{
    if (tier->n_owed == MOST_OWED)
        return;
    struct owed *owed = &tier->owed[(tier->first_owed + tier->n_owed++) % MOST_OWED];
    *owed = (struct owed){.depth = n, .space = sequence->space, .use = use_of(tier, sequence)};
    for (uint32_t g = 0; g < tier->n_groups; g++) {
        owed->blocks[g] = sequence->tables[g][n];
        owed->generations[g] = tier->known[g][owed->blocks[g]].generation;
    }
    if (prefix_node_at(before, &owed->before))
        owed->generation_before = tier->known[0][owed->before].generation;
    memcpy(owed->ids, sequence->ids.data + (size_t)n * BACKEND_BLOCK_TOKENS, sizeof owed->ids);
}

static bool is_still_there(const struct tier *tier, const struct owed *owed)
{
    bool there = tier->known[0][owed->blocks[0]].number == 0;
    for (uint32_t g = 0; g < tier->n_groups; g++)
        there = there && tier->known[g][owed->blocks[g]].generation == owed->generations[g];
    return there;
}

/* Where it stands in the store; false when what is before it is not there, or a block is another's now. */
static bool find_place(const struct tier *tier, const struct owed *owed, struct prefix_place *ret_place)
{
    const struct known *before = &tier->known[0][owed->before];
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
        struct prefix_place place;
        int r = read_copies(tier, copying, 0, err);
        if (r < 0)
            return r == -EAGAIN ? 0 : r;
        if (copying->whole && find_place(tier, &copying->what, &place))
            tier->known[0][copying->what.blocks[0]].number =
                prefix_store_put(tier->store, &place, copying->bytes);
    }
    return 0;
}

/* Starts to copy what is owed for longest. 0; -EAGAIN: not now; else the device has failed. */
static int start_out(struct tier *tier)
{
    struct owed *owed = &tier->owed[tier->first_owed];
    struct copying *copying = &tier->out[(tier->first_out + tier->n_out) % BUFFERS];
    struct prefix_place place;
    /* Another worker may have put it there. */
    if (find_place(tier, owed, &place))
        tier->known[0][owed->blocks[0]].number = prefix_store_find(tier->store, &place);
    if (is_still_there(tier, owed)) {
        int r = tier->n_out == BUFFERS ? -EAGAIN : start_copies(tier, copying, owed->blocks, true);
        if (tier->n_out < BUFFERS && copying->n_tickets > 0) {
            copying->what = *owed;
            tier->n_out++;
        }
        if (r < 0)
            return r;
    }
    tier->first_owed = (tier->first_owed + 1) % MOST_OWED;
    tier->n_owed--;
    return 0;
}

/* ---- in ---- */

/* Gives back the blocks that came in, or were to. */
static void let_go(struct tier *tier, const uint32_t *blocks, uint32_t n_groups)
{
    for (uint32_t g = 0; g < n_groups; g++)
        prefix_release(tier->prefix, g, &blocks[g], 1);
}

static int read_ins(struct tier *tier, struct error *err)
{
    for (uint32_t i = 0; i < BUFFERS; i++) {
        if (!tier->in[i].busy)
            continue;
        int r = read_copies(tier, &tier->in[i], 0, err);
        if (r < 0 && r != -EAGAIN)
            return r;
        tier->in[i].busy = r == -EAGAIN;
        if (r == 0)
            let_go(tier, tier->in[i].held, tier->n_groups);
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

/* The number of the last of n nodes that the cache has; 0: the store has not all of them. */
static uint64_t number_of_last(struct tier *tier, struct sequence *sequence, uint32_t n,
                               struct prefix_place *place)
{
    for (place->depth = 0; place->depth < n; place->depth++) {
        struct known *known = &tier->known[0][sequence->tables[0][place->depth]];
        if (known->number == 0)
            known->number = prefix_store_find(tier->store, place);
        if (known->number == 0)
            return 0;
        place->before = known->number;
        place->ids += BACKEND_BLOCK_TOKENS;
    }
    return place->before;
}

/* A block of each group for the tier, or none. */
static bool take_blocks(struct tier *tier, uint32_t *ret_blocks)
{
    for (uint32_t g = 0; g < tier->n_groups; g++) {
        if (!prefix_alloc(tier->prefix, g, 1, &ret_blocks[g])) {
            let_go(tier, ret_blocks, g);
            return false;
        }
        tier_fresh(tier, g, &ret_blocks[g], 1);
    }
    return true;
}

/* What a restore holds of the sequence's tables: of group 0 all that was found and brought, and of the others
 * what the row behind it sees. */
static void hold_found(struct tier *tier, const struct sequence *sequence, uint32_t n,
                       uint32_t ret_from[BACKEND_MOST_GROUPS])
{
    for (uint32_t g = 0; g < tier->n_groups; g++) {
        ret_from[g] = g > 0 ? backend_first_block(&tier->groups[g], n * BACKEND_BLOCK_TOKENS) : 0;
        prefix_hold(tier->prefix, g, sequence->tables[g] + ret_from[g], n - ret_from[g]);
    }
}

/* One more: the tables point at the node's blocks, which may be others than those that were brought. */
static void hold_brought(struct tier *tier, const struct sequence *sequence, uint32_t n,
                         uint32_t from[BACKEND_MOST_GROUPS])
{
    for (uint32_t g = 0; g < tier->n_groups; g++) {
        const struct backend_group *group = &tier->groups[g];
        const uint32_t out = g > 0 ? backend_first_block(group, (n + 1) * BACKEND_BLOCK_TOKENS) : 0;
        prefix_hold(tier->prefix, g, sequence->tables[g] + n, 1);
        prefix_release(tier->prefix, g, sequence->tables[g] + from[g], out - from[g]);
        from[g] = out;
    }
}

/* Brings what is at one place, to which the caller's tables then point. 1: brought; 0: it is not there, or
 * there is no room for it; -EAGAIN: not now. */
static int bring(struct tier *tier, struct sequence *sequence, struct prefix_place *place)
{
    struct copying *copying = free_in(tier);
    const uint32_t n = place->depth;
    if (!copying)
        return -EAGAIN;
    uint64_t number = prefix_store_get(tier->store, place, copying->bytes);
    uint32_t node, *blocks = copying->held;
    if (number == 0 || !take_blocks(tier, blocks))
        return 0;
    int r = start_copies(tier, copying, blocks, false);
    copying->busy = copying->n_tickets > 0;
    if (r == 0) {
        uint64_t at = sequence->place;
        prefix_insert(tier->prefix, &at, place->ids, blocks);
        if (!prefix_node_at(at, &node))
            return 0;
        sequence->place = at;
        for (uint32_t g = 0; g < tier->n_groups; g++)
            sequence->tables[g][n] = prefix_block_of(tier->prefix, node, g);
        tier->known[0][node].number = place->before = number;
        place->ids += BACKEND_BLOCK_TOKENS;
        place->depth++;
        tier->restores++;
        return 1;
    }
    if (!copying->busy)
        let_go(tier, blocks, tier->n_groups);
    return r == -EAGAIN ? r : 0;
}

uint32_t tier_restore(struct tier *tier, struct sequence *sequence, uint32_t n, uint32_t most, bool *ret_more)
{
    struct prefix_place place = {.salt = prefix_salt(tier->prefix, sequence->space),
                                 .ids = sequence->ids.data,
                                 .use = use_of(tier, sequence)};
    uint32_t from[BACKEND_MOST_GROUPS];
    *ret_more = false;
    if (n > 0 && number_of_last(tier, sequence, n, &place) == 0)
        return 0;
    hold_found(tier, sequence, n, from); /* while others are allotted */
    int r = 1;
    while (r == 1 && place.depth < most) {
        r = bring(tier, sequence, &place);
        if (r == 1)
            hold_brought(tier, sequence, place.depth - 1, from);
    }
    for (uint32_t g = tier->n_groups; g-- > 0;)
        prefix_release(tier->prefix, g, sequence->tables[g] + from[g], place.depth - from[g]);
    *ret_more = r == -EAGAIN;
    return place.depth - n;
}

/* ---- snapshots ---- */

void tier_offer_snapshot(struct tier *tier, uint64_t place, uint32_t depth)
{
    if (tier->snapshots)
        tier_snapshots_offer(tier->snapshots, place, depth);
}

static uint64_t number_of(const void *arg, uint32_t node)
{
    const struct tier *tier = arg;
    return tier->known[0][node].number;
}

/* Are nodes owed, or on their way out? */
static bool copies_out(const struct tier *tier)
{
    return tier->n_owed > 0 || tier->n_out > 0;
}

/* How many nodes the last has that the store has a snapshot of, behind the first n and below `most`; 0: none.
 * *ret_number: its own. */
static uint32_t find_snapshot(struct tier *tier, struct sequence *sequence, uint32_t n, uint32_t reach,
                              uint32_t most, uint64_t *ret_number)
{
    struct prefix_place place = {.salt = prefix_salt(tier->prefix, sequence->space),
                                 .ids = sequence->ids.data,
                                 .use = use_of(tier, sequence)};
    uint32_t found = 0;
    for (; place.depth < most; place.depth++, place.ids += BACKEND_BLOCK_TOKENS) {
        uint64_t number = place.depth < reach ? number_of(tier, sequence->tables[0][place.depth]) : 0;
        if (number == 0)
            number = prefix_store_find(tier->store, &place);
        if (number == 0)
            break;
        if (place.depth < reach)
            tier->known[0][sequence->tables[0][place.depth]].number = number;
        if (place.depth >= n && tier_snapshots_has(tier->snapshots, number, place.depth, place.use)) {
            found = place.depth + 1;
            *ret_number = number;
        }
        place.before = number;
    }
    return found;
}

/* Brings the nodes up to those that were found, behind the `reach` that the cache has; how many came. */
static uint32_t bring_nodes(struct tier *tier, struct sequence *sequence, uint32_t reach, bool *ret_more)
{
    const uint64_t place = sequence->place;
    sequence->place =
        reach > 0 ? prefix_place_of(tier->prefix, sequence->tables[0][reach - 1]) : sequence->space;
    const uint32_t brought = tier_restore(tier, sequence, reach, sequence->n_wanted, ret_more);
    sequence->place = place;
    return brought;
}

uint32_t tier_restore_snapshot(struct tier *tier, struct sequence *sequence, uint32_t n, uint32_t reach,
                               uint32_t most, bool *ret_more)
{
    uint64_t number = 0;
    *ret_more = false;
    /* What is looked for anew with each few blocks that came would be looked for as often as there are. */
    if (sequence->n_wanted <= reach)
        sequence->n_wanted = find_snapshot(tier, sequence, n, reach, most, &number);
    if (sequence->n_wanted > reach) {
        const uint32_t brought = bring_nodes(tier, sequence, reach, ret_more);
        if (brought > 0 || *ret_more)
            return brought;
        /* They cannot be had: the last snapshot of a node that is there will do. */
        sequence->n_wanted = find_snapshot(tier, sequence, n, reach, reach, &number);
    }
    const uint32_t found = sequence->n_wanted;
    sequence->n_wanted = 0;
    if (found == 0)
        return 0;
    int r = tier_snapshots_bring(
        tier->snapshots, prefix_place_of(tier->prefix, sequence->tables[0][found - 1]), number, found - 1);
    *ret_more = r == -EAGAIN;
    return r == 1;
}

/* ---- each step ---- */

int tier_work(struct tier *tier, struct error *err)
{
    int r = read_ins(tier, err);
    for (uint32_t i = 0; r == 0 && i <= AT_ONCE; i++) {
        r = read_outs(tier, err);
        if (r < 0 || tier->n_owed == 0 || i == AT_ONCE)
            break;
        r = start_out(tier);
        if (r < 0 && r != -EAGAIN)
            error_set(err, r, "a copy of KV blocks could not be started: %s", strerror(-r));
    }
    const struct tier_nodes nodes = {number_of, tier, copies_out(tier)};
    if ((r == 0 || r == -EAGAIN) && tier->snapshots)
        r = tier_snapshots_work(tier->snapshots, &nodes, err);
    return r == -EAGAIN ? 0 : r;
}

int tier_wait(struct tier *tier, int timeout_ms, struct error *err)
{
    int r = tier->snapshots ? tier_snapshots_wait(tier->snapshots, timeout_ms, err) : 0;
    if (r != 0)
        return r < 0 ? r : 0;
    struct copying *copying = tier->n_out > 0 ? &tier->out[tier->first_out] : NULL;
    for (uint32_t i = 0; i < BUFFERS; i++)
        if (tier->in[i].n_tickets > 0)
            copying = &tier->in[i];
    r = copying ? read_copies(tier, copying, timeout_ms, err) : 0;
    return r == -EAGAIN ? 0 : r;
}

bool tier_has_work(const struct tier *tier)
{
    bool work = copies_out(tier) || (tier->snapshots && tier_snapshots_has_work(tier->snapshots));
    for (uint32_t i = 0; i < BUFFERS; i++)
        work = work || tier->in[i].busy;
    return work;
}

uint64_t tier_restores(const struct tier *tier)
{
    return tier->restores;
}
