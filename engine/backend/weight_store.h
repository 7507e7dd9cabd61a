/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_WEIGHT_STORE_H
#define ENGINE_BACKEND_WEIGHT_STORE_H

/* Packed weights, shared on a machine: a user's first worker that loads a model packs it into a segment of
 * shared memory; the others map the segment read-only and start at once.
 *
 * A segment is a memfd without a path, found among the open files of the user's other workers (/proc/PID/fd).
 * So it lives exactly as long as a worker uses it: a kill leaves nothing behind, nothing becomes stale, and
 * pools need not know about one another. A segment is mapped only once it is complete and sealed against
 * writing.
 *
 * A worker calls these in this order:
 *     weight_store_open      before it confines itself, because then it can no longer see other processes;
 *                            so also before it has read the file
 *     weight_store_wait      while another worker packs the same file
 *     weight_store_digest    known without reading the file, if a segment of it was found
 *     weight_store_know      otherwise the worker reads the file and sets its digest: before it searches for
 *                            a segment if there are others, else before it publishes its own
 *     weight_store_find      by the backend: the segment of that model, packed the backend's way; or else
 *     weight_store_make      memory to pack into
 *     weight_store_publish   when the file is known to be unchanged: from then on others find it
 *     weight_store_free      when the backend is closed
 *
 * One thread makes all calls. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct weight_store;

/* The memory nodes (NUMA) of a segment: its huge pages are placed on each in turn. Threads on several nodes,
 * which all read the whole segment, then load the nodes evenly; for threads of a single node it is local. */
struct weight_store_place {
    uint64_t nodes; /* one bit per node; 0: the system chooses */
    /* From now on, memory that the calling thread allocates comes from this node. Called by several threads
     * at once, finally with WEIGHT_STORE_ANY_NODE. Not called if `nodes` is 0. */
    void (*prefer)(void *arg, uint32_t node);
    void *arg;
};

#define WEIGHT_STORE_ANY_NODE UINT32_MAX

/* Identifies the weights: key and `settled` are those of model/files.h. */
struct weight_store_file {
    uint8_t key[16];
    bool settled;
    uint64_t packing;                /* backend_ops.weight_packing */
    struct weight_store_place place; /* segments with another place are ignored */
};

/* Searches for the segment of a file, and for processes that will make it. 0, or -errno with a reason if
 * nothing can be shared here; the caller then packs into private memory. */
int weight_store_open(const struct weight_store_file *file, struct weight_store **ret_store,
                      struct error *err);

/* Waits while earlier processes make the segment, as long as they progress; calls `progress` each time they
 * do (may be NULL; its result is ignored). 0: there is a segment, or it is this process's turn to make one.
 * -ETIMEDOUT with a reason: one of them makes no progress. */
int weight_store_wait(struct weight_store *store, bool (*progress)(void *arg), void *arg, struct error *err);

struct weight_store *weight_store_free(struct weight_store *store);

/* The digest [16] of the file, computed by the process that made its segment; NULL: there is no segment. */
const uint8_t *weight_store_digest(const struct weight_store *store);

/* Whether there are segments of other files. One of them may have been made from a copy of this file. */
bool weight_store_sees_others(const struct weight_store *store);

/* Sets the file's digest, which also finds a segment made from another copy of the file. */
void weight_store_know(struct weight_store *store, const uint8_t digest[16]);

/* The segment's `size` bytes, read-only, if there is one with this digest and layout; NULL: there is none.
 * Closes all other segments that were found. */
const void *weight_store_find(struct weight_store *store, uint64_t layout, size_t size);

/* Runs work(arg) on several threads at once and returns when all are done. Large work is split into many
 * calls, and the callee may report progress at each. */
typedef void weight_store_run(void *team, void (*work)(void *arg), void *arg);

/* Memory of `size` zero bytes to pack into, page-aligned; the store owns it. `run` clears its pages on
 * several threads; NULL: this thread does. 0; -ENOMEM: the machine or the control group lacks the memory.
 * Other errors: no segment can be made, but private memory may work. */
int weight_store_make(struct weight_store *store, uint64_t layout, size_t size, weight_store_run *run,
                      void *team, void **ret_memory);

/* Shows waiting processes that packing makes progress. Costs nothing if no process waits. */
void weight_store_progress(struct weight_store *store);

/* Seals the packed segment and shows it to others; the memory stays at its address, read-only from now on.
 * Does nothing if no segment was made. 0, or -errno: it could not be sealed, or its digest is not set; it
 * then stays private to this process, readable as before. */
int weight_store_publish(struct weight_store *store, struct error *err);

/* Whether the segment was found, not made; its size in bytes, 0 if there is none. */
bool weight_store_is_found(const struct weight_store *store);
size_t weight_store_bytes(const struct weight_store *store);

#endif
