/* SPDX-License-Identifier: MIT */
/* describe.h of emulated devices. Their memory has no speed. With $QUERN_EMU_MIG they are slices of GPUs. */

#include "cuda/device/describe.h"

#include <errno.h>
#include <stdio.h>

#include "cuda/device/device.h"
#include "cuda/device/selection.h"
#include "cuda/emu/emu.h"

static bool is_slice(void)
{
    return emu_number("QUERN_EMU_MIG", 0) != 0;
}

static void find_uuid(uint32_t number, char ret_uuid[UUID_BYTES])
{
    uint8_t uuid[16] = {};
    for (int i = 0; i < 4; i++)
        uuid[15 - i] = (uint8_t)(number >> 8 * i);
    uuid_text(uuid, is_slice(), ret_uuid);
}

/* ---- selecting ---- */

/* The one device that an item means. */
static int find_item(const char *item, uint32_t n, uint32_t *ret_number, struct error *err)
{
    char uuid[UUID_BYTES], list[512] = "";
    uint32_t n_found = 0;
    for (uint32_t i = 0; i < n; i++) {
        const size_t len = strlen(list);
        find_uuid(i, uuid);
        snprintf(list + len, sizeof list - len, "%s%u %s", i > 0 ? ", " : "", i, uuid);
        if (!selection_means(item, i, uuid))
            continue;
        *ret_number = i;
        n_found++;
    }
    if (n_found == 1)
        return 0;
    return error_set(err, -ENODEV, "%s emulated device is %s; available: %s",
                     n_found == 0 ? "no" : "more than one", item, list);
}

int device_select(const char *list, struct error *err)
{
    struct selection selection;
    uint32_t n, found[SELECTION_MOST];
    emu_select(NULL, 0);
    int r = selection_parse(list, &selection, err);
    if (r == 0)
        r = device_count(&n, err);
    for (uint32_t i = 0; r == 0 && i < selection.n; i++) {
        r = find_item(selection.items[i], n, &found[i], err);
        for (uint32_t j = 0; r == 0 && j < i; j++)
            if (found[j] == found[i])
                r = error_set(err, -EINVAL, "device %u is named twice, as %s and %s", found[i],
                              selection.items[j], selection.items[i]);
    }
    if (r < 0)
        return r;
    emu_select(found, selection.n);
    return 0;
}

/* ---- describing ---- */

int device_describe(uint32_t number, struct device_description *ret_description, struct error *err)
{
    struct device *device;
    struct device_description d = {};
    const int r = device_open(number, &device, err);
    if (r < 0)
        return r;
    const struct device_properties *properties = device_properties(device);
    snprintf(d.name, sizeof d.name, "%.40s%s", properties->name, is_slice() ? " MIG 1g.1gb" : "");
    find_uuid(emu_number_of(number), d.uuid);
    snprintf(d.driver, sizeof d.driver, "none, emulated");
    d.capability = properties->capability;
    d.n_cores = properties->n_multiprocessors;
    d.memory_free = device_free_bytes(device);
    d.memory_total = properties->total_bytes;
    device_close(device);
    *ret_description = d;
    return 0;
}
