/* SPDX-License-Identifier: MIT */
/* Plain C, for a GPU and for an emulated device alike. */

#include "cuda/device/selection.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST_GPUS 64

static bool is_uuid(const char *item)
{
    const bool begins = strncmp(item, "GPU-", 4) == 0 || strncmp(item, "MIG-", 4) == 0;
    return begins && item[4] && strspn(item + 4, "0123456789abcdefABCDEFGPU-/") == strlen(item + 4);
}

static bool is_number(const char *item)
{
    return strlen(item) <= 4 && strspn(item, "0123456789") == strlen(item);
}

static int add(struct selection *selection, const char *from, size_t len, struct error *err)
{
    char item[SELECTION_BYTES] = "";
    if (len < sizeof item)
        memcpy(item, from, len);
    if (len == 0 || len >= sizeof item || !(is_number(item) || is_uuid(item)))
        return error_set(
            err, -EINVAL,
            "\"%.*s\" is not a device: expected a number, or GPU-… or MIG-… as listed by nvidia-smi -L",
            (int)(len < 80 ? len : 80), from);
    if (selection->n == SELECTION_MOST)
        return error_set(err, -EINVAL, "more than %d devices", SELECTION_MOST);
    for (uint32_t i = 0; i < selection->n; i++)
        if (strcasecmp(selection->items[i], item) == 0)
            return error_set(err, -EINVAL, "device %s is named twice", item);
    memcpy(selection->items[selection->n++], item, sizeof item);
    return 0;
}

int selection_parse(const char *list, struct selection *ret_selection, struct error *err)
{
    struct selection selection = {0};
    for (;;) {
        const size_t len = strcspn(list, ",");
        int r = add(&selection, list, len, err);
        if (r < 0)
            return r;
        if (!list[len])
            break;
        list += len + 1;
    }
    *ret_selection = selection;
    return 0;
}

bool selection_means(const char *item, uint32_t number, const char *uuid)
{
    if (is_number(item))
        return strtoul(item, NULL, 10) == number;
    return strncasecmp(uuid, item, strlen(item)) == 0;
}

int check_capability(uint32_t number, const char *name, uint32_t capability, struct error *err)
{
    if (capability >= LEAST_CAPABILITY)
        return 0;
    return error_set(err, -ENODEV, "GPU %u, %s, has compute capability %u.%u; Quern needs %d.%d or later",
                     number, name, capability / 10, capability % 10, LEAST_CAPABILITY / 10,
                     LEAST_CAPABILITY % 10);
}

bool is_slice_name(const char *name)
{
    return strstr(name, " MIG ") != NULL;
}

void uuid_text(const uint8_t uuid[16], bool is_slice, char ret_text[UUID_BYTES])
{
    int at = snprintf(ret_text, UUID_BYTES, "%s", is_slice ? "MIG" : "GPU");
    for (int i = 0; i < 16; i++) {
        const bool begins = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        at += snprintf(ret_text + at, UUID_BYTES - (size_t)at, "%s%02x", begins ? "-" : "", uuid[i]);
    }
}

/* ---- what the driver lists ---- */

/* What stands behind `key` in its line, without blanks before it; "": nothing. */
static void find_value(FILE *file, const char *key, char *ret_value, size_t size)
{
    char line[256];
    ret_value[0] = 0;
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *value = line + strlen(key);
        value += strspn(value, " \t");
        snprintf(ret_value, size, "%.*s", (int)strcspn(value, "\n"), value);
        return;
    }
}

static void append_gpu(const char *folder, const char *place, uint32_t number, char *text, size_t size)
{
    char path[512], uuid[UUID_BYTES], model[64];
    const size_t len = strlen(text);
    snprintf(path, sizeof path, "%s/%s/information", folder, place);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    find_value(file, "GPU UUID:", uuid, sizeof uuid);
    find_value(file, "Model:", model, sizeof model);
    fclose(file);
    snprintf(text + len, size - len, "%s%u %s (%s)", len > 0 ? ", " : "", number, uuid, model);
}

static int is_place(const struct dirent *entry)
{
    return isxdigit((unsigned char)entry->d_name[0]) && strchr(entry->d_name, ':');
}

void selection_list_gpus(const char *folder, char *ret_text, size_t size)
{
    struct dirent **places;
    const int n = scandir(folder, &places, is_place, alphasort);
    ret_text[0] = 0;
    for (int i = 0; i < n; i++) {
        if (i < MOST_GPUS)
            append_gpu(folder, places[i]->d_name, (uint32_t)i, ret_text, size);
        free(places[i]);
    }
    if (n >= 0)
        free(places);
}
