/* SPDX-License-Identifier: MIT */
/* Backends by name: those of this build at once, plugins when they are asked for. */

#include "worker/engine/backends.h"

#include <errno.h>
#include <string.h>

#include "worker/engine/plugin.h"

/* A plugin whose device is there. -ENOENT: there is no such plugin; -ENOEXEC: not for this build; -ENODEV: no
 * device. */
static int load(const char *name, const struct backend_ops **ret_ops, struct error *err)
{
    const struct backend_plugin *plugin;
    uint32_t n_devices;
    int r = plugin_load(name, &plugin, err);
    if (r == 0)
        r = plugin->count(&n_devices, err);
    if (r < 0)
        return r;
    *ret_ops = plugin->ops;
    return 0;
}

/* That a machine has no GPU, or a build no plugin for one, is nothing to talk about. */
static const struct backend_ops *choose_best(const struct model *model, struct error *ret_note)
{
    const struct backend_ops *ops;
    int r = load("cuda", &ops, ret_note);
    if (r == -ENODEV || r == -ENOENT)
        ret_note->text[0] = 0;
    if (r == 0 && model && ops->check)
        r = ops->check(model, ret_note);
    if (r == 0)
        return ops;
    if (ret_note->text[0])
        error_prefix(ret_note, r, "the CPU is used and not the GPU");
    return &backend_cpu;
}

int backend_choose(const char *name, const struct model *model, const struct backend_ops **ret_ops,
                   struct error *ret_note, struct error *err)
{
    ret_note->text[0] = 0;
    if (strcmp(name, "cpu") == 0)
        *ret_ops = &backend_cpu;
    else if (strcmp(name, "null") == 0)
        *ret_ops = &backend_null;
    else if (strcmp(name, "auto") == 0)
        *ret_ops = choose_best(model, ret_note);
    else if (strcmp(name, "cuda") == 0 || strcmp(name, "emu") == 0)
        return load(name, ret_ops, err) < 0 ? error_prefix(err, -ENODEV, "no device \"%s\"", name) : 0;
    else
        return error_set(err, -EINVAL, "there is no device \"%s\"; there are " QUERN_DEVICES, name);
    return 0;
}
