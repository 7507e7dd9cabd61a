/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_UNREAD_H
#define GATEWAY_HTTP_UNREAD_H

/* The bytes of answers that clients have not read yet, and which clients are cut off when there is no room
 * for more.
 *
 *   MAKING ──unread_offer──▶ OFFERED ──unread_end──▶ ENDED
 *
 * Each answer has a share. One that is being made cannot be read yet; one that is offered can, and its client
 * is slow when it has had something to read for ten seconds and has taken less than 64 KiB a second. When all
 * shares together would exceed the budget, the largest slow one is displaced. If there is none, a stream that
 * is under way displaces the largest of all, and what is new is refused, unless it meets something in the
 * making that is four times as large: so nobody does to others what they could not have done to themselves.
 *
 * Used on one thread. */

#include <stdint.h>

#include "gateway/http/budget.h"

enum unread_state { UNREAD_MAKING, UNREAD_OFFERED, UNREAD_ENDED };

struct unread_share {
    enum unread_state state;
    size_t bytes;       /* in the budget */
    uint64_t behind_ns; /* since when there has been something to read */
    size_t taken;       /* bytes, since then */
    struct unread_share *next, *prev;
};

struct unread {
    struct budget budget;
    struct unread_share *shares; /* utlist: all */
    /* Ends an answer, or refuses it while it is being made: gives back all of the share's bytes, and sets
     * UNREAD_ENDED or offers a few bytes instead. */
    void (*displace)(struct unread_share *share);
};

/* A new share, MAKING and empty; zeroed before. */
void unread_begin(struct unread *unread, struct unread_share *share);

/* Gives back all that the share still has, and forgets it. */
void unread_end(struct unread *unread, struct unread_share *share);

/* Takes room for more bytes of the share, if need be from others. `under_way`: of a stream that has begun.
 * False: there is none, and nothing was taken; it may have been this share that was displaced. */
bool unread_take(struct unread *unread, struct unread_share *share, size_t bytes, bool under_way);

/* Takes it whether there is some or not: for a few bytes. */
void unread_force(struct unread *unread, struct unread_share *share, size_t bytes);
void unread_give(struct unread *unread, struct unread_share *share, size_t bytes);

/* There is something to read from now on, after nothing was. */
void unread_offer(struct unread_share *share);

#endif
