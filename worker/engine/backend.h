/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ENGINE_BACKEND_H
#define WORKER_ENGINE_BACKEND_H

/* What the engine asks of hardware: one table of functions, asynchronous.
 *
 * A *slot* is a sequence as the backend sees it: sampler state, penalty counts, the id sampled last, its
 * table of KV blocks. A *step* is one call on a ragged batch: prefill chunks, single decodes and draft
 * verification alike. submit starts a step and gives its ticket; poll waits for it. Steps finish in the order
 * of submission. The CPU finishes inside submit; a GPU may run step n + 1 before the host has read step n, so
 * a sequence that ended in step n may have one surplus row in step n + 1: its output is dropped and its
 * blocks are freed when that ticket is done.
 *
 * The engine owns which blocks exist and who holds them; the backend owns what is in them. A block holds
 * BACKEND_BLOCK_TOKENS positions of every layer. The one thread that opened a backend makes every call. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/engine/sampling.h"

struct model;
struct backend;

#define BACKEND_BLOCK_TOKENS 32

/* Blocks that so many positions take. */
static inline uint32_t backend_blocks_for(uint32_t positions)
{
    return positions / BACKEND_BLOCK_TOKENS + (positions % BACKEND_BLOCK_TOKENS != 0);
}

struct backend_config {
    const struct model *model; /* outlives the backend */
    uint32_t n_slots;          /* sequences open at once, ≥ 1 */
    uint32_t n_context;        /* most positions of one sequence */
    uint32_t n_blocks;         /* KV blocks wanted; 0: n_slots · n_context, cut to what memory allows */
    uint32_t max_rows;         /* most rows (ids) of one step */
    uint32_t n_threads;        /* 0: all of cpus, else all cores */
    const int *cpus;           /* cores to pin to, [n_cpus]; n_cpus 0 = unpinned */
    uint32_t n_cpus;
    bool float_activations; /* the plain path: no activation is rounded to 8 bits */
    bool portable;          /* the plain C kernels even where better ones could run */
    /* Called after each layer of a step, from the calling thread: proof of progress. True abandons the step:
     * its sequences stand as before it, and poll says -ECANCELED. May be NULL. */
    bool (*progress)(void *arg);
    void *progress_arg;
};

struct backend_info {
    char device[64];     /* "cpu avx2, 2 threads" */
    uint32_t n_blocks;   /* KV blocks there are */
    size_t block_bytes;  /* of one block, all layers */
    size_t weight_bytes; /* read for one decoded token: all matrices once (embedding: one row) */
    size_t memory_bytes; /* allocated in all */
    uint32_t max_rows;
    bool synchronous; /* steps finish inside submit */
};

struct backend_slot {
    struct sampling sampling;
    uint32_t n_logprobs;     /* 0 = none; n: the sampled id's and n − 1 alternatives */
    const int32_t *stop_ids; /* [n_stop_ids], copied */
    uint32_t n_stop_ids;
    uint32_t end_position; /* the sequence ends (length) when it has this many ids, prompt included */
    /* [n_history] ids that count for the penalty: the prompt, and outputs before a recompute. Read in
     * slot_open only. */
    const int32_t *history;
    uint32_t n_history;
};

enum backend_output {
    BACKEND_OUTPUT_NONE, /* a prefill chunk that is not the last */
    BACKEND_SAMPLE_LAST, /* sample after the last row */
    BACKEND_SAMPLE_ALL,  /* sample after every row: verification of a draft */
    BACKEND_LOGITS_LAST, /* float logits of the last row to `logits` */
    BACKEND_LOGITS_ALL
};

struct backend_row_set { /* one sequence's part of a step */
    uint32_t slot;
    uint32_t position;      /* of the first id */
    uint32_t n_ids;         /* rows; 1 when ids is NULL */
    const int32_t *ids;     /* [n_ids], or NULL: the id that the slot sampled last */
    const uint32_t *blocks; /* [n_blocks] appended to the slot's block table before the step */
    uint32_t n_blocks;
    enum backend_output output;
    float *logits; /* BACKEND_LOGITS_*: [rows][n_vocab] of the host */
    /* A mask over ids for the sampled row, or NULL; such a sequence is not run ahead. */
    const uint32_t *allowed;
};

struct backend_step {
    const struct backend_row_set *sets; /* [n_sets]; all of it is read inside submit only */
    uint32_t n_sets;
};

enum backend_end { BACKEND_RUNNING, BACKEND_END_STOP, BACKEND_END_LENGTH, BACKEND_END_FAULT };

struct backend_result {             /* of one row set, in the order of the step */
    uint32_t n_ids;                 /* sampled: 0, 1, or n_ids of the set */
    const int32_t *ids;             /* a stop id is among them */
    const struct logprob *logprobs; /* [n_ids][n_logprobs], or NULL */
    enum backend_end end; /* tested on the device. FAULT: no finite logit, nothing could be sampled */
};

struct backend_ops {
    const char *name; /* "cpu", "null", … */

    /* -errno with a reason. */
    int (*open)(const struct backend_config *config, struct backend **ret_backend, struct error *err);
    void (*close)(struct backend *backend);
    void (*info)(const struct backend *backend, struct backend_info *ret_info);

    /* Takes a slot into use with an empty block table, or gives it back. 0 or -ENOMEM. */
    int (*slot_open)(struct backend *backend, uint32_t slot, const struct backend_slot *params);
    void (*slot_close)(struct backend *backend, uint32_t slot);

    /* Starts a step. 0; -errno is a failure of the device: the backend is then good for nothing but close. */
    int (*submit)(struct backend *backend, const struct backend_step *step, uint64_t *ret_ticket);

    /* Waits for a step up to timeout_ms (0: only looks). 0 with the results [n_sets], which live until the
     * second submit after this; -EAGAIN: not yet; -ECANCELED: abandoned by progress; other -errno: the device
     * failed, err says how. */
    int (*poll)(struct backend *backend, uint64_t ticket, int timeout_ms,
                const struct backend_result **ret_results, struct error *err);

    /* Forgets positions from `position` on: the block table is cut to ⌈position / 32⌉. No step of the slot is
     * running. */
    void (*trim)(struct backend *backend, uint32_t slot, uint32_t position);

    /* Copies whole blocks to or from host memory, info.block_bytes each, in the backend's own layout. 0 or
     * -errno. */
    int (*blocks_read)(struct backend *backend, const uint32_t *blocks, uint32_t n, void *out);
    int (*blocks_write)(struct backend *backend, const uint32_t *blocks, uint32_t n, const void *in);
};

/* The backends of this build. */
extern const struct backend_ops backend_cpu;  /* worker/cpu */
extern const struct backend_ops backend_null; /* worker/engine: tokens for free, to measure everything else */

/* "auto", "cpu", "null", …: NULL for a name this build does not have. */
const struct backend_ops *backend_by_name(const char *name);

#endif
