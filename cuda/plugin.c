/* SPDX-License-Identifier: MIT */
/* What makes a plugin of the backend: the one symbol that programs look for. */

#include "cuda/backend.h"
#include "cuda/device/describe.h"
#include "engine/backend/plugin.h"

extern const struct backend_plugin quern_plugin;
__attribute__((visibility("default"))) const struct backend_plugin quern_plugin = {
    .interface = &backend_interface,
    .version = QUERN_VERSION,
    .ops = &quern_backend,
    .count = device_count,
    .select = device_select,
    .give_back = quern_give_back,
    .describe = device_describe,
    .host_sampling = &quern_host_sampling,
};
