/* SPDX-License-Identifier: MIT */
/* The processor as Linux names it, and what of it and of the memory this process may use. */

#include "engine/backend/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/system/available.h"
#include "common/system/topology.h"

/* Of the first core that says so; not every kind of processor does. */
static void find_name(char *ret_name, size_t size)
{
    static const char key[] = "model name";
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    snprintf(ret_name, size, "cpu");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, sizeof key - 1) == 0 && colon && colon[1] == ' ' && colon[2] != '\n') {
            snprintf(ret_name, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file)
        fclose(file);
}

int backend_cpu_describe(uint32_t number, struct device_description *ret_description, struct error *err)
{
    struct device_description d = {0};
    struct available available;
    if (number != 0)
        return error_set(err, -ENODEV, "there is one cpu device, number 0");
    find_name(d.name, sizeof d.name);
    d.n_cores = topology_threads_here();
    if (available_read("", &available) == 0) {
        d.memory_free = available.now;
        d.memory_total = available.total;
    }
    *ret_description = d;
    return 0;
}
