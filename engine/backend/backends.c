/* SPDX-License-Identifier: MIT */
/* Backends by name: those of this build at once, plugins when they are asked for. */

#include "engine/backend/backends.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/backend/plugin.h"

/* "cuda" of "cuda:0,1"; *ret_list: what stands behind the colon; NULL: there is none. */
static void split_name(const char *name, char ret_kind[16], const char **ret_list)
{
    const size_t len = strcspn(name, ":");
    snprintf(ret_kind, 16, "%.*s", (int)(len < 15 ? len : 15), name);
    *ret_list = name[len] ? name + len + 1 : NULL;
}

/* A plugin whose device is there. -ENOENT: there is no such plugin; -ENOEXEC: not for this build; -ENODEV: no
 * device. */
static int load(const char *name, struct backend_choice *ret_choice, struct error *err)
{
    const struct backend_plugin *plugin;
    const char *list;
    char kind[16];
    uint32_t n_devices;
    split_name(name, kind, &list);
    int r = plugin_load(kind, &plugin, err);
    if (r == 0 && list)
        r = plugin->select ? plugin->select(list, err)
                           : error_set(err, -EINVAL, "its devices cannot be selected by name: \"%s\"", list);
    if (r == 0)
        r = plugin->count(&n_devices, err);
    if (r == 0)
        *ret_choice = (struct backend_choice){.ops = plugin->ops,
                                              .give_back = plugin->give_back,
                                              .describe = plugin->describe,
                                              .host_sampling = plugin->host_sampling,
                                              .n_devices = n_devices};
    return r;
}

static struct backend_choice on_cpu(void)
{
    return (struct backend_choice){
        .ops = &backend_cpu, .give_back = backend_cpu_give_back, .describe = backend_cpu_describe};
}

#define PASSED_OVER "using the CPU instead of the GPU"

/* That a machine has no GPU, or a build no plugin for one, is nothing to talk about. */
static struct backend_choice choose_best(const struct model *model)
{
    struct backend_choice gpu, cpu = on_cpu();
    int r = load("cuda", &gpu, &cpu.note);
    if (r == 0 && model && gpu.ops->check)
        r = gpu.ops->check(model, &cpu.note);
    if (r == 0) {
        gpu.is_auto = true;
        return gpu;
    }
    if (r == -ENODEV || r == -ENOENT)
        cpu.note.text[0] = 0;
    else
        error_prefix(&cpu.note, r, PASSED_OVER);
    return cpu;
}

bool backend_fall_back(struct backend_choice *choice, const struct error *why)
{
    if (!choice->is_auto)
        return false;
    *choice = on_cpu();
    choice->note = *why;
    error_prefix(&choice->note, 0, PASSED_OVER);
    return true;
}

/* Its devices can be named. */
static bool is_plugin(const char *kind)
{
    return strcmp(kind, "cuda") == 0 || strncmp(kind, "emu", 3) == 0;
}

int backend_check_name(const char *name, struct error *err)
{
    static const char *const names[] = {"auto", "cpu", "cuda", "emu", "emu-counting", "null"};
    const char *list;
    char kind[16];
    split_name(name, kind, &list);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(kind, names[i]) == 0 && strlen(kind) == strcspn(name, ":") && (!list || is_plugin(kind)))
            return 0;
    return error_set(err, -EINVAL, "unknown device \"%s\"; available: " QUERN_DEVICES, name);
}

int backend_choose(const char *name, const struct model *model, struct backend_choice *ret_choice,
                   struct error *err)
{
    int r = backend_check_name(name, err);
    if (r < 0)
        return r;
    if (strcmp(name, "cpu") == 0)
        *ret_choice = on_cpu();
    else if (strcmp(name, "null") == 0)
        *ret_choice = (struct backend_choice){.ops = &backend_null};
    else if (strcmp(name, "auto") == 0)
        *ret_choice = choose_best(model);
    else
        return load(name, ret_choice, err) < 0 ? error_prefix(err, -ENODEV, "no device \"%s\"", name) : 0;
    return 0;
}

uint32_t backend_share(const struct backend_choice *choice, uint32_t i, uint32_t n, uint32_t *ret_n_sharers)
{
    const uint32_t n_devices = choice->n_devices ? choice->n_devices : 1, mine = i % n_devices;
    *ret_n_sharers = mine < n ? (n - mine - 1) / n_devices + 1 : 1;
    return mine;
}
