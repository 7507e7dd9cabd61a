/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_UNREAD_H
#define GATEWAY_HTTP_UNREAD_H

/* Bounds the bytes of answers that clients have not read yet, and decides which clients are cut off when
 * there is no room.
 *
 *   MAKING ──unread_offer──▶ OFFERED ──unread_end──▶ ENDED
 *
 * Each answer has a share. A client can read an answer once it is offered, and is slow if it has had
 * something to read for ten seconds and has taken less than 64 KiB a second. If all shares together would
 * exceed the budget, the largest slow one is displaced. If none is slow, a running stream displaces the
 * largest share of all. A new answer is rejected instead, unless it can displace an answer that is still
 * being made and is four times as large.
 *
 * Use it on one thread only. */

#include <stdint.h>

#include "gateway/http/budget.h"

enum unread_state { UNREAD_MAKING, UNREAD_OFFERED, UNREAD_ENDED };

struct unread_share {
    enum unread_state state;
    size_t bytes;       /* in the budget */
    uint64_t behind_ns; /* since when there has been something to read */
    size_t taken;       /* bytes read since then */
    struct unread_share *next, *prev;
};

struct unread {
    struct budget budget;
    struct unread_share *shares; /* utlist: all */
    /* Ends an answer, or rejects it while it is being made: releases all of the share's bytes, and sets
     * UNREAD_ENDED or offers a few bytes instead. */
    void (*displace)(struct unread_share *share);
};

/* Adds a zeroed share, which is then MAKING and empty. */
void unread_begin(struct unread *unread, struct unread_share *share);

/* Releases all of the share's bytes, and forgets it. */
void unread_end(struct unread *unread, struct unread_share *share);

/* Takes room for more bytes of the share, displacing others if needed. `under_way`: a stream has begun.
 * False: there is no room, and nothing was taken; this share may have been displaced itself. */
bool unread_take(struct unread *unread, struct unread_share *share, size_t bytes, bool under_way);

/* Takes room even if there is none, for a few bytes. */
void unread_force(struct unread *unread, struct unread_share *share, size_t bytes);
void unread_give(struct unread *unread, struct unread_share *share, size_t bytes);

/* From now on there is something to read. */
void unread_offer(struct unread_share *share);

#endif
