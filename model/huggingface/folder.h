/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_FOLDER_H
#define MODEL_HUGGINGFACE_FOLDER_H

/* Models as they are published: a folder with config.json, SafeTensors files (model.safetensors, or shards
 * that model.safetensors.index.json lists), tokenizer.json and its companions. Also reads
 * 1_Pooling/config.json of sentence-transformers, which defines embeddings.
 *
 * The result is an ordinary struct gguf: its tensors are those of the files, with GGUF's names and shapes, in
 * their F32, F16 or BF16; vectors are F32, weights in FP8 become BF16, and blocks of MXFP4 become GGUF's.
 * Tensors that differ from GGUF's (separate experts, halves of one tensor, 1 missing in norms, heads in
 * another order) are made in memory. Only the rows of queries and keys of architectures that rotate pairs are
 * in a different order from a GGUF file; the metadata records that (ARCHITECTURE.rope.halves). */

#include "common/error.h"
#include "gguf/gguf.h"

/* A line of text saying which parts of the files were not used, or were converted to another format while
 * reading; missing if there were none. Not written to other files. */
#define HUGGINGFACE_NOTE "quern.folder_note"

/* The only file that is read from a subfolder. */
#define HUGGINGFACE_POOLING "1_Pooling/config.json"

/* Whether PATH is a folder. */
bool huggingface_is_folder(const char *path);

/* Opens and checks everything. -errno with a reason that names the file and the key or tensor: a missing file
 * or shard; a tensor that is missing, unexpected, or of a different shape from config.json; any error of
 * config_parse, safetensors_parse and tokens_write. */
int huggingface_open(const char *path, struct gguf **ret_gguf, struct error *err);

#endif
