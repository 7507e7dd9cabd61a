/* SPDX-License-Identifier: MIT */
/* See unread.h. Looking for who has to go walks all shares; that is done only when there is no room. */

#include "gateway/http/unread.h"

#include "common/clock.h"

#include <utlist.h>

#define SLOW_BYTES      (64u << 10)           /* a second: who takes less … */
#define SLOW_NS         (10 * CLOCK_NS_PER_S) /* … for so long is slow */
#define SMALL_BYTES     (16u << 10)           /* of a share whose end would not help */
#define DISPLACED_TIMES 4

void unread_begin(struct unread *unread, struct unread_share *share)
{
    share->state = UNREAD_MAKING;
    DL_APPEND(unread->shares, share);
}

void unread_end(struct unread *unread, struct unread_share *share)
{
    unread_give(unread, share, share->bytes);
    share->state = UNREAD_ENDED;
    DL_DELETE(unread->shares, share);
}

static bool is_slow(const struct unread_share *share, uint64_t now)
{
    uint64_t waited = now - share->behind_ns;
    return share->state == UNREAD_OFFERED && waited >= SLOW_NS &&
           share->taken < SLOW_BYTES * (waited / CLOCK_NS_PER_S);
}

/* Who has to go for more bytes of the share; NULL: nobody. */
static struct unread_share *find_victim(const struct unread *unread, const struct unread_share *share,
                                        size_t bytes, bool under_way)
{
    struct unread_share *each, *slow = NULL, *large = NULL;
    const uint64_t now = clock_ns();
    DL_FOREACH(unread->shares, each)
    {
        if (each->state == UNREAD_ENDED || each->bytes <= SMALL_BYTES)
            continue;
        if (is_slow(each, now) && (!slow || each->bytes > slow->bytes))
            slow = each;
        if ((under_way || each->state == UNREAD_MAKING) && (!large || each->bytes > large->bytes))
            large = each;
    }
    if (slow || !large || under_way)
        return slow ? slow : large;
    return large->bytes / DISPLACED_TIMES >= share->bytes + bytes ? large : NULL;
}

bool unread_take(struct unread *unread, struct unread_share *share, size_t bytes, bool under_way)
{
    while (!budget_take(&unread->budget, bytes)) {
        struct unread_share *victim = find_victim(unread, share, bytes, under_way);
        if (!victim)
            return false;
        unread->displace(victim);
        if (victim == share)
            return false;
    }
    share->bytes += bytes;
    return true;
}

void unread_force(struct unread *unread, struct unread_share *share, size_t bytes)
{
    budget_force(&unread->budget, bytes);
    share->bytes += bytes;
}

void unread_give(struct unread *unread, struct unread_share *share, size_t bytes)
{
    budget_give(&unread->budget, bytes);
    share->bytes -= bytes;
}

void unread_offer(struct unread_share *share)
{
    share->state = UNREAD_OFFERED;
    share->behind_ns = clock_ns();
    share->taken = 0;
}
