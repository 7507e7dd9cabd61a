/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_CACHE_FOLDER_H
#define COMMON_FILES_CACHE_FOLDER_H

/* Results that one start saves for the next: files in $XDG_CACHE_HOME/quern, else in ~/.cache/quern. Losing
 * them only costs time. */

#include <limits.h>
#include <stdbool.h>

/* "…/quern/NAME", a folder that is created if missing, accessible to its owner only. False: the environment
 * names no place for it. A failure to create it shows when a file in it is opened. */
bool cache_folder_find(const char *name, char ret_path[PATH_MAX]);

/* Whether the open file is a regular one that only this user can have written. */
bool cache_folder_is_ours(int fd);

#endif
