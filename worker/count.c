/* SPDX-License-Identifier: MIT */
/* Counting devices for the supervisor, which loads no driver itself. Nothing is said of what is wrong: the
 * worker that is started then says it. */

#include "worker/count.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "engine/backend/backends.h"
#include "model/model.h"

/* Workers on the processor have no numbers, and one of them has all cores: so it matters which "auto" takes.
 * A model that cannot be opened is for one worker to tell. */
static uint32_t count_for_model(const struct worker_options *options, const struct backend_choice *first)
{
    struct backend_choice choice = {0};
    struct model *model;
    struct error err;
    if (!first->is_auto || first->n_devices < 2)
        return first->n_devices;
    if (model_open_overridden(options->model, options->overrides, false, &model, &err) < 0)
        return 0;
    const int r = backend_choose(options->device, model, &choice, &err);
    model_free(model);
    return r == 0 ? choice.n_devices : 0;
}

int count_devices(const struct worker_options *options)
{
    struct backend_choice choice;
    struct error err;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a driver may hang */
    if (backend_choose(options->device, NULL, &choice, &err) < 0)
        return EXIT_FAILURE;
    return printf("%u\n", count_for_model(options, &choice)) > 0 && fflush(stdout) == 0 ? EXIT_SUCCESS
                                                                                        : EXIT_FAILURE;
}
