/* SPDX-License-Identifier: MIT */
/* Which backends this build has, by name. "auto" is the best of those that run everywhere. */

#include <string.h>

#include "worker/engine/backend.h"

const struct backend_ops *backend_by_name(const char *name)
{
    static const struct {
        const char *name;
        const struct backend_ops *ops;
    } known[] = {{"auto", &backend_cpu}, {"cpu", &backend_cpu}, {"null", &backend_null}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i].name) == 0)
            return known[i].ops;
    return NULL;
}
