/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_CONFIG_FILE_H
#define COMMON_FILES_CONFIG_FILE_H

/* Reads the syntax of a configuration file (man/quern.conf.5), not its settings: each line is NAME = VALUE.
 * Blanks around both are ignored. A value may be in quotes ("…" or '…'); outside of them '#' begins a
 * comment. */

#include <stddef.h>

#include "common/error.h"

#define CONFIG_FILE_MAX_BYTES ((size_t)256 << 10)

/* Called for each setting in the order of the file, repeated ones included, with its line (from 1 on); the
 * value may be "". A result other than 0 ends reading; file and line are prepended to its reason. */
typedef int config_file_take(void *arg, unsigned line, const char *name, const char *value,
                             struct error *err);

/* Parses the contents of a file; `path` is for error texts. 0; -EINVAL: a syntax error; -ENOMEM; or the
 * result of `take`. */
int config_file_parse(const void *data, size_t len, const char *path, config_file_take *take, void *arg,
                      struct error *err);

/* The same for a file; a pipe is read to its end. Also -errno if it cannot be read. */
int config_file_read(const char *path, config_file_take *take, void *arg, struct error *err);

#endif
