/* SPDX-License-Identifier: MIT */
/* A folder → tensors and metadata.
 *
 * All files are mapped and stay so; the texts among them are read once. A published tensor has one place or
 * two, and of experts many have one. Pieces, one for each published tensor and place, are sorted by the
 * place's name; those of one name make a tensor. Tensors are used as they lie where they are one piece in the
 * right form; all others go to one piece of memory, whose size is known when every tensor has its place. */

#include "model/huggingface/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/amount.h"
#include "common/utf8.h"
#include "model/huggingface/config/config.h"
#include "model/huggingface/json_values.h"
#include "model/huggingface/names.h"
#include "model/huggingface/pooling.h"
#include "model/huggingface/recipes.h"
#include "model/huggingface/shards.h"
#include "model/huggingface/tokens.h"
#include "gguf/gguf_assemble.h"
#include "gguf/gguf_writer.h"

#define ALIGNMENT 32

struct piece {
    struct place place;
    struct recipe recipe; /* of `place` */
    const char *file;
};

struct target {      /* a tensor of the model */
    size_t first, n; /* pieces; n 0: factors */
    enum config_factors factors;
    enum format format;
    size_t bytes;
    bool made; /* not used as it lies */
};

struct folder {
    const char *path;
    struct gguf *gguf;
    struct gguf_writer *writer;
    struct config config;
    struct shards shards;
    struct piece *pieces; /* [n_pieces] sorted by name and index */
    size_t n_pieces;
    struct target *targets; /* [n_targets], in the order of announcement */
    size_t n_targets, n_fp8;
    struct error *err;
};

bool huggingface_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Maps a file of the folder. -ENOENT, without a reason, when it is not there. */
static int map(void *arg, const char *name, struct bytes *ret_bytes)
{
    struct folder *folder = arg;
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

/* ---- pieces ---- */

static int check_shape(const struct piece *piece, struct error *err)
{
    static const char *const counted[] = {"columns", "rows", "matrices", "matrices"};
    const struct safetensor *tensor = piece->recipe.tensor;
    const struct place *place = &piece->place;
    if (tensor->n_dims != place->n_dims)
        return error_set(err, -EINVAL, "tensor %s has %u dimensions, expected %u", tensor->name,
                         tensor->n_dims, place->n_dims);
    for (uint32_t i = 0; i < place->n_dims; i++)
        if (tensor->dims[i] != place->dims[i])
            return error_set(err, -EINVAL, "tensor %s has %" PRIu64 " %s, %s%u%s%s%s", tensor->name,
                             tensor->dims[i], counted[place->n_dims - 1 - i],
                             place->keys[i][0] ? "config.json says " : "expected ", place->dims[i],
                             place->keys[i][0] ? " (" : "", place->keys[i], place->keys[i][0] ? ")" : "");
    return 0;
}

/* The scales of a weight, by any of their names. */
static int find_scales(const struct folder *folder, const char *name, struct recipe *recipe)
{
    static const char *const ends[] = {"_scale_inv", "_scale"};
    char scale[NAMES_SIZE + 16];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(scale, sizeof scale, "%s%s", name, ends[i]);
        const struct shard_tensor *found = shards_find(&folder->shards, scale);
        if (found)
            return quantization_scales(&folder->config.quantization, recipe->tensor, found->tensor,
                                       &recipe->scales, folder->err);
    }
    return error_set(folder->err, -EINVAL, "tensor %s is F8_E4M3, but %s is in none of the %zu files",
                     recipe->tensor->name, scale, folder->shards.n);
}

static int read_fp8(struct folder *folder, const char *name, struct recipe *recipe)
{
    if (folder->config.quantization.kind != QUANTIZATION_FP8)
        return error_set(folder->err, -EINVAL,
                         "tensor %s is F8_E4M3, which config.json does not say (quantization_config)",
                         recipe->tensor->name);
    recipe->is_fp8 = true;
    recipe->format = FORMAT_BF16;
    return find_scales(folder, name, recipe);
}

/* Blocks of MXFP4, and their exponents, one for each. */
static int read_blocks(struct folder *folder, const char *name, const struct place *place,
                       struct recipe *recipe)
{
    char exponents[NAMES_SIZE + 16];
    snprintf(exponents, sizeof exponents, "%.*s_scales", (int)(strlen(name) - strlen("_blocks")), name);
    const struct shard_tensor *found = shards_find(&folder->shards, exponents);
    if (place->columns % 32 != 0)
        return error_set(folder->err, -EINVAL, "tensor %s: %u columns (%s) are not a multiple of 32",
                         recipe->tensor->name, place->columns, place->keys[2]);
    if (strcmp(recipe->tensor->dtype, "U8") != 0)
        return error_set(folder->err, -EINVAL, "tensor %s: dtype %s is not supported (U8 is)",
                         recipe->tensor->name, recipe->tensor->dtype);
    if (!found)
        return error_set(folder->err, -EINVAL, "tensor %s is in none of the %zu files, and %s needs it",
                         exponents, folder->shards.n, recipe->tensor->name);
    const struct safetensor *scales = found->tensor;
    if (strcmp(scales->dtype, "U8") != 0 || scales->n_dims != 3 || scales->dims[0] != place->dims[0] ||
        scales->dims[1] != place->dims[1] || scales->dims[2] != place->dims[2])
        return error_set(folder->err, -EINVAL, "tensor %s is not U8 of shape [%u, %u, %u], as %s needs",
                         scales->name, place->dims[0], place->dims[1], place->dims[2], recipe->tensor->name);
    recipe->exponents = scales;
    return 0;
}

static int read_format(struct folder *folder, const char *name, struct recipe *recipe)
{
    const struct {
        const char *dtype;
        enum format format;
    } known[] = {{"F32", FORMAT_F32}, {"F16", FORMAT_F16}, {"BF16", FORMAT_BF16}};
    const char *dtype = recipe->tensor->dtype;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].dtype, dtype) == 0) {
            recipe->format = known[i].format;
            return 0;
        }
    if (strcmp(dtype, "F8_E4M3") == 0)
        return read_fp8(folder, name, recipe);
    return error_set(folder->err, -EINVAL, "tensor %s: dtype %s is not supported (F32, F16 and BF16 are)",
                     recipe->tensor->name, dtype);
}

static int add_piece(struct folder *folder, const struct shard_tensor *tensor, const struct place *place)
{
    const struct config *config = &folder->config;
    struct piece *piece = &folder->pieces[folder->n_pieces];
    *piece =
        (struct piece){.place = *place,
                       .file = tensor->file,
                       .recipe = {.tensor = tensor->tensor,
                                  .n_key_heads = config->family->uses & USES_GROUPS ? 1 : config->n_key_heads,
                                  .n_value_heads = config->n_value_heads,
                                  .value_dim = config->value_dim}};
    piece->recipe.place = &piece->place;
    int r = check_shape(piece, folder->err);
    if (r == 0 && place->blocks)
        r = read_blocks(folder, tensor->name, place, &piece->recipe);
    else if (r == 0)
        r = read_format(folder, tensor->name, &piece->recipe);
    folder->n_pieces += r == 0;
    return r;
}

/* Scales are used with their weights. */
static int check_companion(const struct folder *folder, const struct shard_tensor *tensor, const char *weight)
{
    const struct shard_tensor *owner = weight[0] ? shards_find(&folder->shards, weight) : NULL;
    if (!weight[0] || (owner && owner->tensor->element_size == 1))
        return 0;
    return error_set(folder->err, -EINVAL, "tensor %s is a scale, but %s is %s", tensor->tensor->name, weight,
                     owner ? owner->tensor->dtype : "missing");
}

static int add_tensor(struct folder *folder, const struct shard_tensor *tensor)
{
    struct place places[NAMES_MOST_PLACES];
    char weight[NAMES_SIZE];
    uint32_t n = 0;
    int r = 0;
    if (folder->config.quantization.kind != QUANTIZATION_NONE &&
        quantization_is_companion(tensor->name, sizeof weight, weight))
        r = check_companion(folder, tensor, weight);
    else
        r = names_places(&folder->config, tensor->name, places, &n, folder->err);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        if (places[i].name[0] != '\0')
            r = add_piece(folder, tensor, &places[i]);
    if (r == 0 && n > 0 && places[0].name[0] != '\0')
        folder->n_fp8 += folder->pieces[folder->n_pieces - 1].recipe.is_fp8;
    return r < 0 ? error_prefix(folder->err, r, "%s", tensor->file) : 0;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    const int order = strcmp(x->place.name, y->place.name);
    return order ? order : (x->place.index > y->place.index) - (x->place.index < y->place.index);
}

/* Each that is needed is in one file. */
static int check_complete(const struct folder *folder)
{
    struct names_walk walk = {0};
    char needed[NAMES_SIZE];
    while (names_next(&folder->config, &walk, needed))
        if (!shards_find(&folder->shards, needed))
            return error_set(folder->err, -EINVAL,
                             "tensor %s, which config.json requires, is in none of the %zu files", needed,
                             folder->shards.n);
    return 0;
}

static int read_pieces(struct folder *folder)
{
    int r = shards_read(folder->path, &folder->config, map, folder, &folder->shards, folder->err);
    if (r < 0)
        return r;
    folder->pieces = calloc(folder->shards.n_tensors * NAMES_MOST_PLACES + 1, sizeof *folder->pieces);
    if (!folder->pieces)
        return -ENOMEM;
    for (size_t i = 0; i < folder->shards.n_tensors && r == 0; i++)
        r = add_tensor(folder, &folder->shards.tensors[i]);
    if (r == 0)
        r = check_complete(folder);
    if (r < 0)
        return r;
    qsort(folder->pieces, folder->n_pieces, sizeof *folder->pieces, compare_pieces);
    for (size_t i = 0; i < folder->n_pieces; i++) /* they have moved */
        folder->pieces[i].recipe.place = &folder->pieces[i].place;
    return 0;
}

/* ---- tensors ---- */

static int announce(struct folder *folder, const struct target *target, const struct place *place)
{
    const uint64_t dims[] = {place->columns, place->rows ? place->rows : place->count, place->count};
    const uint32_t n_dims = (place->rows ? 2 : 1) + place->of_experts;
    folder->targets[folder->n_targets++] = *target;
    return gguf_writer_tensor(folder->writer, place->name, n_dims, dims, target->format, NULL, NULL);
}

/* The pieces from `first` on that have one name. */
static int add_target(struct folder *folder, size_t first, size_t n)
{
    const struct piece *pieces = &folder->pieces[first];
    const struct place *place = &pieces->place;
    const size_t numbers = (size_t)(place->rows ? place->rows : 1) * place->columns * place->count;
    struct target target = {.first = first, .n = n, .format = recipe_wanted(&pieces->recipe)};
    target.bytes = format_bytes(target.format, numbers);
    if (n > (place->of_experts && !place->stacked ? place->count : 1))
        return error_set(folder->err, -EINVAL, "%s: tensor %s is in the files twice, under two names",
                         pieces[1].file, pieces[1].recipe.tensor->name);
    target.made = (place->of_experts && !place->stacked) || !recipe_is_copy(&pieces->recipe);
    for (size_t i = 1; i < n; i++)
        if (recipe_wanted(&pieces[i].recipe) != target.format)
            return error_set(folder->err, -EINVAL, "%s: tensor %s is not %s as the other experts are",
                             pieces[i].file, pieces[i].recipe.tensor->name,
                             format_traits(target.format)->name);
    return announce(folder, &target, place);
}

static int add_factors(struct folder *folder, enum config_factors list)
{
    struct place place = {.columns = config_n_factors(&folder->config, list), .count = 1};
    if (place.columns == 0)
        return 0;
    snprintf(place.name, sizeof place.name, "%s", config_factors_name(list));
    const struct target target = {
        .factors = list, .format = FORMAT_F32, .made = true, .bytes = place.columns * sizeof(float)};
    return announce(folder, &target, &place);
}

static int read_tensors(struct folder *folder)
{
    int r = read_pieces(folder);
    if (r < 0)
        return r;
    folder->targets = calloc(folder->n_pieces + CONFIG_FACTOR_LISTS, sizeof *folder->targets);
    if (!folder->targets)
        return -ENOMEM;
    for (size_t first = 0, n; first < folder->n_pieces && r == 0; first += n) {
        const struct piece *pieces = &folder->pieces[first];
        n = 1;
        while (first + n < folder->n_pieces && strcmp(pieces[n].place.name, pieces->place.name) == 0)
            n++;
        r = add_target(folder, first, n);
    }
    for (enum config_factors list = 0; list < CONFIG_FACTOR_LISTS && r == 0; list++)
        r = add_factors(folder, list);
    return r;
}

/* ---- data ---- */

static size_t made_bytes(const struct target *target)
{
    return target->made ? (target->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : 0;
}

static int make(const struct folder *folder, const struct target *target, uint8_t *out)
{
    int r = 0;
    if (target->n == 0)
        config_factors(&folder->config, target->factors, (float *)(void *)out);
    for (size_t i = 0; i < target->n && r == 0; i++) {
        const struct piece *piece = &folder->pieces[target->first + i];
        r = recipe_fill(&piece->recipe, out + piece->place.index * (target->bytes / piece->place.count));
    }
    return r;
}

static int place_data(struct folder *folder, const void ***ret_data)
{
    size_t size = 0;
    void *memory;
    for (size_t i = 0; i < folder->n_targets; i++)
        size += made_bytes(&folder->targets[i]);
    const void **data = calloc(folder->n_targets + 1, sizeof *data);
    int r = data ? gguf_add_memory(folder->gguf, size, &memory) : -ENOMEM;
    if (r < 0) {
        free(data);
        return r;
    }
    uint8_t *next = memory;
    for (size_t i = 0; i < folder->n_targets && r == 0; i++) {
        const struct target *target = &folder->targets[i];
        data[i] = target->made ? next : folder->pieces[target->first].recipe.tensor->data;
        if (target->made)
            r = make(folder, target, next);
        next += made_bytes(target);
    }
    *ret_data = data;
    return r;
}

/* ---- the whole ---- */

static int write_note(const struct folder *folder)
{
    const struct shards *shards = &folder->shards;
    char note[256] = "";
    size_t n = 0;
    if (shards->n_left_out > 0)
        n = (size_t)snprintf(note, sizeof note, "only the text part is loaded, without %s of %s",
                             amount_of(shards->n_left_out, "tensor").text, shards->left_out);
    if (folder->n_fp8 > 0 && n < sizeof note)
        snprintf(note + n, sizeof note - n, "%sFP8 (E4M3) became BF16: %s", n ? "; " : "",
                 amount_of(folder->n_fp8, "weight").text);
    return note[0] ? gguf_writer_string(folder->writer, HUGGINGFACE_NOTE, note) : 0;
}

static void let_go(struct folder *folder)
{
    shards_deinit(&folder->shards);
    free(folder->pieces);
    free(folder->targets);
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
        r = write_note(&folder);
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
