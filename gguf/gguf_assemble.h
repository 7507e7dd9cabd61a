/* SPDX-License-Identifier: MIT */
#ifndef GGUF_GGUF_ASSEMBLE_H
#define GGUF_GGUF_ASSEMBLE_H

/* A struct gguf assembled from other files (model/huggingface), or from another one (quantizing in
 * memory). */

#include <stddef.h>
#include <stdint.h>

#include "gguf/gguf.h"
#include "gguf/gguf_writer.h"

/* For a model in other files: create it empty, add its files, then complete it from a writer. Until
 * gguf_assemble has succeeded, only gguf_free may be called on it. */
int gguf_new(struct gguf **ret_gguf);

/* Maps a file, whose bytes live as long as the gguf; gguf_check_unchanged, gguf_digest and others include it.
 * An empty file is rejected as "not a KIND". -errno with a reason that does not name the file. */
int gguf_add_file(struct gguf *gguf, const char *path, const char *kind, struct bytes *ret_bytes,
                  struct error *err);

/* Zeroed memory with the same lifetime, for tensors that no file has in the needed form. Its contents must
 * depend only on the files. -ENOMEM. */
int gguf_add_memory(struct gguf *gguf, size_t size, void **ret_memory);

/* Reserves addresses for the tensors that `maker` makes: they take no memory until then. At most once per
 * model, which takes ownership of the maker, on failure too. -ENOMEM. */
int gguf_add_maker(struct gguf *gguf, const struct gguf_maker *maker, size_t size, void **ret_memory);

/* Completes it with the writer's metadata and tensors; data[i] points to the bytes of tensor i, in the order
 * of announcement; a tensor whose bytes are in the maker's addresses is made by it. Checked like the head of
 * a file. -EINVAL with a reason, -ENOMEM. */
int gguf_assemble(struct gguf *gguf, const struct gguf_writer *writer, const void *const *data,
                  struct error *err);

/* Replaces tensor i by these bytes, which have the same shape. */
void gguf_replace_tensor(struct gguf *gguf, size_t i, enum format format, const void *data);

/* Sets the value of a key, replacing the file's value if it has one; a text is copied. Pointers to values and
 * pairs found before become invalid. -ENOMEM. */
int gguf_set_value(struct gguf *gguf, const char *key, const struct gguf_value *value);

/* Records how tensors or metadata were replaced: a file read in two ways gives two models. If there are
 * several such names, their order matters. */
void gguf_set_variant(struct gguf *gguf, const char *name);

#endif
