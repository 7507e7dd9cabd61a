/* SPDX-License-Identifier: MIT */
#ifndef COMMON_PROGRAM_PROGRAM_H
#define COMMON_PROGRAM_PROGRAM_H

/* What concerns a program as a whole: its standard files, and where the other programs of this build are. */

#include <limits.h>

#include "common/error.h"

/* Exit status of a program whose failure is permanent (a worker's bad model, no device; a pool whose settings
 * name something that does not exist): it is not restarted. */
#define PROGRAM_EXIT_PERMANENT 78

/* Exit status of a program that does not understand its command line, names in it included. */
#define PROGRAM_EXIT_USAGE 2

/* First thing in main. Descriptors 0 to 2, where the caller closed them, are held by files that fail: else
 * the next socket or file to be opened would be taken for stdin, stdout or stderr. */
void program_hold_standard_files(void);

/* From here on this process and its children leave no core dump, neither in a file nor to a program that
 * gathers them: what people asked is in their memory. Not where $QUERN_CORE_DUMPS is set. */
void program_forgo_core_dumps(void);

/* A write beyond the limit of a file's size (ulimit -f, LimitFSIZE) is an error from here on, EFBIG, which is
 * told like others. Else it is a signal (SIGXFSZ) that ends the process without a word: also where a log has
 * grown that large, and where shared memory is made, for which the limit counts. */
void program_survive_file_limits(void);

/* Tells a person on stderr what is wrong: one line "NAME: TEXT", NAME being what this program was called, in
 * one write. Unprintable characters become question marks (common/utf8.h). For errors that end a command; a
 * running daemon writes to its log. */
void program_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes the path of `name` ("quern-worker") in the folder of the running executable. -ENOENT names the path
 * that is missing. */
int program_sibling(const char *name, char ret_path[PATH_MAX], struct error *err);

#endif
