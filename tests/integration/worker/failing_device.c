/* SPDX-License-Identifier: MIT */
/* The backends of a worker whose device fails at its tenth step: "gone" for good, "broken" so that another
 * process may try again. Or already when it is opened: "faulty", "still" and "wrong". Linked with --wrap of
 * what it stands in for in engine/backend/backends.c. */

#include <errno.h>
#include <string.h>

#include "engine/backend/backends.h"

#define LAST_STEP 10

static struct backend_ops ops;
static int verdict, open_fails;

static int failing_poll(struct backend *backend, uint64_t ticket, int timeout_ms,
                        const struct backend_result **ret_results, struct error *err)
{
    if (ticket == LAST_STEP)
        return error_set(err, -EIO, "no answer");
    return backend_null.poll(backend, ticket, timeout_ms, ret_results, err);
}

static int failing_verdict(struct backend *backend, struct error *err)
{
    return error_set(err, verdict, verdict == -ENODEV ? "the device is gone" : "the device is broken");
}

static int failing_open(const struct backend_config *config, struct backend **ret_backend, struct error *err)
{
    return error_set(err, open_fails, "the device does not open");
}

/* Why it does not open; 0: it does. */
static int failure_to_open(const char *name)
{
    static const struct {
        const char *name;
        int code;
    } failures[] = {{"faulty", -EIO}, {"still", -ETIMEDOUT}, {"wrong", -ENODEV}};
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if (strcmp(name, failures[i].name) == 0)
            return failures[i].code;
    return 0;
}

int __wrap_backend_check_name(const char *name, struct error *err);
int __wrap_backend_choose(const char *name, const struct model *model, struct backend_choice *ret_choice,
                          struct error *err);
bool __wrap_backend_fall_back(struct backend_choice *choice, const struct error *why);
uint32_t __wrap_backend_share(const struct backend_choice *choice, uint32_t i, uint32_t n,
                              uint32_t *ret_n_sharers);

int __wrap_backend_check_name(const char *name, struct error *err)
{
    return 0;
}

int __wrap_backend_choose(const char *name, const struct model *model, struct backend_choice *ret_choice,
                          struct error *err)
{
    ops = backend_null;
    ops.poll = failing_poll;
    ops.verdict = failing_verdict;
    verdict = strcmp(name, "gone") == 0 ? -ENODEV : -EIO;
    open_fails = failure_to_open(name);
    if (open_fails)
        ops.open = failing_open;
    *ret_choice = (struct backend_choice){.ops = &ops};
    return 0;
}

bool __wrap_backend_fall_back(struct backend_choice *choice, const struct error *why)
{
    return false;
}

uint32_t __wrap_backend_share(const struct backend_choice *choice, uint32_t i, uint32_t n,
                              uint32_t *ret_n_sharers)
{
    *ret_n_sharers = n;
    return 0;
}
