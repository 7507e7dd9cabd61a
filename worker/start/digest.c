/* SPDX-License-Identifier: MIT */
/* Finding or reading the digest of a model. */

#include "worker/start/digest.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/start/digest_file.h"
#include "gguf/gguf_digest.h"

#define SHARE   4 /* of the threads that pack, one reads */
#define LOOK_NS (10 * CLOCK_NS_PER_MS)

void digest_open(struct digest *digest, const uint8_t key[16], bool settled)
{
    *digest = (struct digest){.is_open = true, .fd = settled ? digest_file_open(key) : -1};
    memcpy(digest->key, key, sizeof digest->key);
}

static void join(struct digest *digest)
{
    if (digest->is_reading)
        pthread_join(digest->thread, NULL);
    digest->is_reading = false;
}

void digest_close(struct digest *digest)
{
    join(digest);
    if (digest->is_open && digest->fd >= 0)
        close(digest->fd);
    digest->is_open = false;
}

/* ---- reading ---- */

static bool count_piece(void *arg)
{
    struct digest *digest = arg;
    atomic_fetch_add_explicit(&digest->n_pieces, 1, memory_order_relaxed);
    return false;
}

static void *read_files(void *arg)
{
    struct digest *digest = arg;
    digest->result = gguf_digest(digest->model->gguf, digest->n_threads, count_piece, digest, digest->value);
    atomic_store(&digest->done, true);
    return NULL;
}

static int read_now(struct digest *digest, uint32_t n_threads, bool (*progress)(void *arg), void *arg,
                    struct error *err)
{
    int r = model_read_digest(digest->model, n_threads, progress, arg, err);
    memcpy(digest->value, digest->model->digest, sizeof digest->value);
    atomic_store(&digest->done, r == 0);
    return r;
}

/* From who has read the files before. */
static bool is_remembered(struct digest *digest, const struct weight_store *weights)
{
    const uint8_t *packed = weights ? weight_store_digest(weights) : NULL;
    if (packed)
        memcpy(digest->value, packed, sizeof digest->value);
    return packed || digest_file_find(digest->fd, digest->key, digest->value);
}

int digest_begin(struct digest *digest, struct model *model, const struct weight_store *weights,
                 uint32_t n_threads, bool (*progress)(void *arg), void *arg, struct error *err)
{
    digest->model = model;
    if (is_remembered(digest, weights)) {
        atomic_store(&digest->done, true);
        return 0;
    }
    if (weights && weight_store_sees_others(weights))
        return read_now(digest, n_threads, progress, arg, err);
    digest->n_threads = (n_threads + SHARE - 1) / SHARE;
    digest->is_reading = pthread_create(&digest->thread, NULL, read_files, digest) == 0;
    return digest->is_reading ? 0 : read_now(digest, n_threads, progress, arg, err);
}

const uint8_t *digest_known(const struct digest *digest)
{
    return atomic_load(&digest->done) ? digest->value : NULL;
}

int digest_finish(struct digest *digest, bool (*progress)(void *arg), void *arg, struct error *err)
{
    for (unsigned seen = 0; digest->is_reading && !atomic_load(&digest->done);) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        unsigned n = atomic_load_explicit(&digest->n_pieces, memory_order_relaxed);
        if (n != seen)
            progress(arg);
        seen = n;
    }
    join(digest);
    if (digest->result < 0)
        return error_set(err, digest->result, "not enough memory for the digest of the model");
    memcpy(digest->model->digest, digest->value, sizeof digest->value);
    return 0;
}

void digest_keep(const struct digest *digest)
{
    uint8_t before[16];
    if (digest->fd < 0 || digest_file_find(digest->fd, digest->key, before))
        return;
    int r = digest_file_keep(digest->fd, digest->key, digest->value);
    if (r < 0)
        log_debug("the model's digest cannot be stored: %s", strerror(-r));
}
