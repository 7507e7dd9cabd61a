/* SPDX-License-Identifier: MIT */
#ifndef GGUF_GGUF_VALUES_H
#define GGUF_GGUF_VALUES_H

/* Typed reads of a file's metadata. */

#include <stddef.h>
#include <stdint.h>

#include "gguf/gguf.h"

/* Typed reads. Integers of any width are accepted if they fit. 0; 1 (GGUF_E_MISSING) if the key is absent; or
 * -EINVAL with a reason if it has another type or does not fit. */
enum { GGUF_E_MISSING = 1 };
int gguf_u32(const struct gguf *gguf, const char *key, uint32_t *ret_value, struct error *err);
int gguf_f32(const struct gguf *gguf, const char *key, float *ret_value, struct error *err);
int gguf_bool(const struct gguf *gguf, const char *key, bool *ret_value, struct error *err);
int gguf_string(const struct gguf *gguf, const char *key, struct bytes *ret_value, struct error *err);

/* Element `i` < n of an array: integers of any width or bools; reals, or integers as reals; strings. Strings
 * are read one after the other: the caller keeps `cursor`, a byte offset into `raw`, which starts at 0. */
int64_t gguf_array_int(const struct gguf_value *array, uint64_t i);
double gguf_array_real(const struct gguf_value *array, uint64_t i);
struct bytes gguf_array_next_string(const struct gguf_value *array, size_t *cursor);

#endif
