/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_boot: numbers, the largest that may be, and what is none. */

#include "tests/fuzz/driver.h"

void fuzz_seeds(void)
{
    static const char long_one[] = "000000000000000000000000000042\n43\n";
    static const char zero[] = "42\0003\n";
    fuzz_add_seed("1\n", 2);
    fuzz_add_seed("1048577\n", 8);
    fuzz_add_seed("18446744073709551000\n", 21);
    fuzz_add_seed("18446744073709551615\n", 21);
    fuzz_add_seed("42", 2);
    fuzz_add_seed("-1\n", 3);
    fuzz_add_seed(long_one, sizeof long_one - 1);
    fuzz_add_seed(zero, sizeof zero - 1);
}
