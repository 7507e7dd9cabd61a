/* SPDX-License-Identifier: MIT */
/* What differs from run to run on a GPU: made from a seed here, so that a run can be had again. */

#include "cuda/emu/emu.h"

uint64_t emu_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t *state(void)
{
    static uint64_t state = emu_number("QUERN_EMU_SHUFFLE", 0) * 0x9e3779b97f4a7c15;
    return &state;
}

bool emu_is_random(void)
{
    return *state() != 0;
}

uint32_t emu_random(uint32_t n)
{
    uint64_t *x = state();
    if (*x == 0)
        return 0;
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return (uint32_t)((*x >> 32) * n >> 32);
}

int emu_fill_byte(void)
{
    static int byte = (int)(emu_number("QUERN_EMU_FILL", 0xa5) & 0xff);
    return byte;
}
