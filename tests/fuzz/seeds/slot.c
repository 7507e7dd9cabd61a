/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_slot: slots as the supervisor makes them, and smaller ones. */

#include "tests/fuzz/driver.h"

#include <string.h>

#include "proto/board.h"

void fuzz_seeds(void)
{
    static const size_t sizes[] = {sizeof(struct board_slot), 2 * sizeof(struct board_slot),
                                   sizeof(struct board_slot) - 1, 0};
    struct board_slot slot = {.magic = BOARD_MAGIC, .version = BOARD_VERSION};
    uint8_t input[2 + 300] = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        input[0] = (uint8_t)sizes[i];
        input[1] = (uint8_t)(sizes[i] >> 8);
        atomic_store(&slot.sequence, (uint32_t)i); /* an odd one, too */
        memcpy(input + 2, &slot, sizeof input - 2);
        fuzz_add_seed(input, sizeof input);
    }
}
