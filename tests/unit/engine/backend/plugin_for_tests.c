/* SPDX-License-Identifier: MIT */
/* A plugin of PLUGIN_INTERFACE, this build's or another's, for PLUGIN_DEVICES devices. Its backend executes
 * every model but those named "unrunnable". */

#include <errno.h>
#include <string.h>

#include "engine/backend/plugin.h"
#include "model/model.h"

static int check(const struct model *model, struct error *err)
{
    if (strcmp(model->params.name, "unrunnable") == 0)
        return error_set(err, -EINVAL, "the device cannot compute mixtures of experts");
    return 0;
}

static uint32_t n_selected;

static int select_devices(const char *list, struct error *err)
{
    if (strcmp(list, "some") != 0)
        return error_set(err, -ENODEV, "no device is %s", list);
    n_selected = 2;
    return 0;
}

static int count(uint32_t *ret_n, struct error *err)
{
    *ret_n = n_selected > 0 ? n_selected : PLUGIN_DEVICES;
    return PLUGIN_DEVICES ? 0 : error_set(err, -ENODEV, "there is no driver");
}

static const struct backend_ops ops = {.name = "plugin", .check = check};
extern const uint64_t other_interface;
const uint64_t other_interface = 0x1234;
extern const struct backend_plugin quern_plugin;
const struct backend_plugin quern_plugin = {
    .interface = &PLUGIN_INTERFACE,
    .version = QUERN_VERSION,
    .ops = &ops,
    .count = count,
    .select = select_devices,
};
