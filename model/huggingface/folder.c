/* SPDX-License-Identifier: MIT */
/* A folder → tensors and metadata.
 *
 * All files are mapped and stay so; the texts among them are read once. Tensors are taken as they lie, but
 * for vectors that are not F32, which become so, and for those whose place is not aligned to their elements,
 * which are copied: both go to one piece of memory, whose size is known when every tensor has its place. */

#include "model/huggingface/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/utf8.h"
#include "model/huggingface/config.h"
#include "model/huggingface/json_values.h"
#include "model/huggingface/names.h"
#include "model/huggingface/pooling.h"
#include "model/huggingface/safetensors.h"
#include "model/huggingface/tokens.h"
#include "gguf/gguf_assemble.h"
#include "gguf/gguf_writer.h"

#define INDEX      "model.safetensors.index.json"
#define SINGLE     "model.safetensors"
#define MOST_INDEX ((size_t)64 << 20)
#define MOST_FILES 1024
#define ALIGNMENT  32

struct source { /* of a tensor of the model */
    const void *data;
    enum format format, wanted;
    size_t elements;
    bool copied;
};

struct folder {
    const char *path;
    struct gguf *gguf;
    struct gguf_writer *writer;
    struct config config;
    char **shards; /* [n_shards] names of files */
    size_t n_shards;
    struct safetensors *files; /* [n_shards] */
    struct source *sources;    /* [n_sources], in the order of announcement */
    size_t n_sources, cap;
    struct error *err;
};

bool huggingface_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Maps a file of the folder. -ENOENT, without a reason, when it is not there. */
static int map(struct folder *folder, const char *name, struct bytes *ret_bytes)
{
    char path[4096];
    struct stat st;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder->path, name) >= sizeof path)
        return error_set(folder->err, -ENAMETOOLONG, "%s: the path is too long", name);
    if (stat(path, &st) < 0 && errno == ENOENT)
        return -ENOENT;
    int r = gguf_add_file(folder->gguf, path, "JSON or SafeTensors", ret_bytes, folder->err);
    return r < 0 ? error_prefix(folder->err, r, "%s", name) : 0;
}

static int map_needed(struct folder *folder, const char *name, struct bytes *ret_bytes)
{
    int r = map(folder, name, ret_bytes);
    return r == -ENOENT ? error_set(folder->err, r, "%s is missing", name) : r;
}

static int map_optional(struct folder *folder, const char *name, struct bytes *ret_bytes)
{
    int r = map(folder, name, ret_bytes);
    return r == -ENOENT ? 0 : r;
}

/* ---- metadata ---- */

static int read_config(struct folder *folder)
{
    struct bytes text;
    int r = map_needed(folder, "config.json", &text);
    if (r < 0)
        return r;
    r = config_parse(text, &folder->config, folder->err);
    if (r < 0)
        return error_prefix(folder->err, r, "config.json");
    size_t len = strlen(folder->path);
    while (len > 1 && folder->path[len - 1] == '/')
        len--;
    const char *slash = memrchr(folder->path, '/', len);
    char name[128];
    const char *start = slash ? slash + 1 : folder->path;
    utf8_printable((struct bytes){start, (size_t)(folder->path + len - start)}, sizeof name, name);
    return config_write(&folder->config, name, folder->writer);
}

static int read_pooling(struct folder *folder)
{
    struct bytes text = {0};
    uint32_t pooling;
    char key[64];
    int r = map_optional(folder, HUGGINGFACE_POOLING, &text);
    if (r < 0 || !text.data)
        return r;
    r = pooling_parse(text, &pooling, folder->err);
    if (r < 0)
        return error_prefix(folder->err, r, HUGGINGFACE_POOLING);
    snprintf(key, sizeof key, "%s.pooling_type", folder->config.architecture);
    return gguf_writer_u32(folder->writer, key, pooling);
}

static int read_tokens(struct folder *folder)
{
    struct tokens_files files = {0};
    int r = map_needed(folder, "tokenizer.json", &files.tokenizer);
    if (r == 0)
        r = map_optional(folder, "tokenizer_config.json", &files.config);
    if (r == 0)
        r = map_optional(folder, "generation_config.json", &files.generation);
    if (r == 0)
        r = map_optional(folder, "chat_template.jinja", &files.chat);
    return r < 0 ? r : tokens_write(&files, folder->writer, folder->err);
}

/* ---- shards ---- */

static int add_shard(struct folder *folder, const char *name)
{
    for (size_t i = 0; i < folder->n_shards; i++)
        if (strcmp(folder->shards[i], name) == 0)
            return 0;
    char shown[96];
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/'))
        return error_set(folder->err, -EINVAL, INDEX ": weight_map: \"%s\" is not a file of the folder",
                         utf8_printable(bytes_of_string(name), sizeof shown, shown));
    if (folder->n_shards == MOST_FILES)
        return error_set(folder->err, -EINVAL, INDEX ": weight_map: more than %d files", MOST_FILES);
    char **shards = reallocarray(folder->shards, folder->n_shards + 1, sizeof *shards);
    if (!shards)
        return -ENOMEM;
    folder->shards = shards;
    shards[folder->n_shards] = strdup(name);
    return shards[folder->n_shards++] ? 0 : -ENOMEM;
}

static int list_indexed(struct folder *folder, json_t *index)
{
    json_t *map = json_object_get(index, "weight_map"), *value;
    const char *tensor;
    if (!json_is_object(map) || json_object_size(map) == 0)
        return error_set(folder->err, -EINVAL, INDEX ": weight_map is missing or empty");
    json_object_foreach(map, tensor, value)
    {
        char shown[96];
        if (!json_is_string(value))
            return error_set(folder->err, -EINVAL, INDEX ": weight_map: %s is in no file",
                             utf8_printable(bytes_of_string(tensor), sizeof shown, shown));
        int r = add_shard(folder, json_string_value(value));
        if (r < 0)
            return r;
    }
    return 0;
}

/* One file, or those of the index; the index says where each tensor is, but every tensor of every file is
 * taken, so what it says besides is not needed. */
static int list_shards(struct folder *folder)
{
    char path[4096];
    struct stat st;
    struct bytes text;
    snprintf(path, sizeof path, "%s/" SINGLE, folder->path);
    if (stat(path, &st) == 0)
        return add_shard(folder, SINGLE);
    int r = map(folder, INDEX, &text);
    if (r < 0)
        return r == -ENOENT ? error_set(folder->err, r, "neither " SINGLE " nor " INDEX " is there") : r;
    json_t *index = NULL;
    r = json_object_parse(text, MOST_INDEX, &index, folder->err);
    if (r < 0)
        return error_prefix(folder->err, r, INDEX);
    r = list_indexed(folder, index);
    json_decref(index);
    return r;
}

/* ---- tensors ---- */

static int format_of(const struct safetensor *tensor, enum format *ret_format, struct error *err)
{
    const struct {
        const char *dtype;
        enum format format;
    } known[] = {{"F32", FORMAT_F32}, {"F16", FORMAT_F16}, {"BF16", FORMAT_BF16}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].dtype, tensor->dtype) == 0) {
            *ret_format = known[i].format;
            return 0;
        }
    return error_set(err, -EINVAL, "tensor %s: dtype %s is not supported (F32, F16 and BF16 are)",
                     tensor->name, tensor->dtype);
}

static int check_shape(const struct safetensor *tensor, const struct place *place, struct error *err)
{
    const uint32_t n_dims = place->rows ? 2 : 1;
    if (tensor->n_dims != n_dims)
        return error_set(err, -EINVAL, "tensor %s has %u dimensions, expected %u", tensor->name,
                         tensor->n_dims, n_dims);
    if (place->rows && tensor->dims[0] != place->rows)
        return error_set(err, -EINVAL, "tensor %s has %" PRIu64 " rows, config.json says %u (%s)",
                         tensor->name, tensor->dims[0], place->rows, place->rows_key);
    if (tensor->dims[n_dims - 1] != place->columns)
        return error_set(err, -EINVAL, "tensor %s has %" PRIu64 " columns, config.json says %u (%s)",
                         tensor->name, tensor->dims[n_dims - 1], place->columns, place->columns_key);
    return 0;
}

static int announce(struct folder *folder, const struct place *place, const struct source *source)
{
    if (folder->n_sources == folder->cap) {
        size_t cap = folder->cap ? 2 * folder->cap : 64;
        struct source *sources = reallocarray(folder->sources, cap, sizeof *sources);
        if (!sources)
            return -ENOMEM;
        folder->sources = sources;
        folder->cap = cap;
    }
    const uint64_t dims[] = {place->columns, place->rows};
    folder->sources[folder->n_sources++] = *source;
    return gguf_writer_tensor(folder->writer, place->name, place->rows ? 2 : 1, dims, source->wanted, NULL,
                              NULL);
}

static int add_tensor(struct folder *folder, const struct safetensor *tensor)
{
    struct place place;
    struct source source = {.data = tensor->data, .elements = tensor->size / tensor->element_size};
    int r = names_place(&folder->config, tensor->name, &place, folder->err);
    if (r < 0 || place.name[0] == '\0')
        return r;
    r = format_of(tensor, &source.format, folder->err);
    if (r == 0)
        r = check_shape(tensor, &place, folder->err);
    if (r < 0)
        return r;
    source.wanted = place.rows ? source.format : FORMAT_F32;
    source.copied = source.wanted != source.format || (uintptr_t)tensor->data % tensor->element_size != 0;
    return announce(folder, &place, &source);
}

static int read_shard(struct folder *folder, size_t i)
{
    struct bytes bytes;
    int r = map(folder, folder->shards[i], &bytes);
    if (r == -ENOENT)
        return error_set(folder->err, r, "%s is missing, which " INDEX " lists", folder->shards[i]);
    if (r < 0)
        return r;
    r = safetensors_parse(bytes, &folder->files[i], folder->err);
    for (size_t t = 0; r == 0 && t < folder->files[i].n; t++)
        r = add_tensor(folder, &folder->files[i].tensors[t]);
    return r < 0 ? error_prefix(folder->err, r, "%s", folder->shards[i]) : 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each that is needed is in one file, and in one only. */
static int check_complete(const struct folder *folder)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < folder->n_shards; i++)
        n += folder->files[i].n;
    const char **names = calloc(n + 1, sizeof *names);
    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < folder->n_shards; i++)
        for (size_t t = 0; t < folder->files[i].n; t++)
            names[at++] = folder->files[i].tensors[t].name;
    qsort(names, n, sizeof *names, compare_names);
    int r = 0;
    for (size_t i = 1; i < n && r == 0; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            r = error_set(folder->err, -EINVAL, "tensor %s is in two files", names[i]);
    char needed[NAMES_SIZE];
    const char *key = needed;
    for (uint64_t i = 0; r == 0 && i <= n && names_needed(&folder->config, i, needed); i++)
        if (!bsearch(&key, names, n, sizeof *names, compare_names))
            r = error_set(folder->err, -EINVAL,
                          "tensor %s, which config.json requires, is in none of the %zu files", needed,
                          folder->n_shards);
    free(names);
    return r;
}

static int read_tensors(struct folder *folder)
{
    int r = list_shards(folder);
    if (r < 0)
        return r;
    folder->files = calloc(folder->n_shards, sizeof *folder->files);
    if (!folder->files)
        return -ENOMEM;
    for (size_t i = 0; i < folder->n_shards && r == 0; i++)
        r = read_shard(folder, i);
    if (r == 0)
        r = check_complete(folder);
    if (r < 0 || config_n_factors(&folder->config) == 0)
        return r;
    const struct place factors = {.name = "rope_freqs.weight", .columns = config_n_factors(&folder->config)};
    return announce(folder, &factors,
                    &(struct source){.wanted = FORMAT_F32, .elements = factors.columns, .copied = true});
}

/* ---- data ---- */

static size_t copied_bytes(const struct source *source)
{
    size_t size = source->copied ? format_bytes(source->wanted, source->elements) : 0;
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* By way of memory that is aligned, whatever the file is. */
static void make_floats(const struct source *source, float *out)
{
    _Alignas(8) uint8_t aligned[256 * 4];
    const struct format_traits *traits = format_traits(source->format);
    const size_t size = format_bytes(source->format, 1);
    for (size_t at = 0; at < source->elements; at += 256) {
        const size_t n = source->elements - at < 256 ? source->elements - at : 256;
        memcpy(aligned, (const uint8_t *)source->data + at * size, n * size);
        traits->to_float(aligned, out + at, n);
    }
}

static void fill(const struct folder *folder, const struct source *source, void *out)
{
    if (!source->data)
        config_factors(&folder->config, out);
    else if (source->wanted == source->format)
        memcpy(out, source->data, format_bytes(source->format, source->elements));
    else
        make_floats(source, out);
}

static int place_data(struct folder *folder, const void ***ret_data)
{
    size_t size = 0;
    void *memory;
    for (size_t i = 0; i < folder->n_sources; i++)
        size += copied_bytes(&folder->sources[i]);
    const void **data = calloc(folder->n_sources + 1, sizeof *data);
    int r = data ? gguf_add_memory(folder->gguf, size, &memory) : -ENOMEM;
    if (r < 0) {
        free(data);
        return r;
    }
    uint8_t *next = memory;
    for (size_t i = 0; i < folder->n_sources; i++) {
        data[i] = folder->sources[i].copied ? next : folder->sources[i].data;
        if (folder->sources[i].copied)
            fill(folder, &folder->sources[i], next);
        next += copied_bytes(&folder->sources[i]);
    }
    *ret_data = data;
    return 0;
}

/* ---- the whole ---- */

static void let_go(struct folder *folder)
{
    for (size_t i = 0; i < folder->n_shards; i++) {
        if (folder->files)
            safetensors_deinit(&folder->files[i]);
        free(folder->shards[i]);
    }
    free(folder->files);
    free(folder->shards);
    free(folder->sources);
    gguf_writer_free(folder->writer);
}

int huggingface_open(const char *path, struct gguf **ret_gguf, struct error *err)
{
    struct folder folder = {.path = path, .err = err};
    const void **data = NULL;
    int r = gguf_new(&folder.gguf);
    if (err)
        err->text[0] = '\0';
    if (r == 0)
        r = gguf_writer_new(&folder.writer);
    if (r == 0)
        r = read_config(&folder);
    if (r == 0)
        r = read_pooling(&folder);
    if (r == 0)
        r = read_tokens(&folder);
    if (r == 0)
        r = read_tensors(&folder);
    if (r == 0)
        r = place_data(&folder, &data);
    if (r == 0)
        r = gguf_assemble(folder.gguf, folder.writer, data, err);
    free(data);
    let_go(&folder);
    if (r < 0) {
        gguf_free(folder.gguf);
        return r == -ENOMEM ? error_set(err, r, "%s: out of memory", path) : error_prefix(err, r, "%s", path);
    }
    *ret_gguf = folder.gguf;
    return 0;
}
