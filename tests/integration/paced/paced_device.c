/* SPDX-License-Identifier: MIT */
/* A worker that takes 4 ms longer for each step. With the null device its answers come as evenly as those of
 * a GPU, however slow the machine, so that a client sees every delay that is made on their way. On the CPU
 * they take long enough to be disturbed, however fast the machine. Linked with --wrap=backend_choose. */

#include <time.h>

#include "engine/backend/backends.h"

#define STEP_NS 4000000

int __real_backend_choose(const char *name, const struct model *model, struct backend_choice *ret_choice,
                          struct error *err);
int __wrap_backend_choose(const char *name, const struct model *model, struct backend_choice *ret_choice,
                          struct error *err);

static const struct backend_ops *computing; /* what takes longer */
static struct backend_ops ops;

static int paced_submit(struct backend *backend, const struct backend_step *step, uint64_t *ret_ticket)
{
    const struct timespec pace = {.tv_nsec = STEP_NS};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pace, NULL);
    return computing->submit(backend, step, ret_ticket);
}

int __wrap_backend_choose(const char *name, const struct model *model, struct backend_choice *ret_choice,
                          struct error *err)
{
    int r = __real_backend_choose(name, model, ret_choice, err);
    if (r != 0 || (ret_choice->ops != &backend_null && ret_choice->ops != &backend_cpu))
        return r;
    computing = ret_choice->ops;
    ops = *computing;
    ops.submit = paced_submit;
    ret_choice->ops = &ops;
    return 0;
}
