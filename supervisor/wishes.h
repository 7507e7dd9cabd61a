/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_WISHES_H
#define SUPERVISOR_WISHES_H

/* Checks the requests of a pool's owner before anything is changed. */

#include <stdbool.h>
#include <stdint.h>

#include "broker/settings/options.h"
#include "common/error.h"
#include "supervisor/places.h"

/* Whether the pool may have `n` workers: 0, or -EINVAL with a reason. One of the remaining workers must
 * serve. */
int wishes_check_scale(const struct places *places, uint32_t n, struct error *err);

/* Whether this worker may be drained or undrained: 0, or -EINVAL with a reason. Another worker must serve
 * meanwhile. */
int wishes_check_worker(const struct places *places, uint32_t index, bool drain, struct error *err);

/* How the pool was started: read again for new settings. */
struct wishes_line {
    int argc;
    char **argv;
    uint32_t most_journal; /* MiB that its shared memory has room for */
};

/* Rereads the pool's configuration file. *ret_options: all new settings. 0, or -errno with a reason that
 * names the setting or the line. */
int wishes_read_settings(const struct places *places, const struct wishes_line *line,
                         struct options *ret_options, struct error *err);

#endif
