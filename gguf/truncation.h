/* SPDX-License-Identifier: MIT */
#ifndef GGUF_TRUNCATION_H
#define GGUF_TRUNCATION_H

/* Model files that are truncated while mapped: reading the missing part raises SIGBUS. A process that calls
 * truncation_watch ends with one line that names the file instead of a core dump. */

#include <stddef.h>

/* Remembers the mapping of a file under its name, which is copied (its end, if it is long). 0 or -ENOMEM. */
int truncation_watch(const void *start, size_t size, const char *path);

/* Forgets the mapping; call it before unmapping. */
void truncation_forget(const void *start);

/* From here on, a SIGBUS for an address in a watched mapping writes "NAME: PATH became shorter while it was
 * read" to stderr and ends the process with this status. Any other SIGBUS is a defect and keeps its default
 * effect. `name` must live as long as the process. */
void truncation_catch(const char *name, int status);

#endif
