/* SPDX-License-Identifier: MIT */
#ifndef GGUF_GGUF_ASSEMBLE_H
#define GGUF_GGUF_ASSEMBLE_H

/* A struct gguf put together from other files (model/huggingface), or from another one (quantizing in
 * memory). */

#include <stddef.h>
#include <stdint.h>

#include "gguf/gguf.h"
#include "gguf/gguf_writer.h"

/* A model that lies in other files: made empty, given its files, then all that a writer knows of it. Until
 * gguf_assemble has succeeded, gguf_free is the only other thing to do with it. */
int gguf_new(struct gguf **ret_gguf);

/* Maps a file, whose bytes live as long as the gguf; what gguf_check_unchanged, gguf_digest … say covers it.
 * `kind` is what an empty file is said not to be. -errno with a reason, which does not name the file. */
int gguf_add_file(struct gguf *gguf, const char *path, const char *kind, struct bytes *ret_bytes,
                  struct error *err);

/* Zeroed memory that lives as long: for tensors that stand in no file as they are needed. What is put there
 * must follow from the files. -ENOMEM. */
int gguf_add_memory(struct gguf *gguf, size_t size, void **ret_memory);

/* Completes it with the writer's metadata and tensors; data[i] is where the bytes of tensor i lie, in the
 * order of announcement. Checked as a file's head is. -EINVAL with a reason, -ENOMEM. */
int gguf_assemble(struct gguf *gguf, const struct gguf_writer *writer, const void *const *data,
                  struct error *err);

/* Tensor i is now these bytes, of the same shape. */
void gguf_replace_tensor(struct gguf *gguf, size_t i, enum format format, const void *data);

/* Says that tensors were replaced, and how: files that are read in two ways are two models. */
void gguf_set_variant(struct gguf *gguf, const char *name);

#endif
