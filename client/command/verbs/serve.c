/* SPDX-License-Identifier: MIT */
/* quern serve: becomes quern-broker, which stands beside this program and takes the same arguments. */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/command/verbs.h"
#include "common/program/program.h"

int verb_serve(int argc, char **argv)
{
    char path[PATH_MAX];
    struct error err;
    int r = program_sibling("quern-broker", path, &err);
    if (r < 0)
        return verb_fail(r, &err);
    /* argv[0] stays "quern serve", so that its usage speaks of what was typed. */
    execv(path, argv);
    r = -errno;
    return verb_fail(error_set(&err, r, "%s: %s", path, strerror(-r)), &err);
}
