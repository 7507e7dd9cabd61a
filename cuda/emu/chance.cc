/* SPDX-License-Identifier: MIT */
/* What differs from run to run on a GPU: made from a seed here, so that a run can be had again. */

#include "cuda/emu/emu.h"

uint64_t emu_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* The numbers of a seed; 0: none. */
struct chance {
    uint64_t state;
};

static struct chance chance_of(uint64_t seed)
{
    return chance{seed * 0x9e3779b97f4a7c15};
}

static uint32_t below(struct chance *chance, uint32_t n)
{
    uint64_t *x = &chance->state;
    if (*x == 0)
        return 0;
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return (uint32_t)((*x >> 32) * n >> 32);
}

static struct chance *shuffle(void)
{
    static struct chance chance = chance_of(emu_number("QUERN_EMU_SHUFFLE", 0));
    return &chance;
}

bool emu_is_random(void)
{
    return shuffle()->state != 0;
}

uint32_t emu_random(uint32_t n)
{
    return below(shuffle(), n);
}

static struct chance *order(void)
{
    static struct chance chance = chance_of(emu_number("QUERN_EMU_ORDER", 1));
    return &chance;
}

bool emu_order_is_random(void)
{
    return order()->state != 0;
}

uint32_t emu_order_random(uint32_t n)
{
    return below(order(), n);
}

int emu_fill_byte(void)
{
    static int byte = (int)(emu_number("QUERN_EMU_FILL", 0xa5) & 0xff);
    return byte;
}
