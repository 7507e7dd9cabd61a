/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CPU_TESTED_KERNELS_H
#define TESTS_UNIT_CPU_TESTED_KERNELS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/kernels.h"

/* The tables of kernels that tests go through, like kernels_at: all that this machine can run, or of those
 * the ones that $QUERN_TESTED_KERNELS names, with a blank between. If there are none, the program ends. */
static inline const struct kernels *tested_kernels(uint32_t i)
{
    const char *names = getenv("QUERN_TESTED_KERNELS");
    const struct kernels *kernels;
    uint32_t n = 0;
    for (uint32_t k = 0; (kernels = kernels_at(k)); k++) {
        char list[128], *rest = list;
        bool named = !names;
        snprintf(list, sizeof list, "%s", names ? names : "");
        for (const char *name; !named && (name = strsep(&rest, " "));)
            named = strcmp(name, kernels->name) == 0;
        if (named && n++ == i)
            return kernels;
    }
    if (n == 0) {
        fprintf(stderr, "this machine has none of the tables \"%s\"\n", names);
        exit(1);
    }
    return NULL;
}

#endif
