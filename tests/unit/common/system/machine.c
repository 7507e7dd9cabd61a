/* SPDX-License-Identifier: MIT */
/* See machine.h. */

#include "tests/unit/common/system/machine.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char machine[64];

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    return remove(path);
}

void machine_set_up(void)
{
    snprintf(machine, sizeof machine, "/tmp/quern-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(machine));
}

void machine_tear_down(void)
{
    nftw(machine, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void machine_put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", machine, name);
    for (char *slash = path + strlen(machine) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}
