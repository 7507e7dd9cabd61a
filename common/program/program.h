/* SPDX-License-Identifier: MIT */
#ifndef COMMON_PROGRAM_PROGRAM_H
#define COMMON_PROGRAM_PROGRAM_H

/* A program as a whole: its standard files, and the paths of the other programs of this build. */

#include <limits.h>

#include "common/error.h"

/* Exit status of a program whose failure is permanent (a bad model, no device; settings of a pool that name
 * something that does not exist): it is not restarted. */
#define PROGRAM_EXIT_PERMANENT 78

/* Exit status for a command line that is not understood, including unknown names in it. */
#define PROGRAM_EXIT_USAGE 2

/* Call first in main. Fills descriptors 0 to 2, if closed, with files that fail; otherwise the next socket
 * or file would become stdin, stdout or stderr. */
void program_hold_standard_files(void);

/* From here on this process and its children produce no core dumps, in a file or with a collector: their
 * memory contains users' requests. Does nothing if $QUERN_CORE_DUMPS is set. */
void program_forgo_core_dumps(void);

/* From here on, exceeding the file size limit (ulimit -f, LimitFSIZE) gives the error EFBIG, reported like
 * others, instead of the signal SIGXFSZ, which would end the process silently. The limit also applies to logs
 * and shared memory. */
void program_survive_file_limits(void);

/* Prints an error for people to stderr: one line "NAME: TEXT" in one write, where NAME is the name by which
 * this program was called. Unprintable characters become question marks (common/utf8.h). For errors that end
 * a command; a running daemon writes to its log. */
void program_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes the path of `name` ("quern-worker") in the folder of the running executable. -ENOENT names the path
 * that is missing. */
int program_sibling(const char *name, char ret_path[PATH_MAX], struct error *err);

#endif
