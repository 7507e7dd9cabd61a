/* SPDX-License-Identifier: MIT */
/* Both ways go through a buffer of our own, filled up to whole pieces. What is owed is a place of the cache:
 * by its turn the node may be gone, or have lost its snapshot, and then nothing is copied. */

#include "engine/tier_snapshots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OWED   64
#define LEAST_SHARE 4  /* a snapshot is kept behind at least a quarter of as many blocks as it has pieces */
#define AT_ONCE     16 /* pieces of one step on the way out */

enum out { IDLE, COPYING, PUTTING };

struct owed {
    uint64_t place;
    uint32_t depth;
};

struct tier_snapshots {
    const struct backend_ops *ops;
    struct backend *backend;
    struct prefix *prefix;
    struct prefix_store *store;
    uint32_t group; /* that of snapshots, for copies */
    size_t piece_bytes;
    uint32_t n_pieces;
    struct owed owed[MOST_OWED]; /* a ring */
    uint32_t first_owed, n_owed;

    enum out out;
    uint64_t out_ticket, number, use; /* of the node on its way out */
    uint32_t depth, n_left;           /* pieces */
    uint8_t *out_bytes, *in_bytes;    /* [n_pieces][piece_bytes] */
    bool coming_in;
    uint64_t in_ticket;
};

int tier_snapshots_new(const struct backend_ops *ops, struct backend *backend, struct prefix *prefix,
                       struct prefix_store *store, size_t piece_bytes, struct tier_snapshots **ret_snapshots)
{
    struct backend_info info;
    ops->info(backend, &info);
    struct tier_snapshots *snapshots = calloc(1, sizeof *snapshots);
    if (!snapshots)
        return -ENOMEM;
    *snapshots = (struct tier_snapshots){.ops = ops,
                                         .backend = backend,
                                         .prefix = prefix,
                                         .store = store,
                                         .group = info.n_groups,
                                         .piece_bytes = piece_bytes};
    snapshots->n_pieces = (uint32_t)((info.state_bytes + piece_bytes - 1) / piece_bytes);
    snapshots->out_bytes = calloc(snapshots->n_pieces, piece_bytes);
    snapshots->in_bytes = calloc(snapshots->n_pieces, piece_bytes);
    if (!snapshots->out_bytes || !snapshots->in_bytes) {
        tier_snapshots_free(snapshots);
        return -ENOMEM;
    }
    *ret_snapshots = snapshots;
    return 0;
}

struct tier_snapshots *tier_snapshots_free(struct tier_snapshots *snapshots)
{
    if (snapshots) {
        free(snapshots->out_bytes);
        free(snapshots->in_bytes);
    }
    free(snapshots);
    return NULL;
}

/* Where a piece stands. The ids are the caller's memory. */
static struct prefix_place piece_at(uint64_t number, uint32_t depth, uint32_t piece,
                                    int32_t ids[BACKEND_BLOCK_TOKENS])
{
    for (int i = 0; i < BACKEND_BLOCK_TOKENS; i++)
        ids[i] = -1 - (int32_t)piece;
    return (struct prefix_place){.before = number, .ids = ids, .depth = depth + 1};
}

/* ---- out ---- */

void tier_snapshots_offer(struct tier_snapshots *snapshots, uint64_t place, uint32_t depth)
{
    if ((depth + 1) * LEAST_SHARE < snapshots->n_pieces)
        return; /* it would take the place of more than it saves */
    if (snapshots->n_owed < MOST_OWED)
        snapshots->owed[(snapshots->first_owed + snapshots->n_owed++) % MOST_OWED] =
            (struct owed){place, depth};
}

static void forget_first(struct tier_snapshots *snapshots)
{
    snapshots->first_owed = (snapshots->first_owed + 1) % MOST_OWED;
    snapshots->n_owed--;
}

/* Starts to copy out what is owed for longest. 0; -EAGAIN: not now. */
static int start_out(struct tier_snapshots *snapshots, const struct tier_nodes *nodes)
{
    const struct owed owed = snapshots->owed[snapshots->first_owed];
    uint32_t node, snapshot;
    const bool there =
        prefix_snapshot_at(snapshots->prefix, owed.place, &snapshot) && prefix_node_at(owed.place, &node);
    const uint64_t number = there ? nodes->number(nodes->arg, node) : 0;
    if (there && number == 0 && nodes->on_the_way)
        return -EAGAIN; /* its node is on the way */
    if (number == 0 ||
        tier_snapshots_has(snapshots, number, owed.depth, prefix_store_use(snapshots->store))) {
        forget_first(snapshots);
        return 0;
    }
    const struct backend_copy copy = {
        .group = snapshots->group, .blocks = &snapshot, .n = 1, .host = snapshots->out_bytes};
    int r = snapshots->ops->copy_out(snapshots->backend, &copy, &snapshots->out_ticket);
    if (r < 0)
        return r;
    forget_first(snapshots);
    snapshots->out = COPYING;
    snapshots->number = number;
    snapshots->depth = owed.depth;
    snapshots->use = prefix_store_use(snapshots->store);
    snapshots->n_left = snapshots->n_pieces;
    return 0;
}

static void put_pieces(struct tier_snapshots *snapshots)
{
    int32_t ids[BACKEND_BLOCK_TOKENS];
    for (int i = 0; i < AT_ONCE && snapshots->n_left > 0; i++) {
        const uint32_t piece = --snapshots->n_left;
        struct prefix_place place = piece_at(snapshots->number, snapshots->depth, piece, ids);
        place.use = snapshots->use;
        if (prefix_store_put(snapshots->store, &place,
                             snapshots->out_bytes + piece * snapshots->piece_bytes) == 0)
            snapshots->n_left = 0; /* no room just now: without one the others are worth nothing */
    }
    if (snapshots->n_left == 0)
        snapshots->out = IDLE;
}

/* 0 when it is done, -EAGAIN, or the device has failed. */
static int read_copy(const struct tier_snapshots *snapshots, uint64_t ticket, int timeout_ms,
                     struct error *err)
{
    const struct backend_result *none;
    return snapshots->ops->poll(snapshots->backend, ticket, timeout_ms, &none, err);
}

static int read_in(struct tier_snapshots *snapshots, int timeout_ms, struct error *err)
{
    int r = snapshots->coming_in ? read_copy(snapshots, snapshots->in_ticket, timeout_ms, err) : 0;
    snapshots->coming_in = snapshots->coming_in && r < 0;
    return r;
}

static int read_out(struct tier_snapshots *snapshots, int timeout_ms, struct error *err)
{
    int r = snapshots->out == COPYING ? read_copy(snapshots, snapshots->out_ticket, timeout_ms, err) : 0;
    if (r == 0 && snapshots->out == COPYING)
        snapshots->out = PUTTING;
    return r;
}

int tier_snapshots_wait(struct tier_snapshots *snapshots, int timeout_ms, struct error *err)
{
    if (!snapshots->coming_in && snapshots->out != COPYING)
        return 0;
    int r = snapshots->coming_in ? read_in(snapshots, timeout_ms, err) : read_out(snapshots, timeout_ms, err);
    return r == 0 || r == -EAGAIN ? 1 : r;
}

int tier_snapshots_work(struct tier_snapshots *snapshots, const struct tier_nodes *nodes, struct error *err)
{
    int r = read_in(snapshots, 0, err);
    if (r == 0)
        r = read_out(snapshots, 0, err);
    if (r < 0)
        return r == -EAGAIN ? 0 : r;
    switch (snapshots->out) {
    case IDLE:
        r = snapshots->n_owed > 0 ? start_out(snapshots, nodes) : 0;
        if (r < 0 && r != -EAGAIN)
            return error_set(err, r, "a copy of a state could not be started: %s", strerror(-r));
        return 0;
    case COPYING: /* which read_out has ended */
    case PUTTING:
        put_pieces(snapshots);
        return 0;
    }
    return 0;
}

bool tier_snapshots_has_work(const struct tier_snapshots *snapshots)
{
    return snapshots->n_owed > 0 || snapshots->out != IDLE || snapshots->coming_in;
}

/* ---- in ---- */

bool tier_snapshots_has(const struct tier_snapshots *snapshots, uint64_t number, uint32_t depth, uint64_t use)
{
    int32_t ids[BACKEND_BLOCK_TOKENS];
    bool has = true;
    /* The first was put last: of what is being put, and of nodes without one, one look tells. */
    for (uint32_t piece = 0; has && piece < snapshots->n_pieces; piece++) {
        struct prefix_place place = piece_at(number, depth, piece, ids);
        place.use = use;
        has = prefix_store_find(snapshots->store, &place) != 0;
    }
    return has;
}

int tier_snapshots_bring(struct tier_snapshots *snapshots, uint64_t place, uint64_t number, uint32_t depth)
{
    int32_t ids[BACKEND_BLOCK_TOKENS];
    uint32_t snapshot;
    if (snapshots->coming_in)
        return -EAGAIN;
    const uint64_t use = prefix_store_use(snapshots->store);
    for (uint32_t piece = 0; piece < snapshots->n_pieces; piece++) {
        struct prefix_place at = piece_at(number, depth, piece, ids);
        at.use = use;
        if (prefix_store_get(snapshots->store, &at, snapshots->in_bytes + piece * snapshots->piece_bytes) ==
            0)
            return 0;
    }
    if (!prefix_take_snapshot(snapshots->prefix, &snapshot))
        return 0;
    const struct backend_copy copy = {
        .group = snapshots->group, .blocks = &snapshot, .n = 1, .host = snapshots->in_bytes};
    int r = snapshots->ops->copy_in(snapshots->backend, &copy, &snapshots->in_ticket);
    if (r < 0) {
        prefix_return_snapshot(snapshots->prefix, snapshot);
        return r == -EAGAIN ? r : 0;
    }
    snapshots->coming_in = true; /* what begins with it comes after it, by the order of copies and steps */
    return prefix_give_snapshot(snapshots->prefix, place, snapshot);
}
