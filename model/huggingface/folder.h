/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_FOLDER_H
#define MODEL_HUGGINGFACE_FOLDER_H

/* Models as they are published: a folder with config.json, SafeTensors files (model.safetensors, or shards
 * that model.safetensors.index.json lists), tokenizer.json and what belongs to it. Where
 * sentence-transformers says how an embedding is made, in 1_Pooling/config.json, that is read as well.
 *
 * What comes out is a struct gguf like any other: its tensors are those of the files, under GGUF's names, in
 * F32, F16 or BF16 as they are there; vectors are F32. Only the rows of a llama's queries and keys stand in
 * another order than in a GGUF file, which the metadata says (ARCHITECTURE.rope.halves). */

#include "common/error.h"
#include "gguf/gguf.h"

/* The only file that is read from a folder below. */
#define HUGGINGFACE_POOLING "1_Pooling/config.json"

/* Is PATH a folder? */
bool huggingface_is_folder(const char *path);

/* Opens and checks all of it. -errno with a reason that names the file, and in it the key or tensor: a
 * missing file or shard, a tensor that is missing, has no place, or another shape than config.json says;
 * whatever config_parse, safetensors_parse and tokens_write refuse. */
int huggingface_open(const char *path, struct gguf **ret_gguf, struct error *err);

#endif
