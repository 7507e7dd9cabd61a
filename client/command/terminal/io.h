/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_IO_H
#define CLIENT_COMMAND_TERMINAL_IO_H

/* The verbs' standard input and output. Writing bypasses stdio, which treats a signal during a write as a
 * failure. */

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"
#include "common/error.h"

/* Exit status of a verb when the reader of its output is gone (EPIPE), as if killed by SIGPIPE. */
#define IO_EXIT_PIPE (128 + SIGPIPE)

/* Writes all data to stdout at once. 0; silently -EPIPE if the reader is gone, and -EINTR if the user
 * interrupted (interrupt.h) a blocked write; any other -errno after a line on stderr. */
int io_write(const void *data, size_t len);

/* The same for a model's text: on a terminal, control characters are replaced (utf8_append_shown). `data`
 * ends with a whole character. */
int io_write_text(const char *data, size_t len);

#define IO_FLOAT_DIGITS 9 /* enough to read a float back unchanged */

/* The same for a line of JSON, whose numbers have this many digits. Takes the reference. NULL, the result of
 * functions that ran out of memory, gives -ENOMEM. */
int io_write_json(json_t *json);

/* Appends stdin up to its end. -EMSGSIZE with a reason beyond `max` bytes, -ENOMEM, or -errno. `what` names
 * the input in the reason: "the prompt". */
int io_read_stdin(struct buffer *ret_data, size_t max, const char *what, struct error *err);

/* The same for a file; the reason names its path. */
int io_read_file(const char *path, size_t max, struct buffer *ret_data, struct error *err);

/* Whether lines can be overwritten: a terminal that is not dumb. */
bool io_redraws(int fd);

/* Whether to use colours: such a terminal, and NO_COLOR is unset or empty. */
bool io_colours(int fd);

#endif
