/* SPDX-License-Identifier: MIT */
/* Waiting spins for a moment, for a step of a small model is as short as a sleep, and then sleeps between
 * looks: another step is queued behind the one that is waited for, so what a sleep adds is hidden. The flag
 * costs a read of memory, the queue a call of the driver, which is made every now and then to find faults;
 * an emulated device works while it is asked, and so it is asked all the time. */

#include "cuda/device/wait.h"

#include <errno.h>

#include "common/clock.h"

#define SPIN_NS  100000
#define SLEEP_NS 20000
#define DUE_MS   100 /* between looks whether the device stands still */

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

bool device_stands_still(const struct device *device, uint64_t waited_ns)
{
    const uint32_t stall_ms = device_properties(device)->stall_ms;
    return stall_ms > 0 && waited_ns > stall_ms * CLOCK_NS_PER_MS;
}

int device_wait_due(struct device *device, uint32_t mark)
{
    const uint64_t begun = clock_ns();
    int r;
    do
        r = device_wait(device, mark, NULL, 0, DUE_MS);
    while (r == -EAGAIN && !device_stands_still(device, clock_ns() - begun));
    return r == -EAGAIN ? -ETIMEDOUT : r;
}
