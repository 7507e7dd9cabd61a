/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_WISHES_H
#define SUPERVISOR_WISHES_H

/* What the owner of a pool may wish of its workers and settings: checked before anything is changed. */

#include <stdbool.h>
#include <stdint.h>

#include "broker/settings/options.h"
#include "common/error.h"
#include "supervisor/places.h"

/* Whether there may be `n` workers: 0, or -EINVAL with the reason. One of those that are left has to serve.
 */
int wishes_check_scale(const struct places *places, uint32_t n, struct error *err);

/* Whether this worker may be drained, or taken back: the same. Another one has to serve meanwhile. */
int wishes_check_worker(const struct places *places, uint32_t index, bool drain, struct error *err);

/* How the pool was started, which is said again for other settings. */
struct wishes_line {
    int argc;
    char **argv;
    uint32_t most_journal; /* MiB: what its memory has room for */
};

/* Reads the pool's file of settings again. *ret_options: all settings, as they are to be. 0, or -errno with
 * the reason, which names the setting or the line. */
int wishes_read_settings(const struct places *places, const struct wishes_line *line,
                         struct options *ret_options, struct error *err);

#endif
