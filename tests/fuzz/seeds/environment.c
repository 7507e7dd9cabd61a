/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_environment: what systemd says, to us and to another process, and what it would not. */

#include "tests/fuzz/driver.h"

#include <string.h>

void fuzz_seeds(void)
{
    static const char *const seeds[] = {
        "/run/systemd/notify\n30000000\n$\n$\n1\n/run/user/1000\n/tmp\ninfo\n",
        "@abstract\n1\n1\n1\n3\n-\n-\ndebug\n",
        "-\n-\n-\n-\n-\n-\n-\n-\n",
        "relative\n-5\n$\n$\n2\nrelative\nrelative\nloud\n",
        "\n18446744073709551615\n0\n-\n1\n\n\n\n",
        "/012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
        "9"
        "012345\n9223372036854775\n99999999999\n$$\n-1\n",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        fuzz_add_seed(seeds[i], strlen(seeds[i]));
}
