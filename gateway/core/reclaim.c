/* SPDX-License-Identifier: MIT */
/* See reclaim.h. */

#include "gateway/core/reclaim.h"

#include "common/clock.h"
#include "common/system/resident.h"

#define LARGE        ((size_t)16 << 20) /* bytes above the least that are worth asking for */
#define WAIT_NS      CLOCK_NS_PER_S
#define MOST_WAIT_NS (4 * CLOCK_NS_PER_S)
#define GAIN         8 /* asking pays when it returns this part of what was above the least */

size_t reclaim_held(void)
{
    struct resident resident;
    return resident_read(&resident) && resident.bytes > resident.shared ? resident.bytes - resident.shared
                                                                        : 0;
}

bool reclaim_is_due(struct reclaim *reclaim, size_t held, uint64_t now_ns)
{
    if (held == 0)
        return false;
    if (reclaim->least == 0 || held < reclaim->least)
        reclaim->least = held;
    if (held - reclaim->least <= LARGE) {
        reclaim->before = 0;
        return false;
    }
    const bool gained = held + (reclaim->before - reclaim->least) / GAIN <= reclaim->before;
    if (reclaim->before == 0 || gained)
        reclaim->wait_ns = WAIT_NS;
    else if (now_ns < reclaim->due_ns)
        return false;
    else if (reclaim->wait_ns < MOST_WAIT_NS)
        reclaim->wait_ns *= 2;
    reclaim->before = held;
    reclaim->due_ns = now_ns + reclaim->wait_ns;
    return true;
}
