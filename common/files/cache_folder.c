/* SPDX-License-Identifier: MIT */
/* See cache_folder.h. */

#include "common/files/cache_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FILE 64 /* bytes of a file's name behind it */

bool cache_folder_find(const char *name, char ret_path[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool named = cache && cache[0] == '/';
    if (!named && (!home || home[0] != '/'))
        return false;
    int n = snprintf(ret_path, PATH_MAX, "%s%s", named ? cache : home, named ? "" : "/.cache");
    if (n < 0 || (size_t)n + sizeof "/quern/" + strlen(name) + MOST_FILE > PATH_MAX)
        return false;
    mkdir(ret_path, 0700); /* what cannot be made cannot be opened */
    strcat(ret_path, "/quern");
    mkdir(ret_path, 0700);
    strcat(ret_path, "/");
    strcat(ret_path, name);
    mkdir(ret_path, 0700);
    return true;
}

bool cache_folder_is_ours(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}
