/* SPDX-License-Identifier: MIT */
/* Finding and loading plugins. */

#include "engine/backend/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the running program. */
static int own_folder(char ret_folder[PATH_MAX], struct error *err)
{
    ssize_t n = readlink("/proc/self/exe", ret_folder, PATH_MAX - 1);
    if (n < 0)
        return error_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
    ret_folder[n] = 0;
    *strrchr(ret_folder, '/') = 0;
    return 0;
}

/* The first of the places that has the file. */
static int find(const char *name, char ret_path[PATH_MAX], struct error *err)
{
    char beside[PATH_MAX], installed[PATH_MAX + sizeof QUERN_PLUGIN_FOLDER];
    const char *named = secure_getenv("QUERN_PLUGINS");
    int r = own_folder(beside, err);
    if (r < 0)
        return r;
    /* From the program on, so that an installed tree can be moved. */
    snprintf(installed, sizeof installed, "%s/" QUERN_PLUGIN_FOLDER,
             QUERN_PLUGIN_FOLDER[0] == '/' ? "" : beside);
    const char *const places[] = {named ? named : beside, named ? NULL : installed};
    for (size_t i = 0; i < 2 && places[i]; i++) {
        int n = snprintf(ret_path, PATH_MAX, "%s/quern-%s.so", places[i], name);
        if (n < PATH_MAX && access(ret_path, F_OK) == 0)
            return 0;
    }
    return error_set(err, -ENOENT, "quern-%s.so not found in %s%s%s", name, places[0],
                     places[1] ? " or in " : "", places[1] ? places[1] : "");
}

static int check(const struct backend_plugin *plugin, const char *path, struct error *err)
{
    if (!plugin)
        return error_set(err, -ENOEXEC, "%s is not a Quern plugin: it lacks the symbol " PLUGIN_SYMBOL, path);
    if (*plugin->interface != backend_interface)
        return error_set(
            err, -ENOEXEC,
            "%s is from a different build than this program: version %s and interface %016" PRIx64
            ", not " QUERN_VERSION " and %016" PRIx64,
            path, plugin->version, *plugin->interface, backend_interface);
    return 0;
}

int plugin_load(const char *name, const struct backend_plugin **ret_plugin, struct error *err)
{
    char path[PATH_MAX];
    int r = find(name, path, err);
    if (r < 0)
        return r;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return error_set(err, -ENOEXEC, "%s cannot be loaded: %s", path, dlerror());
    const struct backend_plugin *plugin = dlsym(object, PLUGIN_SYMBOL);
    r = check(plugin, path, err);
    if (r < 0) {
        dlclose(object);
        return r;
    }
    *ret_plugin = plugin;
    return 0;
}
