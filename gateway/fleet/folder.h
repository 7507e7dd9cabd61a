/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_FOLDER_H
#define GATEWAY_FLEET_FOLDER_H

/* The members of a fleet as their folder has them: a file for each pool (common/files/member_file.h). Hidden
 * files, subfolders and names that end in "_secret" are skipped.
 *
 * Each look goes over all files. What changed counts when two looks in a row have found it the same: a file
 * that is being written does not, and a file is gone when two looks have missed it. A file that is not
 * a whole member file keeps its earlier contents, which is logged once; if it never had any, it names nobody.
 * Of two files with one address or one key the first by name counts, and the other is logged once. While the
 * folder is gone, cannot be read, or may be written by its group or others, nothing changes.
 *
 * Nothing here waits or compares times of day; where reading the folder may block, as on a network file
 * system, members.h reads it on a thread of its own. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/files/member_file.h"

#define FLEET_MEMBERS 1024 /* most of a fleet, whether files or addresses */

struct member {
    char name[MEMBER_FILE_MAX_NAME + 1];
    struct member_file file;
};

struct folder {                /* zeroed except for the path: nothing was found yet */
    const char *path;          /* the caller's; must outlive it */
    struct folder_file *files; /* uthash by name */
    bool troubled;             /* the folder cannot be read, which was logged */
};

/* Whether the folder can be read and only its owner can write it: 0, or -errno with a reason. */
int folder_check(const char *path, struct error *err);

/* Looks at the folder once. True if it could be read. */
bool folder_look(struct folder *folder);

/* The members that count now, sorted by name. The caller frees *ret_members; *ret_n is 0 without any. 0 or
 * -ENOMEM. */
int folder_members(struct folder *folder, struct member **ret_members, size_t *ret_n);

void folder_deinit(struct folder *folder);

#endif
