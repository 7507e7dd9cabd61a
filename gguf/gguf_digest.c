/* SPDX-License-Identifier: MIT */
/* What tells one model from another: its content.
 *
 * The digest is a tree of two levels: XXH3-128 of each piece of each part, and of all those in order, with
 * the parts' sizes. Threads take pieces in turn, so a file is read about as fast as memory is; each piece is
 * asked for at once and given back when it was read, because a model's file may be larger than memory. */

#include "gguf/gguf_digest.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/hash.h"
#include "gguf/gguf_internal.h"

#define PIECE_BYTES  ((size_t)4 << 20)
#define MOST_THREADS 16 /* memory is not read faster by more */

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

struct piece {
    const uint8_t *data;
    size_t size;
};

struct digest {
    const struct gguf *gguf;
    struct piece *pieces; /* [n] */
    struct hash128 *hashes;
    size_t n;
    atomic_size_t next;
    bool (*progress)(void *arg);
    void *arg;
};

static size_t n_files(const struct gguf *gguf)
{
    return gguf->n_maps ? gguf->n_maps : 1;
}

/* What was computed from the others is not read. */
static struct bytes file_at(const struct gguf *gguf, size_t i)
{
    if (gguf->n_maps && (gguf->maps[i].kind == GGUF_MAP_DERIVED || gguf->maps[i].kind == GGUF_MAP_MADE))
        return (struct bytes){"", 0};
    return gguf->n_maps ? (struct bytes){gguf->maps[i].memory, gguf->maps[i].size} : gguf->borrowed;
}

static bool read_next(struct digest *digest)
{
    size_t i = atomic_fetch_add(&digest->next, 1);
    if (i >= digest->n)
        return false;
    const struct piece *piece = &digest->pieces[i];
    if (digest->gguf->n_maps) /* pieces begin where pages do; refused, it only takes longer */
        madvise((void *)piece->data, piece->size, MADV_POPULATE_READ);
    digest->hashes[i] = hash128(piece->data, piece->size, 0);
    gguf_give_back(digest->gguf, piece->data, piece->size);
    return true;
}

static void *help(void *arg)
{
    while (read_next(arg))
        ;
    return NULL;
}

static void read_all(struct digest *digest, uint32_t n_threads)
{
    pthread_t helpers[MOST_THREADS];
    uint32_t n = 0, most = n_threads < MOST_THREADS ? n_threads : MOST_THREADS;
    while (n + 1 < most && n + 1 < digest->n && pthread_create(&helpers[n], NULL, help, digest) == 0)
        n++;
    while (read_next(digest))
        if (digest->progress)
            digest->progress(digest->arg);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(helpers[i], NULL);
}

static int cut(struct digest *digest)
{
    const struct gguf *gguf = digest->gguf;
    for (size_t f = 0; f < n_files(gguf); f++)
        digest->n += file_at(gguf, f).len / PIECE_BYTES + 1;
    digest->pieces = calloc(digest->n, sizeof *digest->pieces);
    digest->hashes = calloc(digest->n, sizeof *digest->hashes);
    if (!digest->pieces || !digest->hashes)
        return -ENOMEM;
    struct piece *piece = digest->pieces;
    for (size_t f = 0; f < n_files(gguf); f++) {
        struct bytes file = file_at(gguf, f);
        for (size_t at = 0; at <= file.len; at += PIECE_BYTES) {
            size_t left = file.len - at;
            *piece++ =
                (struct piece){(const uint8_t *)file.data + at, left < PIECE_BYTES ? left : PIECE_BYTES};
        }
    }
    return 0;
}

int gguf_digest(const struct gguf *gguf, uint32_t n_threads, bool (*progress)(void *arg), void *arg,
                uint8_t ret_digest[16])
{
    struct digest digest = {.gguf = gguf, .progress = progress, .arg = arg};
    int r = cut(&digest);
    if (r == 0) {
        read_all(&digest, n_threads);
        struct hash128 all = hash128(digest.hashes, digest.n * sizeof *digest.hashes, 0);
        for (size_t f = 0; f < n_files(gguf); f++) {
            const uint64_t link[3] = {all.low, all.high, file_at(gguf, f).len};
            all = hash128(link, sizeof link, 0);
        }
        all.low ^= gguf->variant;
        memcpy(ret_digest, &all, sizeof all);
    }
    free(digest.pieces);
    free(digest.hashes);
    return r;
}
