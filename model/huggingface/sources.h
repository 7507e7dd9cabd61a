/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_SOURCES_H
#define MODEL_HUGGINGFACE_SOURCES_H

/* The source of each tensor of a model: the published tensors, and how to convert them. Finding the sources
 * reads only the headers of files; sources_make reads the tensors' bytes. */

#include <stdbool.h>
#include <stddef.h>

#include "gguf/format.h"
#include "gguf/gguf_writer.h"
#include "model/huggingface/recipes.h"
#include "model/huggingface/shards.h"

struct piece {
    struct recipe recipe;
    const char *file;
};

struct source {      /* of one tensor of the model */
    size_t first, n; /* pieces */
    enum format format;
    size_t bytes;
    bool made; /* not used in place */
};

struct sources {
    struct shards shards;
    struct piece *pieces; /* [n_pieces] sorted by place's name and index */
    size_t n_pieces;
    struct source *tensors; /* [n_tensors], by name */
    size_t n_tensors;
    size_t n_fp8; /* published tensors in FP8 */
};

/* Finds the files of the folder `path`, and everything that a model of this configuration needs in them.
 * -EINVAL with a reason that names file and tensor: a tensor that is missing, unexpected, of a different
 * shape from config.json, of an unsupported dtype, or in the files twice; any error of shards_read. Call
 * sources_deinit in either case. */
int sources_read(const char *path, struct config *config, shards_map *map, void *arg,
                 struct sources *ret_sources, struct error *err);
void sources_deinit(struct sources *sources);

/* Announces all tensors to a writer, in their order. -ENOMEM. */
int sources_announce(const struct sources *sources, struct gguf_writer *writer);

/* The bytes of all tensors that are made, each aligned to SOURCES_ALIGNMENT. */
#define SOURCES_ALIGNMENT 4096 /* a page: releasing a tensor leaves no part of a page behind */
size_t sources_made_bytes(const struct sources *sources);

/* Where the bytes of each tensor are: in its file, or in `memory` (sources_made_bytes bytes) if it is to be
 * made. */
void sources_places(const struct sources *sources, void *memory, const void **ret_data);

/* Makes rows of tensor i: a gguf_maker's function. */
int sources_make(void *sources, size_t i, uint64_t first, uint64_t n, void *out, struct error *err);

#endif
