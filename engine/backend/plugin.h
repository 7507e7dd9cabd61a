/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_PLUGIN_H
#define ENGINE_BACKEND_PLUGIN_H

/* A backend in a separate shared object, quern-NAME.so, loaded on request, so that one build of the programs
 * runs on machines with and without the libraries that the backend needs.
 *
 * It is searched for beside the running program, then in the installation's folder; if $QUERN_PLUGINS names a
 * folder, only there. Program and plugin exchange structures, so a plugin runs only with programs of the same
 * build: `interface` is a digest of the headers that both were compiled with, and a plugin with a different
 * digest is rejected. A loaded plugin stays loaded. */

#include <stdint.h>

#include "common/error.h"
#include "engine/backend/backend.h"
#include "engine/backend/device.h"
#include "engine/backend/give_back.h"
#include "engine/backend/host_sampling.h"

/* A plugin's only symbol. The first two members never move. */
struct backend_plugin {
    const uint64_t *interface;
    const char *version; /* of Quern */
    const struct backend_ops *ops;
    /* Counts devices: 0 with their number, ≥ 1; -ENODEV with the reason. */
    int (*count)(uint32_t *ret_n, struct error *err);
    /* Restricts devices to those in a list of numbers and UUIDs, separated by commas. Called before anything
     * else. 0; -EINVAL, -ENODEV with the reason. NULL: devices have no names. */
    int (*select)(const char *list, struct error *err);
    backend_give_back *give_back;
    backend_describe *describe;
    const struct backend_host_sampling *host_sampling; /* NULL: it always samples on the host */
};
#define PLUGIN_SYMBOL "quern_plugin"

/* The digest of this build, made by meson, linked into programs and plugins. */
extern const uint64_t backend_interface;

/* Loads quern-NAME.so. 0; -ENOENT: not found, with the searched folders; -ENOEXEC: it cannot be loaded, or
 * comes from another build. */
int plugin_load(const char *name, const struct backend_plugin **ret_plugin, struct error *err);

#endif
