/* SPDX-License-Identifier: MIT */
#ifndef GGUF_TRUNCATION_H
#define GGUF_TRUNCATION_H

/* Model files that become shorter while they are mapped: the system answers a read of what is gone with
 * SIGBUS. A process that asks for it ends with one line that names the file, and not with a core dump. */

#include <stddef.h>

/* Remembers the mapping of a file under its name, which is copied (its end, if it is long). 0 or -ENOMEM. */
int truncation_watch(const void *start, size_t size, const char *path);

/* Forgets it, before it is unmapped. */
void truncation_forget(const void *start);

/* From here on, a SIGBUS for an address in a watched mapping writes "NAME: PATH became shorter while it was
 * read" to stderr and ends the process with this status. Any other SIGBUS is a defect, and ends it as it did
 * before. `name` is borrowed for good. */
void truncation_catch(const char *name, int status);

#endif
