/* SPDX-License-Identifier: MIT */
/* A worker whose null device takes 4 ms a step: its answers come as evenly as those of a GPU, however slow
 * the machine, so that a client sees every delay that is made on their way. Linked with
 * --wrap=backend_choose. */

#include <time.h>

#include "engine/backend/backends.h"

#define STEP_NS 4000000

int __real_backend_choose(const char *name, const struct model *model, struct backend_choice *ret_choice,
                          struct error *err);
int __wrap_backend_choose(const char *name, const struct model *model, struct backend_choice *ret_choice,
                          struct error *err);

static struct backend_ops ops;

static int paced_submit(struct backend *backend, const struct backend_step *step, uint64_t *ret_ticket)
{
    const struct timespec pace = {.tv_nsec = STEP_NS};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pace, NULL);
    return backend_null.submit(backend, step, ret_ticket);
}

int __wrap_backend_choose(const char *name, const struct model *model, struct backend_choice *ret_choice,
                          struct error *err)
{
    int r = __real_backend_choose(name, model, ret_choice, err);
    if (r != 0 || ret_choice->ops != &backend_null)
        return r;
    ops = backend_null;
    ops.submit = paced_submit;
    ret_choice->ops = &ops;
    return 0;
}
