/* SPDX-License-Identifier: MIT */
/* Several blocks of a launch are on the device at once, at seats. Whose turn it is is random by a seed
 * ($QUERN_EMU_ORDER), and a turn may be over at each barrier and fence; what blocks see of one another is
 * views.cc's matter. The host gets a turn too, while a launch is under way: it sees what is in memory then.
 *
 * No block waits for another, so each order is possible on a GPU. One launch of one device at a time. */

#include "cuda/emu/blocks.h"
#include "cuda/emu/fibers.h"
#include "cuda/emu/views.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_TURNS 6 /* until the host has one */

static struct seat {
    struct emu_fibers *fibers;
    struct emu_block block;
    void *shared;
    bool is_taken, has_ended; /* its last writes may still be on their way */
} seats[EMU_SEATS];

static struct emu_blocks blocks;
static size_t shared_bytes; /* of each */
static bool is_under_way;

static uint32_t n_seats(void)
{
    return emu_order_is_random() ? EMU_SEATS : 1;
}

static void end_turn(void)
{
    if (emu_order_random(2) == 1)
        emu_fibers_yield();
}

static void open_launch(const struct emu_launch *launch)
{
    emu_blocks_open(&blocks, launch);
    shared_bytes = launch->shared_bytes;
    for (uint32_t i = 0; i < n_seats(); i++) {
        seats[i].shared = emu_shared_new(shared_bytes);
        if (!seats[i].fibers)
            seats[i].fibers = emu_fibers_new();
    }
    emu_met = end_turn;
    is_under_way = true;
}

static void close_launch(void)
{
    for (uint32_t i = 0; i < n_seats(); i++)
        emu_shared_free(seats[i].shared, shared_bytes);
    emu_blocks_close();
    is_under_way = false;
}

/* Threads that stand in the middle of a kernel are never gone on with: others begin on their stacks. */
void emu_drop(void)
{
    for (uint32_t i = 0; i < n_seats(); i++) {
        if (!seats[i].is_taken)
            continue;
        free(seats[i].fibers);
        seats[i].fibers = NULL;
        seats[i].is_taken = seats[i].has_ended = false;
        emu_view_drop(i);
    }
    close_launch();
}

/* The next block takes the seat. False: there is none. */
static bool take(uint32_t number)
{
    struct seat *seat = &seats[number];
    if (!emu_blocks_next(&blocks, seat->shared))
        return false;
    emu_fibers_unpark(seat->fibers);
    emu_fibers_open(blocks.launch->block, number);
    emu_fibers_begin();
    emu_view_open(number);
    return seat->is_taken = true;
}

/* A turn of the block at the seat. */
static void run(uint32_t number, bool is_new)
{
    struct seat *seat = &seats[number];
    if (!is_new) {
        emu_fibers_unpark(seat->fibers);
        emu_block = seat->block;
    }
    emu_view_enter(number);
    if (!seat->has_ended && emu_fibers_run()) {
        emu_blocks_end();
        seat->has_ended = true;
    }
    if (seat->has_ended && emu_order_random(2) == 0) {
        emu_view_close();
        seat->is_taken = seat->has_ended = false;
    } else {
        emu_view_leave();
    }
    seat->block = emu_block;
    emu_fibers_park(seat->fibers);
}

static bool is_anybody_left(void)
{
    bool is_left = false;
    for (uint32_t i = 0; i < n_seats(); i++)
        is_left |= seats[i].is_taken;
    return is_left;
}

bool emu_run(const struct emu_launch *launch)
{
    if (!is_under_way)
        open_launch(launch);
    if (blocks.launch != launch)
        emu_die("a launch begins while another device's is running");
    emu_launched = launch;
    for (uint32_t left = 1 + emu_order_random(MOST_TURNS); left > 0 || !emu_order_is_random(); left--) {
        const uint32_t number = emu_order_random(n_seats());
        const bool is_new = !seats[number].is_taken;
        if (!is_new || take(number)) {
            run(number, is_new);
        } else if (!is_anybody_left()) {
            close_launch();
            return true;
        }
    }
    emu_launched = NULL;
    return false;
}

/* $QUERN_EMU_OMIT may name a fence that does nothing: "norm.cu:17". */
static bool is_omitted(const char *file, uint32_t line)
{
    const char *omitted = getenv("QUERN_EMU_OMIT"), *slash = strrchr(file, '/');
    char here[128];
    snprintf(here, sizeof here, "%s:%u", slash ? slash + 1 : file, line);
    return omitted && strcmp(omitted, here) == 0;
}

void emu_fence(const char *file, uint32_t line, bool reaches_host)
{
    if (is_omitted(file, line))
        return;
    emu_view_fence(reaches_host);
    end_turn();
}
