/* SPDX-License-Identifier: MIT */
#ifndef GGUF_GGUF_INTERNAL_H
#define GGUF_GGUF_INTERNAL_H

/* Shared by the gguf_*.c files only. */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "gguf/gguf.h"

#define GGUF_MAGIC             "GGUF"
#define GGUF_DEFAULT_ALIGNMENT 32

/* The maps of a model: files; a head written in memory, for a model assembled from other files; data computed
 * from those; and addresses for data that is computed on demand, whose pages are inaccessible until then. */
enum gguf_map_kind { GGUF_MAP_FILE, GGUF_MAP_HEAD, GGUF_MAP_DERIVED, GGUF_MAP_MADE };

struct gguf_map {
    enum gguf_map_kind kind; /* the rest is set for files only */
    void *memory;
    size_t size;
    dev_t device; /* with the inode, identifies the file under any name */
    ino_t inode;
    struct timespec modified, changed; /* times of content and inode when it was opened */
    char *path;
};

struct gguf {
    uint32_t version;
    struct gguf_pair *pairs; /* in the order of the file */
    size_t n_pairs;
    struct gguf_tensor *tensors; /* in the order of the file, then those of the next part */
    size_t n_tensors;
    const struct gguf_pair **by_key; /* [n_pairs] sorted */
    const struct gguf_tensor **by_name;
    atomic_bool *found;    /* [n_pairs] as by_key: gguf_find has returned it */
    struct bytes metadata; /* all pairs of the first part, as stored */
    struct gguf_map *maps; /* [n_maps], one per part; none if the bytes are borrowed */
    size_t n_maps;
    struct bytes borrowed;    /* instead of maps */
    uint64_t variant;         /* how tensors were replaced (gguf_set_variant); 0: not at all */
    struct gguf_maker *maker; /* NULL: none */
};

/* Maps a file, which the model then owns. An empty file is rejected as "not a KIND". */
int gguf_map_file(struct gguf *gguf, const char *path, const char *kind, struct bytes *ret_bytes,
                  struct error *err);

/* Bytes of one element of an array; 0 for strings, arrays and unknown types. */
size_t gguf_type_size(enum gguf_type type);

/* Parses one file into a zeroed `part`: pairs and tensors, without indexes. The caller frees it, on failure
 * too. */
int gguf_parse_file(struct bytes file, struct gguf *part, struct error *err);

/* The same for a head without data: the tensors' `data` are NULL. */
int gguf_parse_head(struct bytes head, struct gguf *part, struct error *err);

struct gguf_writer;

/* Everything before the data, padded. */
int gguf_writer_head(const struct gguf_writer *writer, struct buffer *ret_head);

/* Sorts the indexes, replacing earlier ones; rejects a key or a tensor name that occurs twice
 * (gguf_index.c). */
int gguf_index(struct gguf *gguf, struct error *err);
void gguf_drop_index(struct gguf *gguf);

/* Resets gguf_was_found for a key (gguf_index.c). */
void gguf_forget_found(struct gguf *gguf, const char *key);

#endif
