/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_prefixes: blocks that come and are found by another worker, and some of them spoiled. */

#include "tests/fuzz/driver.h"

#define PUT(place)   0, place
#define GET(place)   1 | 4, place /* by the second worker */
#define OPEN         3, 0
#define WRITE(to, n) 2, 0, (uint8_t)(to), (to) >> 8, n

void fuzz_seeds(void)
{
    static const uint8_t chain[] = {PUT(0), PUT(1), PUT(2), PUT(3), GET(0), GET(1), GET(2), GET(3)};
    static const uint8_t both[] = {PUT(0), PUT(4), PUT(5), GET(4), GET(5), GET(0), OPEN, PUT(0), GET(0)};
    static const uint8_t header[] = {PUT(0), WRITE(0, 4), 9, 9, 9, 9, GET(0), OPEN, PUT(1), GET(1)};
    static const uint8_t claimed[] = {PUT(0), WRITE(4096, 2), 1, 0, PUT(0), GET(0)};
    static const uint8_t bytes[] = {PUT(0), WRITE(12288, 3), 1, 2, 3, GET(0), PUT(0), GET(0)};
    fuzz_add_seed(chain, sizeof chain);
    fuzz_add_seed(both, sizeof both);
    fuzz_add_seed(header, sizeof header);
    fuzz_add_seed(claimed, sizeof claimed);
    fuzz_add_seed(bytes, sizeof bytes);
}
