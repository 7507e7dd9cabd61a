/* SPDX-License-Identifier: MIT */
/* A table by session. A request is counted for the session that asked for it first, from admission until it
 * ends, wherever it is attached meanwhile and whether its session is open or not: closing a session and
 * opening it again gains nothing. */

#include "broker/share.h"

#include <stdlib.h>

#include "common/hash.h"

static unsigned hash_of(const struct shares *shares, const struct id128 *session)
{
    return (unsigned)hash64(session, sizeof *session, shares->seed);
}

struct share *share_find(const struct shares *shares, const struct id128 *session)
{
    struct share *share;
    HASH_FIND_BYHASHVALUE(hh, shares->by_session, session, sizeof *session, hash_of(shares, session), share);
    return share;
}

struct share *share_take(struct shares *shares, const struct id128 *session)
{
    struct share *share = share_find(shares, session);
    if (!share) {
        share = calloc(1, sizeof *share);
        if (!share)
            return NULL;
        share->session = *session;
        HASH_ADD_BYHASHVALUE(hh, shares->by_session, session, sizeof share->session, hash_of(shares, session),
                             share);
    }
    share->requests++;
    return share;
}

void share_release(struct shares *shares, struct share *share)
{
    if (--share->requests > 0)
        return;
    HASH_DEL(shares->by_session, share);
    free(share);
}
