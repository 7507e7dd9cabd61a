/* SPDX-License-Identifier: MIT */
#ifndef WORKER_GGUF_GGUF_INTERNAL_H
#define WORKER_GGUF_GGUF_INTERNAL_H

/* Shared by the gguf_*.c files only. */

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "worker/gguf/gguf.h"

#define GGUF_MAGIC             "GGUF"
#define GGUF_DEFAULT_ALIGNMENT 32

struct gguf_map {
    void *memory;
    size_t size;
    dev_t device; /* with the inode: the file, whatever it is called */
    ino_t inode;
    struct timespec modified, changed; /* when it was opened: its content, anything of it */
    bool settled;                      /* it had not been touched for a while then */
    char *path;
};

struct gguf {
    uint32_t version;
    struct gguf_pair *pairs; /* in the order of the file */
    size_t n_pairs;
    struct gguf_tensor *tensors; /* in the order of the file, then of the next part's */
    size_t n_tensors;
    const struct gguf_pair **by_key; /* [n_pairs] sorted */
    const struct gguf_tensor **by_name;
    struct bytes metadata; /* all pairs of the first part as they stand there */
    struct gguf_map *maps; /* [n_maps], one a part; none when the bytes are borrowed */
    size_t n_maps;
    struct bytes borrowed; /* instead of maps */
};

/* Bytes of one element of an array; 0 for strings, arrays and unknown types. */
size_t gguf_type_size(enum gguf_type type);

/* Parses one file into a zeroed `part`: pairs and tensors, without indexes. On failure too, the caller frees.
 */
int gguf_parse_file(struct bytes file, struct gguf *part, struct error *err);

/* Sorts the indexes; refuses a key or a tensor name that comes twice. */
int gguf_index(struct gguf *gguf, struct error *err);

#endif
