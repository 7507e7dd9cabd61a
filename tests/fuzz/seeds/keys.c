/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_keys: files with bounds, comments and mistakes, and a traceparent. */

#include <string.h>

#include "tests/fuzz/driver.h"

void fuzz_seeds(void)
{
    static const char *const seeds[] = {
        "ada sk-0123456789abcdef requests=1 tokens=100\nbob sk-fedcba9876543210\n",
        "# nobody\n\n  \t\nada\tsk-0123456789abcdef\r\n",
        "ada sk-0123456789abcdef\nbob sk-0123456789abcdef\n",
        "ada short\n",
        "ada sk-0123456789abcdef group=team\nbob sk-fedcba9876543210 group=team requests=1\n",
        "ada sk-0123456789abcdef group= group=x\n",
        "ada sk-0123456789abcdef requests=18446744073709551616\n",
        "ada sk-0123456789abcdef tokens=-1 requests=\n",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        fuzz_add_seed(seeds[i], strlen(seeds[i]));
}
