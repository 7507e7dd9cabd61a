/* SPDX-License-Identifier: MIT */
/* One array of JSON is built, and dumped or laid out, so that both say the same. */

#include "client/command/inspect_device.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "client/command/inspect_choices.h"
#include "client/command/terminal/io.h"
#include "common/amount.h"
#include "engine/backend/backends.h"

static json_t *device_json(const char *kind, uint32_t number, const struct device_description *d)
{
    json_t *json = json_pack("{s:s%, s:I, s:s, s:I, s:I, s:I, s:I}", "kind", kind, strcspn(kind, ":"),
                             "number", (json_int_t)number, "name", d->name, "cores", (json_int_t)d->n_cores,
                             "memory", (json_int_t)d->memory_total, "memory_free", (json_int_t)d->memory_free,
                             "memory_used", (json_int_t)(d->memory_total - d->memory_free));
    if (json && d->uuid[0])
        json_object_set_new(json, "uuid", json_string(d->uuid));
    if (json && d->driver[0])
        json_object_set_new(json, "driver", json_string(d->driver));
    if (json && d->capability > 0) {
        char text[16];
        snprintf(text, sizeof text, "%u.%u", d->capability / 10, d->capability % 10);
        json_object_set_new(json, "compute_capability", json_string(text));
    }
    if (json && d->bandwidth > 0)
        json_object_set_new(json, "bandwidth", json_integer((json_int_t)d->bandwidth));
    return json;
}

/* Appends all devices of one kind that can be described; the error is that of the first that cannot. */
static int add(json_t *devices, const char *kind, struct error *err)
{
    struct backend_choice choice;
    int r = backend_choose(kind, NULL, &choice, err);
    if (r < 0)
        return r;
    if (!choice.describe)
        return error_set(err, -ENODEV, "device \"%s\" cannot be described", kind);
    const uint32_t n = choice.n_devices > 0 ? choice.n_devices : 1;
    for (uint32_t i = 0; i < n; i++) {
        struct device_description description;
        const int described = choice.describe(i, &description, r == 0 ? err : NULL);
        json_t *device = described == 0 ? device_json(kind, i, &description) : NULL;
        if (described == 0 && choice.n_devices > 0)
            inspect_add_choices(device, description.name);
        if (described == 0 && json_array_append_new(devices, device) < 0)
            return error_set(err, -ENOMEM, "out of memory");
        r = r == 0 ? described : r;
    }
    return r;
}

static void print_text(const json_t *device, const char *key, const char *label)
{
    const char *text = json_string_value(json_object_get(device, key));
    if (text)
        printf("  %-20s %s\n", label, text);
}

static void print_device(const json_t *device)
{
    const char *kind = json_string_value(json_object_get(device, "kind"));
    const json_int_t number = json_integer_value(json_object_get(device, "number"));
    const json_int_t bandwidth = json_integer_value(json_object_get(device, "bandwidth"));
    printf("%s %" JSON_INTEGER_FORMAT "\n", kind, number);
    print_text(device, "name", "name");
    print_text(device, "uuid", "UUID");
    print_text(device, "driver", "driver");
    print_text(device, "compute_capability", "compute capability");
    printf("  %-20s %" JSON_INTEGER_FORMAT "\n", strcmp(kind, "cpu") == 0 ? "cores" : "multiprocessors",
           json_integer_value(json_object_get(device, "cores")));
    printf("  %-20s %s free, %s used, %s in all\n", "memory",
           amount_of_bytes((uint64_t)json_integer_value(json_object_get(device, "memory_free"))).text,
           amount_of_bytes((uint64_t)json_integer_value(json_object_get(device, "memory_used"))).text,
           amount_of_bytes((uint64_t)json_integer_value(json_object_get(device, "memory"))).text);
    if (bandwidth > 0)
        printf("  %-20s %.0f GB/s\n", "memory bandwidth", (double)bandwidth / 1e9);
    inspect_print_choices(device);
}

int inspect_devices(const char *kind, bool json, struct error *err)
{
    json_t *devices = json_array(), *device;
    struct error lacking = {0};
    size_t i;
    const bool all = !kind || strcmp(kind, "auto") == 0;
    int r = devices ? add(devices, all ? "cpu" : kind, err) : error_set(err, -ENOMEM, "out of memory");
    if (r == 0 && all)
        add(devices, "cuda", &lacking);
    const bool some = json_array_size(devices) > 1; /* a GPU too */
    if (r < 0 && json_array_size(devices) > 0)
        error_set(&lacking, r, "%s", err->text);
    if (json && json_array_size(devices) > 0) {
        const int written =
            io_write_json(json_pack("{s:o, s:o*}", "devices", devices, r < 0 || some ? "not_shown" : "no_gpu",
                                    lacking.text[0] ? json_string(lacking.text) : NULL));
        return r < 0 ? r : written;
    }
    json_array_foreach(devices, i, device)
    {
        print_device(device);
    }
    if (lacking.text[0] && r == 0)
        printf("%s: %s\n", some ? "not shown" : "no GPU", lacking.text);
    json_decref(devices);
    return r;
}
