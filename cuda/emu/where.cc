/* SPDX-License-Identifier: MIT */
/* Where the emulator is: the launch, the block and the thread that run; and how it dies, saying so. fibers.cc
 * sets them. */

#include "cuda/emu/emu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct emu_thread *emu_self;
struct emu_block emu_block;
const struct emu_launch *emu_launched;
void (*emu_met)(void);

void emu_say_where(void)
{
    fprintf(stderr, "emulator: ");
    if (emu_launched)
        fprintf(stderr, "kernel %s, block %u,%u,%u", emu_launched->name, emu_block.index.x, emu_block.index.y,
                emu_block.index.z);
    if (emu_self)
        fprintf(stderr, ", thread %u,%u,%u", emu_self->index.x, emu_self->index.y, emu_self->index.z);
    if (emu_launched)
        fprintf(stderr, ": ");
}

[[noreturn]] void emu_die(const char *format, ...)
{
    va_list args;
    emu_say_where();
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    abort();
}
