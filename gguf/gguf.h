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

/* Gives the pages of the mapping that lie wholly within these bytes back to the system: they stay readable,
 * and come from the file again when they are touched. For who has copied what it needs. Borrowed bytes are
 * left alone. */
void gguf_give_back(const struct gguf *gguf, const void *data, size_t size);

/* Lets go of the files, which may then be truncated or overwritten. Nothing that points into them, strings,
 * arrays and names included, may be read any more: it would end the process. For who has copied all. */
void gguf_let_go(struct gguf *gguf);

#endif
