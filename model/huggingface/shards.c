/* SPDX-License-Identifier: MIT */
/* Every tensor of every file is taken, so what the index says besides the names of files is not needed. */

#include "model/huggingface/shards.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/utf8.h"
#include "model/huggingface/json_values.h"

#define INDEX      "model.safetensors.index.json"
#define SINGLE     "model.safetensors"
#define MOST_INDEX ((size_t)64 << 20)
#define MOST_FILES 1024

/* ---- the names of files ---- */

static int add_shard(struct shards *shards, const char *name, struct error *err)
{
    char shown[96];
    for (size_t i = 0; i < shards->n; i++)
        if (strcmp(shards->names[i], name) == 0)
            return 0;
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/'))
        return error_set(err, -EINVAL, INDEX ": weight_map: \"%s\" is not a file of the folder",
                         utf8_printable(bytes_of_string(name), sizeof shown, shown));
    if (shards->n == MOST_FILES)
        return error_set(err, -EINVAL, INDEX ": weight_map: more than %d files", MOST_FILES);
    char **names = reallocarray(shards->names, shards->n + 1, sizeof *names);
    if (!names)
        return -ENOMEM;
    shards->names = names;
    names[shards->n] = strdup(name);
    return names[shards->n++] ? 0 : -ENOMEM;
}

static int list_indexed(struct shards *shards, json_t *index, struct error *err)
{
    json_t *map = json_object_get(index, "weight_map"), *value;
    const char *tensor;
    if (!json_is_object(map) || json_object_size(map) == 0)
        return error_set(err, -EINVAL, INDEX ": weight_map is missing or empty");
    json_object_foreach(map, tensor, value)
    {
        char shown[96];
        if (!json_is_string(value))
            return error_set(err, -EINVAL, INDEX ": weight_map: %s is in no file",
                             utf8_printable(bytes_of_string(tensor), sizeof shown, shown));
        int r = add_shard(shards, json_string_value(value), err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_index(struct shards *shards, shards_map *map, void *arg, struct error *err)
{
    struct bytes text;
    json_t *index = NULL;
    int r = map(arg, INDEX, &text);
    if (r < 0)
        return r == -ENOENT ? error_set(err, r, "neither " SINGLE " nor " INDEX " is there") : r;
    r = json_object_parse(text, MOST_INDEX, &index, err);
    if (r < 0)
        return error_prefix(err, r, INDEX);
    r = list_indexed(shards, index, err);
    json_decref(index);
    return r;
}

/* ---- tensors ---- */

/* Is it one of the names, which commas separate? */
static bool is_listed(const char *names, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = names; len > 0 && (at = strstr(at, name)); at += len)
        if ((at == names || at[-1] == ' ') && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

static void leave_out(struct shards *shards, const char *part)
{
    const size_t len = strlen(shards->left_out);
    if (!is_listed(shards->left_out, part))
        snprintf(shards->left_out + len, sizeof shards->left_out - len, "%s%s", len ? ", " : "", part);
    shards->n_left_out++;
}

static int add_tensors(struct shards *shards, struct config *config, size_t file, struct error *err)
{
    const struct safetensors *parsed = &shards->files[file];
    struct shard_tensor *tensors =
        reallocarray(shards->tensors, shards->n_tensors + parsed->n + 1, sizeof *tensors);
    if (!tensors)
        return -ENOMEM;
    shards->tensors = tensors;
    for (size_t i = 0; i < parsed->n; i++) {
        struct shard_tensor *next = &tensors[shards->n_tensors];
        bool is_text;
        int r = names_clean(config, parsed->tensors[i].name, next->name, &is_text, err);
        if (r < 0)
            return r;
        if (!is_text) {
            leave_out(shards, next->name);
            continue;
        }
        names_note(config, next->name);
        next->tensor = &parsed->tensors[i];
        next->file = shards->names[file];
        shards->n_tensors++;
    }
    return 0;
}

static int read_shard(struct shards *shards, struct config *config, size_t i, shards_map *map, void *arg,
                      struct error *err)
{
    struct bytes bytes;
    int r = map(arg, shards->names[i], &bytes);
    if (r == -ENOENT)
        return error_set(err, r, "%s is missing, which " INDEX " lists", shards->names[i]);
    if (r < 0)
        return r;
    r = safetensors_parse(bytes, &shards->files[i], err);
    if (r == 0)
        r = add_tensors(shards, config, i, err);
    return r < 0 ? error_prefix(err, r, "%s", shards->names[i]) : 0;
}

static int compare_names(const void *a, const void *b)
{
    const struct shard_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int refuse_twins(const struct shards *shards, struct error *err)
{
    for (size_t i = 1; i < shards->n_tensors; i++)
        if (strcmp(shards->tensors[i - 1].name, shards->tensors[i].name) == 0)
            return error_set(err, -EINVAL, "tensor %s is in two files", shards->tensors[i].tensor->name);
    return 0;
}

static bool is_there(const char *path, const char *name)
{
    char whole[4096];
    struct stat st;
    return (size_t)snprintf(whole, sizeof whole, "%s/%s", path, name) < sizeof whole && stat(whole, &st) == 0;
}

int shards_read(const char *path, struct config *config, shards_map *map, void *arg,
                struct shards *ret_shards, struct error *err)
{
    struct shards *shards = ret_shards;
    *shards = (struct shards){0};
    int r = is_there(path, SINGLE) ? add_shard(shards, SINGLE, err) : read_index(shards, map, arg, err);
    if (r < 0)
        return r;
    shards->files = calloc(shards->n + 1, sizeof *shards->files);
    if (!shards->files)
        return -ENOMEM;
    for (size_t i = 0; i < shards->n && r == 0; i++)
        r = read_shard(shards, config, i, map, arg, err);
    if (r == 0 && shards->n_tensors > 0)
        qsort(shards->tensors, shards->n_tensors, sizeof *shards->tensors, compare_names);
    return r < 0 ? r : refuse_twins(shards, err);
}

void shards_deinit(struct shards *shards)
{
    for (size_t i = 0; i < shards->n; i++) {
        if (shards->files)
            safetensors_deinit(&shards->files[i]);
        free(shards->names[i]);
    }
    free(shards->files);
    free(shards->names);
    free(shards->tensors);
    *shards = (struct shards){0};
}

const struct shard_tensor *shards_find(const struct shards *shards, const char *name)
{
    struct shard_tensor key = {.tensor = NULL};
    if (strlen(name) >= sizeof key.name || shards->n_tensors == 0)
        return NULL;
    strcpy(key.name, name);
    return bsearch(&key, shards->tensors, shards->n_tensors, sizeof key, compare_names);
}
