/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_FOLDER_H
#define MODEL_HUGGINGFACE_FOLDER_H

/* Models as they are published: a folder with config.json, SafeTensors files (model.safetensors, or shards
 * that model.safetensors.index.json lists), tokenizer.json and its companions. 1_Pooling/config.json of
 * sentence-transformers, which defines embeddings, is read too.
 *
 * The result is an ordinary struct gguf: its tensors are those of the files, with GGUF's names and shapes, in
 * their F32, F16 or BF16; vectors are F32, weights in FP8 become BF16, blocks of MXFP4 GGUF's. Tensors that
 * are not as GGUF has them (experts apart, halves of one, 1 missing in norms, heads in another order) are
 * made in memory. Only the rows of queries and keys of architectures that turn pairs are in another order
 * than in a GGUF file, which the metadata records (ARCHITECTURE.rope.halves). */

#include "common/error.h"
#include "gguf/gguf.h"

/* A text that says in one line what of the files was left out, or became another format while it was read;
 * missing where nothing was. Not written to other files. */
#define HUGGINGFACE_NOTE "quern.folder_note"

/* The only file that is read from a folder below. */
#define HUGGINGFACE_POOLING "1_Pooling/config.json"

/* Is PATH a folder? */
bool huggingface_is_folder(const char *path);

/* Opens and checks everything. -errno with a reason that names the file and the key or tensor: a missing
 * file or shard; a tensor that is missing, unexpected, or of another shape than in config.json; any error of
 * config_parse, safetensors_parse and tokens_write. */
int huggingface_open(const char *path, struct gguf **ret_gguf, struct error *err);

#endif
