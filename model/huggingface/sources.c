/* SPDX-License-Identifier: MIT */
/* A published tensor has one place or two, and of experts many have one. Pieces, one for each published
 * tensor and place, are sorted by the place's name; those of one name make a tensor. Tensors are used as they
 * lie where they are one piece in the right form; all others are made, row by row, when somebody needs them.
 */

#include "model/huggingface/sources.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct sources *to;
    struct config *config;
    struct error *err;
};

/* ---- pieces ---- */

static int check_shape(const struct piece *piece, struct error *err)
{
    static const char *const counted[] = {"columns", "rows", "matrices", "matrices"};
    const struct safetensor *tensor = piece->recipe.tensor;
    const struct place *place = &piece->recipe.place;
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
static int find_scales(const struct reader *reader, const char *name, struct recipe *recipe)
{
    static const char *const ends[] = {"_scale_inv", "_scale"};
    char scale[NAMES_SIZE + 16];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(scale, sizeof scale, "%s%s", name, ends[i]);
        const struct shard_tensor *found = shards_find(&reader->to->shards, scale);
        if (found)
            return quantization_scales(&reader->config->quantization, recipe->tensor, found->tensor,
                                       &recipe->scales, reader->err);
    }
    return error_set(reader->err, -EINVAL, "tensor %s is F8_E4M3, but %s is in none of the %zu files",
                     recipe->tensor->name, scale, reader->to->shards.n);
}

static int read_fp8(struct reader *reader, const char *name, struct recipe *recipe)
{
    if (reader->config->quantization.kind != QUANTIZATION_FP8)
        return error_set(reader->err, -EINVAL,
                         "tensor %s is F8_E4M3, but config.json has no quantization_config for it",
                         recipe->tensor->name);
    recipe->is_fp8 = true;
    recipe->format = FORMAT_BF16;
    return find_scales(reader, name, recipe);
}

/* Blocks of MXFP4, and their exponents, one for each. */
static int read_blocks(struct reader *reader, const char *name, const struct place *place,
                       struct recipe *recipe)
{
    char exponents[NAMES_SIZE + 16];
    snprintf(exponents, sizeof exponents, "%.*s_scales", (int)(strlen(name) - strlen("_blocks")), name);
    const struct shard_tensor *found = shards_find(&reader->to->shards, exponents);
    if (place->columns % 32 != 0)
        return error_set(reader->err, -EINVAL, "tensor %s: %u columns (%s) are not a multiple of 32",
                         recipe->tensor->name, place->columns, place->keys[2]);
    if (strcmp(recipe->tensor->dtype, "U8") != 0)
        return error_set(reader->err, -EINVAL, "tensor %s: dtype %s is not supported (U8 is)",
                         recipe->tensor->name, recipe->tensor->dtype);
    if (!found)
        return error_set(reader->err, -EINVAL, "tensor %s is in none of the %zu files, and %s needs it",
                         exponents, reader->to->shards.n, recipe->tensor->name);
    const struct safetensor *scales = found->tensor;
    if (strcmp(scales->dtype, "U8") != 0 || scales->n_dims != 3 || scales->dims[0] != place->dims[0] ||
        scales->dims[1] != place->dims[1] || scales->dims[2] != place->dims[2])
        return error_set(reader->err, -EINVAL, "tensor %s is not U8 of shape [%u, %u, %u], as %s needs",
                         scales->name, place->dims[0], place->dims[1], place->dims[2], recipe->tensor->name);
    recipe->exponents = scales;
    return 0;
}

static int read_format(struct reader *reader, const char *name, struct recipe *recipe)
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
        return read_fp8(reader, name, recipe);
    return error_set(reader->err, -EINVAL, "tensor %s: dtype %s is not supported (F32, F16 and BF16 are)",
                     recipe->tensor->name, dtype);
}

static int add_piece(struct reader *reader, const struct shard_tensor *tensor, const struct place *place)
{
    const struct config *config = reader->config;
    struct piece *piece = &reader->to->pieces[reader->to->n_pieces];
    *piece =
        (struct piece){.file = tensor->file,
                       .recipe = {.place = *place,
                                  .tensor = tensor->tensor,
                                  .n_key_heads = config->family->uses & USES_GROUPS ? 1 : config->n_key_heads,
                                  .n_value_heads = config->n_value_heads,
                                  .value_dim = config->value_dim}};
    int r = check_shape(piece, reader->err);
    if (r == 0 && place->blocks)
        r = read_blocks(reader, tensor->name, place, &piece->recipe);
    else if (r == 0)
        r = read_format(reader, tensor->name, &piece->recipe);
    reader->to->n_pieces += r == 0;
    return r;
}

/* Scales are used with their weights. */
static int check_companion(const struct reader *reader, const struct shard_tensor *tensor, const char *weight)
{
    const struct shard_tensor *owner = weight[0] ? shards_find(&reader->to->shards, weight) : NULL;
    if (!weight[0] || (owner && owner->tensor->element_size == 1))
        return 0;
    return error_set(reader->err, -EINVAL, "tensor %s is a scale, but %s is %s", tensor->tensor->name, weight,
                     owner ? owner->tensor->dtype : "missing");
}

static int add_tensor(struct reader *reader, const struct shard_tensor *tensor)
{
    struct place places[NAMES_MOST_PLACES];
    char weight[NAMES_SIZE];
    uint32_t n = 0;
    int r = 0;
    if (reader->config->quantization.kind != QUANTIZATION_NONE &&
        quantization_is_companion(tensor->name, sizeof weight, weight))
        r = check_companion(reader, tensor, weight);
    else
        r = names_places(reader->config, tensor->name, places, &n, reader->err);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        if (places[i].name[0] != '\0')
            r = add_piece(reader, tensor, &places[i]);
    if (r == 0 && n > 0 && places[0].name[0] != '\0')
        reader->to->n_fp8 += reader->to->pieces[reader->to->n_pieces - 1].recipe.is_fp8;
    return r < 0 ? error_prefix(reader->err, r, "%s", tensor->file) : 0;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    const int order = strcmp(x->recipe.place.name, y->recipe.place.name);
    return order ? order
                 : (x->recipe.place.index > y->recipe.place.index) -
                       (x->recipe.place.index < y->recipe.place.index);
}

/* Each that is needed is in one file. */
static int check_complete(const struct reader *reader)
{
    struct names_walk walk = {0};
    char needed[NAMES_SIZE];
    while (names_next(reader->config, &walk, needed))
        if (!shards_find(&reader->to->shards, needed))
            return error_set(reader->err, -EINVAL,
                             "tensor %s, which config.json requires, is in none of the %zu files", needed,
                             reader->to->shards.n);
    return 0;
}

static int read_pieces(struct reader *reader)
{
    struct sources *to = reader->to;
    to->pieces = calloc(to->shards.n_tensors * NAMES_MOST_PLACES + 1, sizeof *to->pieces);
    int r = to->pieces ? 0 : -ENOMEM;
    for (size_t i = 0; i < to->shards.n_tensors && r == 0; i++)
        r = add_tensor(reader, &to->shards.tensors[i]);
    if (r == 0)
        r = check_complete(reader);
    if (r == 0)
        qsort(to->pieces, to->n_pieces, sizeof *to->pieces, compare_pieces);
    return r;
}

/* ---- tensors ---- */

/* Are they experts, each in a tensor of its own? */
static bool is_apart(const struct place *place)
{
    return place->of_experts && !place->stacked;
}

/* The pieces from `first` on that have one name. */
static int add_source(struct reader *reader, size_t first, size_t n)
{
    struct sources *to = reader->to;
    const struct piece *pieces = &to->pieces[first];
    const struct place *place = &pieces->recipe.place;
    const size_t numbers = (size_t)(place->rows ? place->rows : 1) * place->columns * place->count;
    struct source source = {.first = first, .n = n, .format = recipe_wanted(&pieces->recipe)};
    source.bytes = format_bytes(source.format, numbers);
    source.made = is_apart(place) || !recipe_is_copy(&pieces->recipe);
    if (n > (is_apart(place) ? place->count : 1))
        return error_set(reader->err, -EINVAL, "%s: tensor %s is in the files twice, under two names",
                         pieces[1].file, pieces[1].recipe.tensor->name);
    for (size_t i = 1; i < n; i++)
        if (recipe_wanted(&pieces[i].recipe) != source.format)
            return error_set(reader->err, -EINVAL, "%s: tensor %s is not %s as the other experts are",
                             pieces[i].file, pieces[i].recipe.tensor->name,
                             format_traits(source.format)->name);
    to->tensors[to->n_tensors++] = source;
    return 0;
}

static int add_sources(struct reader *reader)
{
    struct sources *to = reader->to;
    to->tensors = calloc(to->n_pieces + 1, sizeof *to->tensors);
    int r = to->tensors ? 0 : -ENOMEM;
    for (size_t first = 0, n; first < to->n_pieces && r == 0; first += n) {
        const struct piece *pieces = &to->pieces[first];
        n = 1;
        while (first + n < to->n_pieces &&
               strcmp(pieces[n].recipe.place.name, pieces->recipe.place.name) == 0)
            n++;
        r = add_source(reader, first, n);
    }
    return r;
}

int sources_read(const char *path, struct config *config, shards_map *map, void *arg,
                 struct sources *ret_sources, struct error *err)
{
    struct reader reader = {.to = ret_sources, .config = config, .err = err};
    *ret_sources = (struct sources){0};
    int r = shards_read(path, config, map, arg, &ret_sources->shards, err);
    if (r == 0)
        r = read_pieces(&reader);
    return r == 0 ? add_sources(&reader) : r;
}

void sources_deinit(struct sources *sources)
{
    shards_deinit(&sources->shards);
    free(sources->pieces);
    free(sources->tensors);
    *sources = (struct sources){0};
}

int sources_announce(const struct sources *sources, struct gguf_writer *writer)
{
    int r = 0;
    for (size_t i = 0; i < sources->n_tensors && r == 0; i++) {
        const struct source *source = &sources->tensors[i];
        const struct place *place = &sources->pieces[source->first].recipe.place;
        const uint64_t dims[] = {place->columns, place->rows ? place->rows : place->count, place->count};
        const uint32_t n_dims = (place->rows ? 2 : 1) + place->of_experts;
        r = gguf_writer_tensor(writer, place->name, n_dims, dims, source->format, NULL, NULL);
    }
    return r;
}

/* ---- data ---- */

static size_t made_bytes(const struct source *source)
{
    return source->made ? (source->bytes + SOURCES_ALIGNMENT - 1) / SOURCES_ALIGNMENT * SOURCES_ALIGNMENT : 0;
}

size_t sources_made_bytes(const struct sources *sources)
{
    size_t bytes = 0;
    for (size_t i = 0; i < sources->n_tensors; i++)
        bytes += made_bytes(&sources->tensors[i]);
    return bytes;
}

void sources_places(const struct sources *sources, void *memory, const void **ret_data)
{
    uint8_t *next = memory;
    for (size_t i = 0; i < sources->n_tensors; i++) {
        const struct source *source = &sources->tensors[i];
        ret_data[i] = source->made ? next : sources->pieces[source->first].recipe.tensor->data;
        next += made_bytes(source);
    }
}

int sources_make(void *arg, size_t i, uint64_t first, uint64_t n, void *out, struct error *err)
{
    const struct sources *sources = arg;
    const struct source *source = &sources->tensors[i];
    const struct piece *pieces = &sources->pieces[source->first];
    const uint64_t rows = recipe_rows(&pieces->recipe); /* of each piece */
    const size_t bytes = format_bytes(source->format, pieces->recipe.place.columns);
    int r = 0;
    for (uint64_t done = 0, some; done < n && r == 0; done += some) {
        const uint64_t row = first + done, left = rows - row % rows;
        const struct piece *piece = &pieces[row / rows];
        some = left < n - done ? left : n - done;
        r = recipe_fill(&piece->recipe, row % rows, some, (uint8_t *)out + done * bytes, err);
        if (r < 0)
            error_prefix(err, r, "%s", piece->file);
    }
    return r;
}
