/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_CACHE_FOLDER_H
#define COMMON_FILES_CACHE_FOLDER_H

/* What a process learns at one start and saves the next one: files in $XDG_CACHE_HOME/quern, else in
 * ~/.cache/quern. Losing them costs time and nothing else. */

#include <limits.h>
#include <stdbool.h>

/* "…/quern/NAME", a folder that is made if need be; others keep out of it. False: the environment names no
 * place for it. Whether it could be made shows when a file in it is opened. */
bool cache_folder_find(const char *name, char ret_path[PATH_MAX]);

/* Is the open file a regular one that this user alone has written? */
bool cache_folder_is_ours(int fd);

#endif
