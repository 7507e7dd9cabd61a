/* SPDX-License-Identifier: MIT */
/* Waiting spins for a moment, for a step of a small model is as short as a sleep, and then sleeps between
 * looks: another step is queued behind the one that is waited for, so what a sleep adds is hidden. The flag
 * costs a read of memory, the queue a call of the driver, which is made every now and then to find faults;
 * an emulated device works while it is asked, and so it is asked all the time. */

#include "cuda/wait.h"

#include <errno.h>

#include "common/clock.h"

#define SPIN_NS  100000
#define SLEEP_NS 20000

static bool is_up(const uint64_t *flag, uint64_t value)
{
    return flag && __atomic_load_n(flag, __ATOMIC_ACQUIRE) >= value;
}

int device_wait(struct device *device, uint32_t mark, const uint64_t *flag, uint64_t value,
                uint32_t timeout_ms)
{
    const uint64_t query_ns = flag ? device_properties(device)->query_us * 1000ull : 0;
    const bool runs_by_itself = device_properties(device)->query_us > 0;
    const uint64_t begun = clock_ns();
    uint64_t now = begun, asked = 0;
    for (;;) {
        if (is_up(flag, value))
            return 0;
        if (asked == 0 || now - asked >= query_ns) {
            int r = device_query(device_stream(device), mark);
            if (r != -EAGAIN)
                return r;
            asked = now;
        }
        now = clock_ns();
        if (now - begun >= timeout_ms * CLOCK_NS_PER_MS)
            return is_up(flag, value) ? 0 : -EAGAIN;
        if (runs_by_itself && now - begun > SPIN_NS)
            nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    }
}

int device_wait_due(struct device *device, uint32_t mark)
{
    int r;
    /* An emulated device takes as long as the machine below it: it cannot stand still. */
    do
        r = device_wait(device, mark, NULL, 0, WAIT_STALL_MS);
    while (r == -EAGAIN && device_properties(device)->query_us == 0);
    return r == -EAGAIN ? -ETIMEDOUT : r;
}
