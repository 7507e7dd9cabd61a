/* SPDX-License-Identifier: MIT */
/* /proc/self/statm: size, resident and shared, in pages. */

#include "common/system/resident.h"

#include <stdio.h>
#include <unistd.h>

bool resident_read(struct resident *ret_resident)
{
    unsigned long size, resident, shared;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return false;
    const bool known = fscanf(file, "%lu %lu %lu", &size, &resident, &shared) == 3;
    fclose(file);
    if (!known)
        return false;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    *ret_resident = (struct resident){.bytes = resident * page, .shared = shared * page};
    return true;
}
