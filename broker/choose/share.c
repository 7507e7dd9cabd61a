/* SPDX-License-Identifier: MIT */
/* One table for all. A tenant's id is a keyed hash, so no client can choose a session id that equals it. A
 * request is counted for the client that asked for it first, and for its tenant, from admission until it
 * ends, wherever it is attached meanwhile and whether its session is open or not: closing a session and
 * opening it again gains nothing. */

#include "broker/choose/share.h"

#include <stdlib.h>

#include "common/hash.h"

static unsigned hash_of(const struct shares *shares, const struct id128 *id)
{
    return (unsigned)hash64(id, sizeof *id, shares->seed);
}

struct share *share_find(const struct shares *shares, const struct id128 *id)
{
    struct share *share;
    HASH_FIND_BYHASHVALUE(hh, shares->by_id, id, sizeof *id, hash_of(shares, id), share);
    return share;
}

struct share *share_take(struct shares *shares, const struct id128 *id)
{
    struct share *share = share_find(shares, id);
    if (!share) {
        share = calloc(1, sizeof *share);
        if (!share)
            return NULL;
        share->id = *id;
        HASH_ADD_BYHASHVALUE(hh, shares->by_id, id, sizeof share->id, hash_of(shares, id), share);
    }
    share->requests++;
    return share;
}

void share_release(struct shares *shares, struct share *share)
{
    if (--share->requests > 0)
        return;
    HASH_DEL(shares->by_id, share);
    free(share);
}
