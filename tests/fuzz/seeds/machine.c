/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_machine: a machine without groups, with those of version 2, and of version 1. */

#include "tests/fuzz/driver.h"

#define MEMORY  "MemTotal:       67108864 kB\nMemFree:        1024 kB\nMemAvailable:   50331648 kB\n"
#define PROCESS "Name:\tquern\nPid:\t%\nPPid:\t3\nVmData:\t 900000 kB\nRssAnon:\t 1000 kB\nThreads:\t4\n"

void fuzz_seeds(void)
{
    static const char none[] = MEMORY;
    static const char version_2[] = MEMORY "\0"
                                           "0::/a/b\n\0"
                                           "quern\n\0" PROCESS "\0"
                                           "quern\n\0" PROCESS "\0"
                                           "0::/a/b/c\n\0"
                                           "8589934592\n\0"
                                           "max\n\0"
                                           "1048576\n\0"
                                           "anon 5\ninactive_file 4096\n\0"
                                           "150000 100000\n";
    static const char version_1[] = MEMORY "\0"
                                           "7:cpu,cpuacct:/a\n5:memory:/a\n1:name=systemd:/\n\0"
                                           "x\0\0"
                                           "x\0\0"
                                           "5:memory:/a\n\0\0\0\0\0\0"
                                           "4294967296\n\0"
                                           "4096\n\0"
                                           "-1\n\0"
                                           "100000\n";
    static const char wrong[] = "MemTotal: 99999999999999999999 kB\nMemAvailable:1\n\0"
                                ":::\n::\n0:x\n";
    fuzz_add_seed(none, sizeof none - 1);
    fuzz_add_seed(version_2, sizeof version_2 - 1);
    fuzz_add_seed(version_1, sizeof version_1 - 1);
    fuzz_add_seed(wrong, sizeof wrong - 1);
}
