/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_WEIGHT_STORE_H
#define ENGINE_BACKEND_WEIGHT_STORE_H

/* Packed weights, once per machine: the first worker of a user that loads a model packs it into a segment of
 * shared memory, the others map that read-only and start at once.
 *
 * A segment is a memfd without a name in any folder, found among the open files of the user's other workers
 * (/proc/PID/fd). So it lives exactly as long as a worker uses it, a kill leaves nothing behind, nothing can
 * be stale, and pools need not know of one another. Nobody maps a segment before it is whole and sealed
 * against writing.
 *
 * A worker goes through it in this order:
 *     weight_store_open      before it confines itself, for then it can no longer see others, and so before
 *                            it has read the file
 *     weight_store_wait      while another one packs the same file
 *     weight_store_digest    known without reading the file, if such a segment was found
 *     weight_store_know      else the worker reads the file, and says what its digest is: before it looks for
 *                            a segment where there are others, else before it publishes its own
 *     weight_store_find      by the backend: the segment of that model, packed the backend's way; or else
 *     weight_store_make      memory to pack into
 *     weight_store_publish   when the file has been found unchanged: from then on others find it
 *     weight_store_free      when the backend is closed
 *
 * One thread makes all calls. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct weight_store;

/* On which nodes of memory (NUMA) a segment lies: its huge pages in turn on each. Threads that read all of it
 * from several nodes then use the memory of all alike; those of one node alone have it near. */
struct weight_store_place {
    uint64_t nodes; /* a bit for each; 0: wherever the system likes */
    /* Memory that the calling thread gets from now on comes from this node; called by several threads at
     * once, with WEIGHT_STORE_ANY_NODE in the end. Not called when there are no nodes. */
    void (*prefer)(void *arg, uint32_t node);
    void *arg;
};

#define WEIGHT_STORE_ANY_NODE UINT32_MAX

/* Whose weights: key and `settled` are of model/files.h. */
struct weight_store_file {
    uint8_t key[16];
    bool settled;
    uint64_t packing;                /* backend_ops.weight_packing: others pack in other ways */
    struct weight_store_place place; /* segments that lie elsewhere are others' */
};

/* Looks for the segment of a file, and for processes about to make it. -errno with a reason: nothing can be
 * shared here; the caller then packs into private memory. */
int weight_store_open(const struct weight_store_file *file, struct weight_store **ret_store,
                      struct error *err);

/* While earlier processes are making it, waits as long as they make progress; `progress` (may be NULL; its
 * result is ignored) is called each time they do. 0: there is a segment, or it is this process's turn to make
 * one. -ETIMEDOUT with a reason: one of them makes no progress. */
int weight_store_wait(struct weight_store *store, bool (*progress)(void *arg), void *arg, struct error *err);

struct weight_store *weight_store_free(struct weight_store *store);

/* The digest of the file [16], computed by the process that made its segment; NULL when none has. */
const uint8_t *weight_store_digest(const struct weight_store *store);

/* Are there segments of others, of any model? Then one of them may be of a copy of the file. */
bool weight_store_sees_others(const struct weight_store *store);

/* The digest, by which a segment is found that was made of another copy of the file. */
void weight_store_know(struct weight_store *store, const uint8_t digest[16]);

/* The segment's `size` bytes, read-only, if there is one with this digest and layout; NULL: there is none.
 * All others that were found are let go of. */
const void *weight_store_find(struct weight_store *store, uint64_t layout, size_t size);

/* Runs work(arg) on as many threads as it likes, all at once, and returns when all are done. It is called
 * many times for what is large, and may tell of progress each time. */
typedef void weight_store_run(void *team, void (*work)(void *arg), void *arg);

/* Memory of `size` zero bytes to pack into, on a border of a page; the store keeps it. `run` shares out the
 * clearing of its pages, NULL: this thread clears all. -ENOMEM: the machine or the control group has no such
 * memory. Other errors: no segment can be made, other memory may do. */
int weight_store_make(struct weight_store *store, uint64_t layout, size_t size, weight_store_run *run,
                      void *team, void **ret_memory);

/* Tells waiting processes that packing makes progress. Free when there is nothing to tell. */
void weight_store_progress(struct weight_store *store);

/* Seals what was packed and shows it to others; the memory stays where it is and is read-only from now on.
 * Nothing happens when nothing was made. -errno: it could not be sealed, or its digest is not set; it stays
 * private to this process, readable as before. */
int weight_store_publish(struct weight_store *store, struct error *err);

/* Whether the weights were found and not made; and bytes of the segment, 0 when there is none. */
bool weight_store_is_found(const struct weight_store *store);
size_t weight_store_bytes(const struct weight_store *store);

#endif
