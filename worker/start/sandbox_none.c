/* SPDX-License-Identifier: MIT */
/* In place of sandbox.c where a sanitizer is built in: at the end of the process, and when it has found
 * something, that opens files, starts threads that trace the others, and maps memory in its own ways. */

#include "worker/start/sandbox.h"

#include <errno.h>

int sandbox_confine_files(const struct sandbox *sandbox, struct error *err)
{
    return error_set(err, -ENOTSUP, "a build with a sanitizer is not confined");
}

int sandbox_confine_calls(enum sandbox_stage stage, const char *name, struct error *err)
{
    return error_set(err, -ENOTSUP, "a build with a sanitizer is not confined");
}
