/* SPDX-License-Identifier: MIT */
#ifndef WORKER_START_DIGEST_H
#define WORKER_START_DIGEST_H

/* The digest of a model while it loads. Other workers or an earlier start may have computed it
 * (weight_store.h, digest_file.h); if not, a thread reads the files while the backend packs them, so that the
 * disk is read once for both.
 *
 *     digest_open     before the process is confined, and so before it has read the model
 *     digest_begin    finds it, or starts reading
 *     digest_finish   sets it in the model
 *     digest_keep     after the files were found unchanged
 *     digest_close */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "engine/backend/weight_store.h"
#include "model/model.h"

/* A zeroed struct knows nothing and stores nothing. */
struct digest {
    struct model *model;
    bool is_open;    /* fd is valid */
    int fd;          /* of its place in the table, or -1 */
    uint8_t key[16]; /* of the model's files */
    bool is_reading; /* the thread runs */
    pthread_t thread;
    uint32_t n_threads;
    atomic_uint n_pieces; /* that the thread has read */
    atomic_bool done;     /* found or read, or failed */
    int result;           /* if done: 0 or -errno */
    uint8_t value[16];    /* if done: the digest */
};

/* Key and `settled` are those of the model's files (model/files.h); digests of files that are not settled are
 * not stored. */
void digest_open(struct digest *digest, const uint8_t key[16], bool settled);
void digest_close(struct digest *digest);

/* Borrows the model until digest_close. `weights` may be NULL. If segments of other workers were found,
 * perhaps of a copy of these files, computes the digest at once, calling `progress`, to see whether one can
 * be used. n_threads: the threads of the load. 0 or -errno with a reason. */
int digest_begin(struct digest *digest, struct model *model, const struct weight_store *weights,
                 uint32_t n_threads, bool (*progress)(void *arg), void *arg, struct error *err);

/* The digest [16] if it is known by now; else NULL. */
const uint8_t *digest_known(const struct digest *digest);

/* Waits for it, calling `progress`, and sets the model's. The model's files must still be open. 0 or
 * -ENOMEM. */
int digest_finish(struct digest *digest, bool (*progress)(void *arg), void *arg, struct error *err);

/* Stores it for the next start with files that have equal times. A failure is only logged. */
void digest_keep(const struct digest *digest);

#endif
