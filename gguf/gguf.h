/* SPDX-License-Identifier: MIT */
#ifndef GGUF_GGUF_H
#define GGUF_GGUF_H

/* GGUF files, versions 2 and 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), memory-mapped.
 *
 * Every count, length and offset in the file is checked before use. A model in parts
 * (NAME-00001-of-0000N.gguf, keys split.no, split.count, split.tensors.count) is opened by its first part.
 * Strings, arrays and tensor data point into the mapping and live as long as the `struct gguf`. */

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
            enum gguf_type type; /* never GGUF_ARRAY: nested arrays are rejected */
            uint64_t n;
            struct bytes raw; /* the elements as stored in the file (each string: u64 length, bytes) */
        } array;
    };
};

struct gguf_pair {
    struct bytes key;
    struct gguf_value value;
};

#define GGUF_MAX_DIMS 4

/* Computes the rows of tensors when they are needed (gguf_make_rows): `number` counts the tensors of the
 * model from 0. `make` writes rows first … first + n − 1 to `out`, and may be called by several threads at
 * once; 0, or -errno with a reason. `free` is called once, when no more rows will be made. */
struct gguf_maker {
    int (*make)(void *arg, size_t number, uint64_t first, uint64_t n, void *out, struct error *err);
    void (*free)(void *arg);
    void *arg;
};

struct gguf_tensor {
    struct bytes name;
    uint32_t n_dims;
    uint64_t dims[GGUF_MAX_DIMS]; /* fastest first; 1 beyond n_dims */
    enum format format;
    const void *data; /* contiguous rows; dims[0] is a multiple of the format's block */
    size_t size;      /* bytes */
    /* Set if no file has the tensor in this form: its rows may be read only after gguf_make_rows. GGUF files
     * have no such tensors. */
    const struct gguf_maker *maker;
    size_t number; /* of the tensor, for its maker */
};

struct gguf;

/* Opens and checks a file and all its parts. 0; -errno; or -EINVAL with a reason: not GGUF, truncated, a
 * tensor outside the file or overlapping another, dimensions that overflow, an unknown type, a missing part.
 */
int gguf_open(const char *path, struct gguf **ret_gguf, struct error *err);

/* Parses one file in memory, aligned to 8 bytes; the bytes are borrowed. For fuzzing and tests; opens no
 * other parts. */
int gguf_parse(const void *data, size_t len, struct gguf **ret_gguf, struct error *err);

struct gguf *gguf_free(struct gguf *gguf);

/* -EEXIST with a reason if PATH is one of the files that `gguf` was opened from, under any name (symbolic
 * link, hard link): writing it would destroy the input. */
int gguf_check_output(const struct gguf *gguf, const char *path, struct error *err);

/* -ESTALE if a file that `gguf` was opened from has changed its size or its times since: what was read may
 * not be the model. The reason names the file. A file that was removed or replaced does not matter, since
 * the opened one stays. */
int gguf_check_unchanged(const struct gguf *gguf, struct error *err);

uint32_t gguf_version(const struct gguf *gguf);
size_t gguf_n_pairs(const struct gguf *gguf);
const struct gguf_pair *gguf_pair_at(const struct gguf *gguf, size_t i);
size_t gguf_n_tensors(const struct gguf *gguf);
const struct gguf_tensor *gguf_tensor_at(const struct gguf *gguf, size_t i);

/* Looks up by name; NULL: none. */
const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key);
const struct gguf_tensor *gguf_find_tensor(const struct gguf *gguf, const char *name);

/* Whether gguf_find, or a typed read, has found this key since its value was set, or since any key was last
 * added (gguf_set_value). */
bool gguf_was_found(const struct gguf *gguf, const char *key);

/* Computes rows first … first + n − 1 of a tensor that has a maker, into its data, on up to n_threads
 * threads. Does nothing for other tensors. Several threads may make different rows at once. Until the first
 * rows are made, and after gguf_give_back_tensor, reading the data crashes the process. 0, or -errno with a
 * reason: -ENOMEM, or what the maker found wrong. */
int gguf_make_rows(const struct gguf_tensor *tensor, uint64_t first, uint64_t n, unsigned n_threads,
                   struct error *err);
int gguf_make_tensor(const struct gguf_tensor *tensor, unsigned n_threads, struct error *err);

/* Returns the pages of the mapping that lie wholly within these bytes to the system. Pages of a file stay
 * readable: the next access reads them from the file. Rows that were made are zeros until they are made
 * again. For callers that have copied the data. Does nothing for borrowed bytes. */
void gguf_give_back(const struct gguf *gguf, const void *data, size_t size);

/* The same for a whole tensor, which no other thread may read or make rows of meanwhile. */
void gguf_give_back_tensor(const struct gguf *gguf, const struct gguf_tensor *tensor);

/* Unmaps the files, which may then be truncated or overwritten. Nothing that points into them, including
 * strings, arrays and names, may be read afterwards: that would crash the process. For callers that have
 * copied everything. */
void gguf_let_go(struct gguf *gguf);

#endif
