/* SPDX-License-Identifier: MIT */
/* The restart policy.
 *
 * Waits double from 0.5 s to 10 s; who was ready for a while, which callers choose, starts from the shortest
 * again. A worker that dies five times in a row without ever becoming ready will not become ready the sixth
 * time: that is a crash loop, and it stops. */

#include "supervisor/children/restart.h"

#include "common/clock.h"

void restart_ready(struct restart *restart, uint64_t now)
{
    restart->deaths = 0;
    restart->ready_ns = now;
}

bool restart_died(struct restart *restart, uint64_t steady_ns, uint64_t now, uint64_t *ret_at)
{
    if (restart->ready_ns == 0)
        restart->deaths++;
    else if (now - restart->ready_ns >= steady_ns)
        restart->waits = 0;
    restart->ready_ns = 0;
    if (restart->deaths >= RESTART_MAX_DEATHS)
        return false;
    uint64_t wait_ms = RESTART_BACKOFF_MIN_MS;
    for (uint32_t i = 0; i < restart->waits && wait_ms < RESTART_BACKOFF_MAX_MS; i++)
        wait_ms *= 2;
    if (wait_ms > RESTART_BACKOFF_MAX_MS)
        wait_ms = RESTART_BACKOFF_MAX_MS;
    restart->waits++;
    restart->wait_ns = wait_ms * CLOCK_NS_PER_MS;
    *ret_at = now + restart->wait_ns;
    return true;
}

bool stall_check(struct stall *stall, bool busy, uint64_t progress, uint32_t most_ms, uint64_t now)
{
    if (!busy || progress != stall->progress || stall->since == 0) {
        stall->progress = progress;
        stall->since = now;
        return false;
    }
    return now - stall->since >= most_ms * CLOCK_NS_PER_MS;
}
