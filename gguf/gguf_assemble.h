/* SPDX-License-Identifier: MIT */
#ifndef GGUF_GGUF_ASSEMBLE_H
#define GGUF_GGUF_ASSEMBLE_H

/* A struct gguf put together from other files (model/huggingface), or from another one (quantizing in
 * memory). */

#include <stddef.h>
#include <stdint.h>

#include "gguf/gguf.h"
#include "gguf/gguf_writer.h"

/* A model in other files: created empty, given its files, then completed from a writer. Until gguf_assemble
 * has succeeded, only gguf_free may be called on it. */
int gguf_new(struct gguf **ret_gguf);

/* Maps a file, whose bytes live as long as the gguf; gguf_check_unchanged, gguf_digest and others cover it.
 * An empty file is rejected as "not a KIND". -errno with a reason that does not name the file. */
int gguf_add_file(struct gguf *gguf, const char *path, const char *kind, struct bytes *ret_bytes,
                  struct error *err);

/* Zeroed memory that lives as long, for tensors that no file has in the form needed. Its contents must be
 * determined by the files. -ENOMEM. */
int gguf_add_memory(struct gguf *gguf, size_t size, void **ret_memory);

/* Reserves addresses for the tensors that `maker` makes: they take no memory until then. Once for a model,
 * which takes the maker over, on failure too. -ENOMEM. */
int gguf_add_maker(struct gguf *gguf, const struct gguf_maker *maker, size_t size, void **ret_memory);

/* Completes it with the writer's metadata and tensors; data[i] points to the bytes of tensor i, in the order
 * of announcement; a tensor whose bytes are where a maker's are to be is made by it. Checked like the head of
 * a file. -EINVAL with a reason, -ENOMEM. */
int gguf_assemble(struct gguf *gguf, const struct gguf_writer *writer, const void *const *data,
                  struct error *err);

/* Replaces tensor i by these bytes, of the same shape. */
void gguf_replace_tensor(struct gguf *gguf, size_t i, enum format format, const void *data);

/* Sets the value of a key, in place of what the file says, or as one more; a text is copied. Values and pairs
 * that were found before are void. -ENOMEM. */
int gguf_set_value(struct gguf *gguf, const char *key, const struct gguf_value *value);

/* Records that tensors were replaced, or metadata, and how: one file read in two ways is two models. Of
 * several such names the order counts. */
void gguf_set_variant(struct gguf *gguf, const char *name);

#endif
