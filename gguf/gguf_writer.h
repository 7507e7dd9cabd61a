/* SPDX-License-Identifier: MIT */
#ifndef GGUF_GGUF_WRITER_H
#define GGUF_GGUF_WRITER_H

/* Writes GGUF version 3: synthetic models, quantized models, tests. */

#include <stddef.h>
#include <stdint.h>

#include "gguf/gguf.h"

struct gguf_writer;
int gguf_writer_new(struct gguf_writer **ret_writer);
struct gguf_writer *gguf_writer_free(struct gguf_writer *writer);

/* Adds metadata; keys and values are copied. 0 or -ENOMEM, as for the others. */
int gguf_writer_u32(struct gguf_writer *writer, const char *key, uint32_t value);
int gguf_writer_f32(struct gguf_writer *writer, const char *key, float value);
int gguf_writer_bool(struct gguf_writer *writer, const char *key, bool value);
int gguf_writer_string(struct gguf_writer *writer, const char *key, const char *value);
/* Adds a pair of another file, except general.alignment, which each file sets for itself. */
int gguf_writer_pair(struct gguf_writer *writer, const struct gguf_pair *pair);
int gguf_writer_strings(struct gguf_writer *writer, const char *key, const struct bytes *items, size_t n);
int gguf_writer_bools(struct gguf_writer *writer, const char *key, const bool *items, size_t n);
int gguf_writer_i32s(struct gguf_writer *writer, const char *key, const int32_t *items, size_t n);
int gguf_writer_f32s(struct gguf_writer *writer, const char *key, const float *items, size_t n);

/* Announces a tensor. Its data is requested while the file is written, in the order of announcement: `fill`
 * writes `size` bytes to `out` and returns 0, or a negative code that ends the writing. */
typedef int gguf_fill(void *arg, void *out, size_t size);
int gguf_writer_tensor(struct gguf_writer *writer, const char *name, uint32_t n_dims, const uint64_t *dims,
                       enum format format, gguf_fill *fill, void *arg);

/* Writes the file, or leaves PATH unchanged (common/files/output_file.h). PATH must not be one of the inputs:
 * gguf_check_output. */
int gguf_writer_write(struct gguf_writer *writer, const char *path, struct error *err);

#endif
