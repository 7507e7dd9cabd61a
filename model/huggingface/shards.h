/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_SHARDS_H
#define MODEL_HUGGINGFACE_SHARDS_H

/* The tensors of all SafeTensors files in a folder, by name. */

#include <stddef.h>

#include "common/bytes.h"
#include "common/error.h"
#include "model/huggingface/names.h"
#include "model/huggingface/safetensors.h"

/* Maps a file of the folder. -ENOENT, without a reason: it does not exist. */
typedef int shards_map(void *arg, const char *name, struct bytes *ret_bytes);

struct shard_tensor {
    char name[NAMES_SIZE]; /* names_clean's */
    const struct safetensor *tensor;
    const char *file;
};

struct shards {
    char **names; /* [n] of files */
    size_t n;
    struct safetensors *files;    /* [n] */
    struct shard_tensor *tensors; /* [n_tensors] of the text part, sorted by name */
    size_t n_tensors;
    size_t n_left_out; /* of other parts */
    char left_out[96]; /* the names of those parts */
};

/* `path` is the folder. Reads model.safetensors, or the files that model.safetensors.index.json lists.
 * -EINVAL with a reason that names file and tensor; -ENOENT: a file is missing. Also notes in the
 * configuration which form the experts have. Call shards_deinit in either case. */
int shards_read(const char *path, struct config *config, shards_map *map, void *arg,
                struct shards *ret_shards, struct error *err);
void shards_deinit(struct shards *shards);

/* NULL: no tensor has this name. */
const struct shard_tensor *shards_find(const struct shards *shards, const char *name);

#endif
