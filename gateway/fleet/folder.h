/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_FOLDER_H
#define GATEWAY_FLEET_FOLDER_H

/* The members of a fleet as listed by a folder: a file for each pool (common/files/member_file.h). Hidden
 * files, subfolders and names that end in "_secret" are skipped.
 *
 * Each look reads all files. A change takes effect once two looks in a row have found the same: a file that
 * is being written does not count yet, and a file is gone when two looks have missed it. A file that is not a
 * complete member file keeps its earlier contents, which is logged once; if it never had any, it adds no
 * member. Of two files with the same address or key the first by name counts, and the other is logged once.
 * While the folder is gone, unreadable, or writable by its group or others, nothing changes.
 *
 * Nothing here waits or compares times of day. Because reading the folder may block, as on a network file
 * system, members.h reads it on a separate thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/files/member_file.h"

#define FLEET_MEMBERS 1024 /* the most members of a fleet, whether files or addresses */

struct member {
    char name[MEMBER_FILE_MAX_NAME + 1];
    struct member_file file;
};

struct folder {                /* zeroed except for the path: nothing found yet */
    const char *path;          /* the caller's; must outlive it */
    struct folder_file *files; /* uthash by name */
    bool troubled;             /* the folder cannot be read, which was logged */
};

/* Whether the folder can be read and only its owner can write it: 0, or -errno with a reason. */
int folder_check(const char *path, struct error *err);

/* Looks at the folder once. True if it could be read. */
bool folder_look(struct folder *folder);

/* The members in effect, sorted by name. The caller frees *ret_members; *ret_n is 0 without any. 0 or
 * -ENOMEM. */
int folder_members(struct folder *folder, struct member **ret_members, size_t *ret_n);

void folder_deinit(struct folder *folder);

#endif
