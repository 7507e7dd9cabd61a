/* SPDX-License-Identifier: MIT */
#ifndef GGUF_GGUF_H
#define GGUF_GGUF_H

/* GGUF files, versions 2 and 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), mapped and not
 * read.
 *
 * Every count, length and offset of the file is checked before use; nothing is trusted. A file in parts
 * (NAME-00001-of-0000N.gguf, keys split.no, split.count, split.tensors.count) is opened by its first part.
 * Strings and arrays of the metadata and the tensor data point into the mapping and live as long as the
 * `struct gguf`. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "gguf/format.h"

/* The file's own numbers. */
enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPE_COUNT
};

struct gguf_value {
    enum gguf_type type;
    union {
        uint64_t u;          /* unsigned integers, bool */
        int64_t i;           /* signed integers */
        double f;            /* reals */
        struct bytes string; /* not zero-terminated; may hold any bytes */
        struct {
            enum gguf_type type; /* never GGUF_ARRAY: nested arrays are refused */
            uint64_t n;
            struct bytes raw; /* the elements as they stand in the file (strings: u64 length + bytes each) */
        } array;
    };
};

struct gguf_pair {
    struct bytes key;
    struct gguf_value value;
};

#define GGUF_MAX_DIMS 4

struct gguf_tensor {
    struct bytes name;
    uint32_t n_dims;
    uint64_t dims[GGUF_MAX_DIMS]; /* fastest first; 1 beyond n_dims */
    enum format format;
    const void *data; /* rows one after the other; dims[0] is a multiple of the format's block */
    size_t size;      /* bytes */
};

struct gguf;

/* Opens and checks a file and all its parts. 0; -errno; or -EINVAL with the reason: not GGUF, truncated, a
 * tensor outside the file or over another, a dimension overflow, an unknown type, a missing part. */
int gguf_open(const char *path, struct gguf **ret_gguf, struct error *err);

/* Parses one file that is in memory already, aligned to 8 bytes; the bytes are borrowed. For fuzzing and
 * tests; knows no other parts. */
int gguf_parse(const void *data, size_t len, struct gguf **ret_gguf, struct error *err);

struct gguf *gguf_free(struct gguf *gguf);

/* -EEXIST with a reason when PATH is one of the files that `gguf` was opened from, any part of it, by that
 * name or another (symbolic link, hard link): who writes there destroys what he reads. */
int gguf_check_output(const struct gguf *gguf, const char *path, struct error *err);

/* -ESTALE when a file that `gguf` was opened from has another size than then, or was touched: whoever read it
 * meanwhile may have read something else than a model. The reason names the file. One that was removed, or
 * that another took the place of, is no matter: what was opened stays. */
int gguf_check_unchanged(const struct gguf *gguf, struct error *err);

uint32_t gguf_version(const struct gguf *gguf);
size_t gguf_n_pairs(const struct gguf *gguf);
const struct gguf_pair *gguf_pair_at(const struct gguf *gguf, size_t i);
size_t gguf_n_tensors(const struct gguf *gguf);
const struct gguf_tensor *gguf_tensor_at(const struct gguf *gguf, size_t i);

/* Looks up by name; NULL when there is none. */
const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key);
const struct gguf_tensor *gguf_find_tensor(const struct gguf *gguf, const char *name);

/* Typed reads. Integers of any width are accepted where they fit. 0; 1 (GGUF_E_MISSING) when the key is
 * absent; or -EINVAL with a reason when it has another type or does not fit. */
enum { GGUF_E_MISSING = 1 };
int gguf_u32(const struct gguf *gguf, const char *key, uint32_t *ret_value, struct error *err);
int gguf_f32(const struct gguf *gguf, const char *key, float *ret_value, struct error *err);
int gguf_bool(const struct gguf *gguf, const char *key, bool *ret_value, struct error *err);
int gguf_string(const struct gguf *gguf, const char *key, struct bytes *ret_value, struct error *err);

/* Element `i` < n of an array: integers of any width or bools; reals, or integers as reals; strings. Walking
 * an array of strings by index from 0 upwards is linear in all: the caller keeps `cursor` (start with 0), a
 * byte offset into raw. */
int64_t gguf_array_int(const struct gguf_value *array, uint64_t i);
double gguf_array_real(const struct gguf_value *array, uint64_t i);
struct bytes gguf_array_next_string(const struct gguf_value *array, size_t *cursor);

/* Gives the pages of the mapping that lie wholly within these bytes back to the system: they stay readable,
 * and come from the file again when they are touched. For who has copied what it needs. Borrowed bytes are
 * left alone. */
void gguf_give_back(const struct gguf *gguf, const void *data, size_t size);

/* Lets go of the files, which may then be truncated or overwritten. Nothing that points into them, strings,
 * arrays and names included, may be read any more: it would end the process. For who has copied all. */
void gguf_let_go(struct gguf *gguf);

/* A fingerprint of every byte of the model's files (gguf_digest.c): pools treat equal digests as equal
 * models. Reads them whole, on n_threads threads, and gives their pages back behind itself. `progress` is
 * called by the calling thread now and then, what it says means nothing; it may be NULL. 0 or -ENOMEM. */
int gguf_digest(const struct gguf *gguf, uint32_t n_threads, bool (*progress)(void *arg), void *arg,
                uint8_t ret_digest[16]);

/* ---- writing (synth, quantize, tests) ---- */

struct gguf_writer;
int gguf_writer_new(struct gguf_writer **ret_writer);
struct gguf_writer *gguf_writer_free(struct gguf_writer *writer);

/* Adds metadata; keys and values are copied. 0 or -ENOMEM, as for the others. */
int gguf_writer_u32(struct gguf_writer *writer, const char *key, uint32_t value);
int gguf_writer_f32(struct gguf_writer *writer, const char *key, float value);
int gguf_writer_bool(struct gguf_writer *writer, const char *key, bool value);
int gguf_writer_string(struct gguf_writer *writer, const char *key, const char *value);
/* Any pair of another file; general.alignment is left out, it is this file's own matter. */
int gguf_writer_pair(struct gguf_writer *writer, const struct gguf_pair *pair);
int gguf_writer_strings(struct gguf_writer *writer, const char *key, const struct bytes *items, size_t n);
int gguf_writer_i32s(struct gguf_writer *writer, const char *key, const int32_t *items, size_t n);
int gguf_writer_f32s(struct gguf_writer *writer, const char *key, const float *items, size_t n);

/* Announces a tensor; its data is asked for, in the order of announcement, while the file is written: `fill`
 * writes `size` bytes to `out` and returns 0 or a negative code, which ends the writing. */
typedef int gguf_fill(void *arg, void *out, size_t size);
int gguf_writer_tensor(struct gguf_writer *writer, const char *name, uint32_t n_dims, const uint64_t *dims,
                       enum format format, gguf_fill *fill, void *arg);

/* Writes it all, or leaves PATH as it was (common/files/output_file.h). PATH must not be a file that data
 * comes from: gguf_check_output. */
int gguf_writer_write(struct gguf_writer *writer, const char *path, struct error *err);

/* ---- putting together (model/huggingface, quantizing in memory) ---- */

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
