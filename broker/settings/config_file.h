/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SETTINGS_CONFIG_FILE_H
#define BROKER_SETTINGS_CONFIG_FILE_H

/* Reads the syntax of a configuration file (man/quern.conf.5), not its settings: each line is NAME = VALUE.
 * Blanks around both are ignored. A value may be in quotes ("…" or '…'); outside of them '#' begins a
 * comment. */

#include <stddef.h>

#include "common/error.h"

#define CONFIG_FILE_MAX_BYTES ((size_t)256 << 10)

/* Is given each setting, in the order of the file, as often as it stands there, with its line (the first is
 * 1); the value may be "". What is not 0 ends the reading, and its reason gets file and line put before it.
 */
typedef int config_file_take(void *arg, unsigned line, const char *name, const char *value,
                             struct error *err);

/* Reads what a file holds; `path` is for the reasons. 0, -EINVAL if it is not such a file, -ENOMEM, or what
 * `take` returned. */
int config_file_parse(const void *data, size_t len, const char *path, config_file_take *take, void *arg,
                      struct error *err);

/* The same of the file; it may be a pipe, which is read to its end. Or -errno. */
int config_file_read(const char *path, config_file_take *take, void *arg, struct error *err);

#endif
