/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_client: scripts in which things go well, for mutations to spoil. */

#include "tests/fuzz/driver.h"

void fuzz_seeds(void)
{
    /* accepted; frames one after the other; the last one */
    static const uint8_t smooth[] = {5, 0x10, 0, 0x11, 0, 0x2a, 0, 0x11, 0, 0x19, 0, 0x1f, 0, 0x12};
    /* a gap, then its replay in two pages, the second with the end */
    static const uint8_t gap[] = {5,    0x10, 0, 0x10, 0x48, 0x29, 3,    0x11, 0x11, 0, 0x2a, 3,
                                  0x16, 0x11, 0, 0x2b, 0x1f, 0x00, 0x11, 0,    0x1f, 0, 0x09};
    /* the attached one; the session opens again; the end is told and a second passes, three times */
    static const uint8_t again[] = {0x85, 0x12, 0x83, 0x15, 0x11, 0,    0x2a, 6,    0x0e, 0x85, 0x12,
                                    0x85, 4,    2,    7,    100,  0x83, 4,    0x87, 100,  0x83, 4};
    fuzz_add_seed(smooth, sizeof smooth);
    fuzz_add_seed(gap, sizeof gap);
    fuzz_add_seed(again, sizeof again);
}
