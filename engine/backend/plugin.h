/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_PLUGIN_H
#define ENGINE_BACKEND_PLUGIN_H

/* A backend in a shared object of its own, quern-NAME.so, loaded on request: so one build of the programs
 * runs on machines with and without what the backend needs.
 *
 * It is looked for beside the running program, then in the installation's folder, or only in the folder that
 * $QUERN_PLUGINS names. Program and plugin exchange structures, so a plugin runs only with programs of its
 * own build: `interface` is a digest of the headers that both were compiled with, and a plugin with another
 * one is rejected. A loaded plugin stays loaded. */

#include <stdint.h>

#include "common/error.h"
#include "engine/backend/backend.h"

/* What a plugin shows, as its only symbol. The first two members never move. */
struct backend_plugin {
    const uint64_t *interface;
    const char *version; /* of Quern */
    const struct backend_ops *ops;
    /* Devices that there are: 0 with their number, ≥ 1; -ENODEV with the reason. */
    int (*count)(uint32_t *ret_n, struct error *err);
};
#define PLUGIN_SYMBOL "quern_plugin"

/* The digest of this build; made by meson, and linked into programs and plugins alike. */
extern const uint64_t backend_interface;

/* Loads quern-NAME.so. -ENOENT: there is none, with the places that were looked in; -ENOEXEC: it cannot be
 * loaded, or is of another build. */
int plugin_load(const char *name, const struct backend_plugin **ret_plugin, struct error *err);

#endif
