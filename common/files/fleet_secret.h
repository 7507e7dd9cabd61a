/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_FLEET_SECRET_H
#define COMMON_FILES_FLEET_SECRET_H

/* The secret that pools and gateways of a fleet share: a file with one line of 16 to 128 printable characters
 * without spaces. It is the seed of the hashes with which pools describe their cached prompts; whoever asks
 * for these must present it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define FLEET_SECRET_LEAST 16
#define FLEET_SECRET_MOST  128

struct fleet_secret { /* zeroed: none */
    char text[FLEET_SECRET_MOST + 1];
    uint64_t seed; /* of the hashes of prompts */
};

/* Reads the file. -EPERM if others can read it (secret_file_check_private); -EINVAL if its contents are
 * invalid; or -errno. Reasons name the file. */
int fleet_secret_read(const char *path, struct fleet_secret *ret_secret, struct error *err);

/* Whether this is the secret; takes the same time for every wrong one of its length. */
bool fleet_secret_is(const struct fleet_secret *secret, const void *text, size_t len);

#endif
