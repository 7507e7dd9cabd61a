/* SPDX-License-Identifier: MIT */
/* The stacks of a block's threads: each above a page that nobody may touch, so that a kernel that needs more
 * is told so by name. Sanitizers have a handler and a report of their own. */

#include "cuda/emu/emu.h"

#include <signal.h>
#include <sys/mman.h>

#define GUARD_BYTES 4096
#define SPREAD      4096
#define PITCH       (GUARD_BYTES + SPREAD + EMU_STACK_BYTES)

#if defined(EMU_ASAN) || defined(EMU_TSAN)
#define HAS_HANDLER true
#else
#define HAS_HANDLER false
#endif

static struct {
    uint8_t *stacks; /* [EMU_MOST_THREADS][PITCH] */
    uint32_t n_open;
} seats[EMU_SEATS];
static uint8_t handler_stack[64 * 1024];

static void on_fault(int signal, siginfo_t *info, void *context)
{
    for (uint32_t i = 0; i < EMU_SEATS; i++) {
        const uintptr_t at = (uintptr_t)info->si_addr - (uintptr_t)seats[i].stacks;
        if (seats[i].stacks && at < (uintptr_t)EMU_MOST_THREADS * PITCH)
            emu_die("its stack of %u KiB overflows", EMU_STACK_BYTES / 1024);
    }
    struct sigaction otherwise = {};
    otherwise.sa_handler = SIG_DFL; /* the instruction runs again */
    sigaction(signal, &otherwise, NULL);
}

/* Once, whichever seat is taken first. */
static void watch(void)
{
    static bool watches;
    if (HAS_HANDLER || watches)
        return;
    watches = true;
    stack_t stack = {};
    stack.ss_sp = handler_stack;
    stack.ss_size = sizeof handler_stack;
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    if (sigaltstack(&stack, NULL) < 0 || sigaction(SIGSEGV, &action, NULL) < 0)
        abort();
}

uint8_t *emu_stack(uint32_t seat, uint32_t number)
{
    uint8_t *stacks = seats[seat].stacks;
    if (!stacks) {
        void *memory = mmap(NULL, (size_t)EMU_MOST_THREADS * PITCH, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            abort();
        seats[seat].stacks = stacks = (uint8_t *)memory;
        watch();
    }
    for (uint32_t *n = &seats[seat].n_open; *n <= number; ++*n)
        if (mprotect(stacks + (size_t)*n * PITCH + GUARD_BYTES, SPREAD + EMU_STACK_BYTES,
                     PROT_READ | PROT_WRITE) < 0)
            abort();
    /* Those of a warp's lanes do not begin at the same place of their pages: they would share a few lines of
     * the processor's cache. */
    return stacks + (size_t)number * PITCH + GUARD_BYTES + number % 32 * (SPREAD / 32);
}
