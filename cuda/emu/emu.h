/* SPDX-License-Identifier: MIT */
#ifndef CUDA_EMU_EMU_H
#define CUDA_EMU_EMU_H

/* The emulator's parts: fibers.cc runs the threads of a block on the stacks of stacks.cc, blocks_in_turn.cc
 * or blocks_at_once.cc runs the blocks of a launch, matrix.cc computes matrix products of warps, memory.cc
 * tracks device and pinned memory, profile.cc counts, and device.cc is the device around them.
 *
 * Behaviour that a GPU does not guarantee can be varied:
 *     QUERN_EMU_FILL=N        the byte that fills fresh memory (165)
 *     QUERN_EMU_SHUFFLE=SEED  threads run in random orders, and the queue in pieces of random length
 *     QUERN_EMU_ORDER=SEED    blocks at once: which runs when, and what others see of it; 0: in turn (1)
 *     QUERN_EMU_OMIT=WHAT     a kernel that does not wait for the launch before it, or FILE:LINE, a fence
 *                             that does nothing
 *     QUERN_EMU_EARLY=WHAT    a kernel that runs before the launch that it overlaps with (device.cc)
 *     QUERN_EMU_PROFILE=1     print the counts of each kernel when the device is closed
 *     QUERN_EMU_CLOCK=LIST    there is a clock, which the counts drive (emu_clock_ns)
 *
 * Under AddressSanitizer device memory is poisoned while no work runs, so a host access is reported. Under
 * ThreadSanitizer each thread of a block is a thread, so a missing barrier is reported as a race. Blocks and
 * launches stay in order there too. */

#include "cuda/device/simt.h"

/* Runs a launch immediately, or continues it. False: some blocks have yet to run. */
bool emu_run(const struct emu_launch *launch);

/* Forgets the launch in progress: its device is closed. */
void emu_drop(void);

/* ---- where.cc ---- */

/* The running launch; NULL: none. */
extern const struct emu_launch *emu_launched;

/* Called by the last thread when all threads of a block have met; NULL: not called. */
extern void (*emu_met)(void);

/* Prints "emulator: kernel K, block 1,2,3, thread 4: " on standard error, omitting what is unknown. */
void emu_say_where(void);

/* Prints this and a reason, and ends the process. */
[[noreturn]] void emu_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- chance (chance.cc) ---- */

bool emu_is_random(void);
uint32_t emu_random(uint32_t n); /* below n; 0 if there is no seed */
int emu_fill_byte(void);

/* The same for blocks at once. */
bool emu_order_is_random(void);
uint32_t emu_order_random(uint32_t n);

/* The number in an environment variable. */
uint64_t emu_number(const char *name, uint64_t otherwise);

/* ---- device.cc ---- */

#define EMU_MULTIPROCESSORS 4

/* From now on only these n devices exist; n 0: all of them. */
void emu_select(const uint32_t *numbers, uint32_t n);

/* The number of a selected device among all devices. */
uint32_t emu_number_of(uint32_t number);

/* ---- stacks.cc ---- */

#define EMU_MOST_THREADS 1024
#define EMU_STACK_BYTES  (128 * 1024)

/* The lowest byte of the stack of thread `number` of a block; a guard page is below it, at most a page away.
 * Each of the blocks that are on the device at once has a seat. */
#define EMU_SEATS 4
uint8_t *emu_stack(uint32_t seat, uint32_t number);

/* ---- memory.cc ---- */

struct emu_memory {
    void *memory;
    size_t bytes;
    struct emu_memory *next;
};
void *emu_memory_take(struct emu_memory **list, size_t bytes); /* NULL: none; aligned to 256 */
size_t emu_memory_release(struct emu_memory **list,
                          void *memory); /* returns its bytes; ends the process if it is not in the list */
void emu_memory_release_all(struct emu_memory **list);
bool emu_memory_holds(const struct emu_memory *list, const void *from, size_t bytes);
/* Under AddressSanitizer: forbids access to the bytes, or to all memory in the list. */
void emu_memory_poison(void *from, size_t bytes, bool poisoned);
void emu_memory_lock(const struct emu_memory *list, bool locked);

/* ---- profile.cc ---- */

struct backend_kernel;
void emu_profile_launch(const struct emu_launch *launch);
struct backend_kernel *emu_profile_current(void);                     /* the row of the running launch */
uint32_t emu_profile_take(const struct backend_kernel **ret_kernels); /* as device_kernels */
void emu_profile_print(void);                                         /* if requested */

/* A clock driven by the counts, so that times are the same in each run; it exists if $QUERN_EMU_CLOCK is set.
 * A launch takes a microsecond, and for each round of blocks (two per multiprocessor) a nanosecond for each
 * byte that a block has loaded. $QUERN_EMU_CLOCK lists factors for kernels that are slower or faster:
 * "multiply_wide=3, cublasLtMatmul=0.1". */
bool emu_has_clock(void);
uint64_t emu_clock_ns(void);

/* ---- regions.cc ---- */

/* The memory in a list, for a fast check whether an address is in it; zeroed: none. */
struct emu_regions {
    struct emu_region *items;
    uint32_t n, room;
};
void emu_regions_fill(struct emu_regions *regions, const struct emu_memory *list);
bool emu_regions_hold(const struct emu_regions *regions, uintptr_t at);

/* ---- accesses.cc, which counts; views.cc, which orders; or accesses_none.cc, which does nothing ---- */

/* Call it before a launch, or a part of one: only memory in these lists counts. */
void emu_accesses_begin(const struct emu_memory *allocations, const struct emu_memory *pinned);

/* All lanes of a warp wait for one another, or have ended. */
void emu_accesses_meet(uint32_t warp);

#endif
