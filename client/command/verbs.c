/* SPDX-License-Identifier: MIT */
/* The table of verbs, in the order of `quern --help`. */

#include "client/command/verbs.h"

#include <stddef.h>

const struct verb verbs[] = {
    {NULL, NULL, NULL},
};
