/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_REFERENCE_H
#define TESTS_CONFORMANCE_REFERENCE_H

/* Finds the reference cases: in $QUERN_REFERENCE, or in the folder that the build names in argv[1]. Programs
 * exit with REFERENCE_ABSENT if it is missing, which meson shows as skipped. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { REFERENCE_ABSENT = 77 };

/* The folder `part` of the reference, in a static buffer; ends the program if it is missing. */
static inline const char *reference_folder(int argc, char **argv, const char *part)
{
    static char path[4096];
    const char *root = getenv("QUERN_REFERENCE");
    if (!root || root[0] == '\0')
        root = argc > 1 ? argv[1] : "../shared/reference";
    snprintf(path, sizeof path, "%s/%s", root, part);
    DIR *dir = opendir(path);
    if (!dir) {
        printf("%s is not there: skipped\n", path);
        exit(REFERENCE_ABSENT);
    }
    closedir(dir);
    return path;
}

#endif
