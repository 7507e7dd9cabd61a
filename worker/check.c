/* SPDX-License-Identifier: MIT */
/* Checking settings before a worker is replaced for them. The supervisor reads no model and no template, so a
 * process of this program does, beside the workers that serve: it needs no slot of the board, no door and no
 * device, and a model's weights are not read. */

#include "worker/check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "common/program/program.h"
#include "worker/load.h"

static bool go_on(void *arg)
{
    return true;
}

int check_options(const struct worker_options *options)
{
    static struct load load;
    struct error err = {{0}};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    load.options = options;
    load.progress = go_on;
    int r = load_check(&load, &err);
    if (r < 0)
        program_error("%s", err.text);
    load_close(&load);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
