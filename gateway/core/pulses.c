/* SPDX-License-Identifier: MIT */
/* See pulses.h. */

#include "gateway/core/pulses.h"

#include <limits.h>
#include <stddef.h>

#include "common/clock.h"

#include <utlist.h>

void pulse_stop(struct pulses *pulses, struct pulse *pulse)
{
    if (!pulse->fn)
        return;
    DL_DELETE(pulses->waiting[pulse->kind], pulse);
    pulse->fn = NULL;
}

void pulse_wait(struct pulses *pulses, struct pulse *pulse, enum pulse_kind kind, pulse_fn *fn, void *arg,
                uint64_t now)
{
    pulse_stop(pulses, pulse);
    if (pulses->wait_ns[kind] == 0)
        return;
    *pulse = (struct pulse){.fn = fn, .arg = arg, .kind = kind, .due_ns = now + pulses->wait_ns[kind]};
    DL_APPEND(pulses->waiting[kind], pulse);
}

void pulses_run(struct pulses *pulses, uint64_t now)
{
    for (int kind = 0; kind < PULSE_KINDS; kind++) {
        struct pulse *pulse;
        while ((pulse = pulses->waiting[kind]) && pulse->due_ns <= now) {
            pulse_fn *fn = pulse->fn;
            pulse_stop(pulses, pulse);
            fn(pulse->arg);
        }
    }
}

int pulses_left_ms(const struct pulses *pulses, uint64_t now, int most)
{
    uint64_t left = most < 0 ? UINT64_MAX : (uint64_t)most;
    for (int kind = 0; kind < PULSE_KINDS; kind++) {
        const struct pulse *pulse = pulses->waiting[kind];
        if (!pulse)
            continue;
        const uint64_t ms =
            pulse->due_ns > now ? (pulse->due_ns - now + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS : 0;
        left = ms < left ? ms : left;
    }
    return left == UINT64_MAX ? -1 : left > INT_MAX ? INT_MAX : (int)left;
}
