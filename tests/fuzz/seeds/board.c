/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_board: slots of workers that load, work, and were killed while they wrote. */

#include "tests/fuzz/driver.h"

#include <string.h>

#include "proto/board.h"

void fuzz_seeds(void)
{
    struct board_slot slots[2];
    const struct board_snapshot loading = {.state = WORKER_LOADING, .pid = 7, .incarnation = 1};
    const struct board_snapshot working = {.state = WORKER_READY,
                                           .pid = 8,
                                           .incarnation = 2,
                                           .active = 3,
                                           .waiting = 4,
                                           .slots = 8,
                                           .kv_free = 100,
                                           .kv_total = 200,
                                           .tokens = 12345,
                                           .cache_hits = 1000,
                                           .tokens_per_s = 99.5,
                                           .device = "cpu, 8 threads",
                                           .prefill_tokens = 3000,
                                           .kv_block_bytes = 65536};
    memset(slots, 0, sizeof slots);
    board_write(&slots[0], &loading);
    board_write(&slots[1], &working);
    fuzz_add_seed(slots, sizeof slots);
    atomic_fetch_add(&slots[0].sequence, 1);
    fuzz_add_seed(slots, sizeof slots);
    memset(&slots[1].snapshot, 0xff, sizeof slots[1].snapshot);
    fuzz_add_seed(slots, sizeof slots);
}
