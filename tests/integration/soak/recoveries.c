/* SPDX-License-Identifier: MIT */
/* A line of the log is counted by what stands before and behind its numbers. */

#include "tests/integration/soak/recoveries.h"

#include <stdio.h>
#include <string.h>

/* The numbers of a line; of what it has not, nothing is added. */
static void take_line(struct recoveries *recoveries, const char *line)
{
    static const char took[] = "took over the previous broker's requests: ",
                      ending[] = " is ending: handing over ", moving[] = " moving ";
    const char *at;
    long a = 0, b = 0;
    int end = 0;
    if ((at = strstr(line, took)) && sscanf(at + sizeof took - 1, "%ld running, %ld waiting", &a, &b) == 2) {
        recoveries->taken_over++;
        recoveries->running += a;
        recoveries->waiting += b;
    } else if ((at = strstr(line, ending)) && sscanf(at + sizeof ending - 1, "%ld request", &a) == 1) {
        recoveries->handed_over += a;
    } else if ((at = strstr(line, moving)) &&
               sscanf(at + sizeof moving - 1, "%ld request%*[s ]of %n", &a, &end) == 1 && end > 0) {
        recoveries->moved += a;
    }
}

struct recoveries recoveries_read(const struct pool *pool)
{
    struct recoveries recoveries = {0};
    char line[1024];
    FILE *log = fopen(pool->log, "r");
    while (log && fgets(line, sizeof line, log))
        take_line(&recoveries, line);
    if (log)
        fclose(log);
    return recoveries;
}
