/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_BACKEND_H
#define ENGINE_BACKEND_BACKEND_H

/* The engine's interface to hardware: one table of asynchronous functions. The author of a backend needs only
 * this file; tests/unit/engine/fake.c asserts every rule for the caller.
 *
 * STEPS. A step is one call on a ragged batch of prefill chunks, single decodes and drafts to verify. submit
 * starts it and returns its ticket; poll waits for it. Up to info.most_flights steps are in flight, that is,
 * submitted and not yet polled to an end; they run, finish and are polled in the order of submission. A CPU
 * has one flight and finishes it inside submit; a device has two or more, and computes step n + 1 before the
 * host has read step n.
 *
 * SLOTS. A slot is a sequence's state on the device: its position, the id sampled last, whether it has ended,
 * its sampler and penalty counts, its tables of KV blocks. The host knows them only as far as it has read
 * results. So a set without ids continues from wherever earlier flights left the slot. A set with ids gives
 * its position; the host knows that only after it has read every flight that moves the slot.
 *     position   ids whose keys and values are computed: where the next row goes.
 *     last id    sampled and not yet fed; the next row feeds it, unless ids from the host replace it. There
 *                is none after slot_open, trim, and a set that samples nothing.
 *     end        set by the device at a stop id, at the slot's length, or if no logit is finite. Rows of an
 *                ended slot are surplus: they have no result and change nothing except the slot's own
 *                blocks beyond its position.
 *
 * BLOCKS. The host assigns KV blocks; the backend owns their contents. A block holds BACKEND_BLOCK_TOKENS
 * positions of every layer of its group. A group consists of the layers with an equal window, the widest
 * first (kv_groups.h). It has its own pool, numbered from 0, and a table in each slot. The tables of a slot
 * have equal lengths. A slot may write any block in its tables except those that end at or below its first
 * position, which other slots may share (prefix hits). If the first position is inside a block, the rows of
 * this block before it are filled: the host has copied them there. A block must not move from one slot to
 * another, or be copied over, while a ticket that may write it is in flight. In a group with a window, blocks
 * that no later row sees are never read again: the host may give them to other sequences, and if a prefix hit
 * lacks them, the table may have any block number of the group in their place. A backend may keep layers with
 * different windows in one group: its window is then the widest of them.
 *
 * STATES. Instead of KV blocks, recurrent layers have a state of fixed size, which belongs to the slot. It is
 * the state after the ids below the slot's position, and cannot be rewound. So if info.state_bytes is not 0,
 * a sequence can be resumed only from a *snapshot*: a copy of the state, one of info.n_snapshots, which the
 * host numbers and assigns like blocks. A set says after which of its rows the slot's state is copied to
 * which snapshot. A slot that begins at a position other than 0, always a block border, names the snapshot to
 * begin with; at position 0 it begins with zeros. A trim names the snapshot that was taken at its position.
 * After a SAMPLE_ALL that did not accept all ids of its set, the state includes rejected rows: the slot must
 * be trimmed to a position where a snapshot of it was taken before it takes another set. Blocks of attention
 * layers work as in any model.
 *
 * EMBEDDINGS. A slot that embeds samples nothing. It sums the final states of the rows that the model's
 * pooling selects (model/description.h): all of them, the one at position 0, or the last one of the set with
 * BACKEND_SUM_LAST. A ranking head, which the host computes, also reads that last one. A final state is the
 * input of the head: the last layer's output after the output norm. Sums are in double, starting from 0, row
 * by row in the order of positions, so their bits do not depend on how the rows are split into sets, or on
 * the rest of a step. The slot begins at position 0 with nothing filled, is fed by ids only, and is never
 * trimmed. Its sets have BACKEND_OUTPUT_NONE or BACKEND_SUM_LAST.
 *
 * ABANDONED STEPS. If progress returns true, the oldest step in flight, which may be the one that submit is
 * starting, is abandoned: poll returns -ECANCELED. A device that can no longer stop it drops its results. It
 * samples nothing, and every slot in it is spoiled: results of later sets of the slot, including those in
 * flight already, are meaningless, and the host drops them unread. It must submit no more sets of the slot,
 * and may only call slot_close. Positions computed by earlier steps stay valid in their blocks, to be
 * attached elsewhere; those from the abandoned step on are undefined. Slots that were not in the abandoned
 * step are unaffected, also in flights that contain spoiled ones.
 *
 * FAILURE. If submit, poll or a copy returns an error that it does not list, the device has failed: no ticket
 * will end, verdict says why, and only close may be called. A backend never waits forever: poll returns
 * within its timeout, and a device that makes no progress becomes a verdict.
 *
 * MEMORY. The descriptions passed to submit and slot_open may be freed after the call. Only memory marked
 * "until the ticket is done" must stay, unchanged, until poll has ended the ticket.
 *
 * The thread that opened a backend makes every call. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "engine/sampling/sampling.h"
#include "model/description.h"

struct model;
struct weight_store;
struct backend;

#define BACKEND_BLOCK_TOKENS 32
#define BACKEND_MOST_GROUPS  4 /* KV groups of a model */

/* The number of blocks for this many positions. */
static inline uint32_t backend_blocks_for(uint32_t positions)
{
    return positions / BACKEND_BLOCK_TOKENS + (positions % BACKEND_BLOCK_TOKENS != 0);
}

/* The number of snapshots to choose, of `bytes` each: four per slot, at least 16, as long as they take at
 * most an eighth of the room. A conversation uses two, at its ends, and a common beginning one. */
static inline uint32_t backend_snapshots_for(size_t bytes, uint32_t n_slots, uint64_t room)
{
    const uint64_t wanted = 4 * (uint64_t)n_slots < 16 ? 16 : 4 * (uint64_t)n_slots;
    const uint64_t fit = room / 8 / bytes, n = fit < wanted ? fit : wanted;
    return n > 2 ? (uint32_t)n : 2;
}

/* Additional snapshots where drafts are made: a step has only a few drafts. */
static inline uint32_t backend_spares_for(uint32_t n_slots)
{
    return n_slots < 8 ? n_slots : 8;
}

/* ---- opening ---- */

enum backend_kv_type {
    BACKEND_KV_DEFAULT,
    BACKEND_KV_F16,
    BACKEND_KV_BF16,
    BACKEND_KV_Q8,
    BACKEND_KV_F32,
    BACKEND_KV_Q4
};

/* For a backend on the cores of this machine; others ignore all but n_threads, which they use to load
 * weights. */
struct backend_cpu_config {
    uint32_t n_threads; /* 0: all of `cpus`, else all cores; other backends: one */
    const int *cpus;    /* cores to bind to as threads_new() does, [n_cpus]; n_cpus 0 = unbound */
    uint32_t n_cpus;
    bool float_activations; /* the plain path: no activation is rounded to 8 bits */
    bool portable;          /* use the plain C kernels even if faster ones could run */
};

/* For a backend on NVIDIA's GPUs; others ignore it. */
struct backend_cuda_config {
    /* Prompt steps with at least this many rows (BACKEND_LEAST_LIBRARY_ROWS or more) compute the products of
     * their layers with cuBLASLt, in bfloat16; 0: none do. The bits of a row then depend on whether its step
     * has that many rows: -EINVAL together with `invariant`. BACKEND_LIBRARY_MEASURED: for the products, and
     * from the number of rows, for which cuBLASLt was measured to be faster. */
    uint32_t library_rows;
};
#define BACKEND_LIBRARY_MEASURED   1
#define BACKEND_LEAST_LIBRARY_ROWS 65 /* with fewer rows the library cannot be faster */

/* Zero means "the backend's choice" unless stated otherwise. open rejects what the backend cannot do instead
 * of ignoring it: -ENOTSUP for a KV type or a weight store, -ENODEV for a device. */
struct backend_config {
    /* Must outlive the backend. Its file need not: contents and names of tensors are read only inside open
     * (model_let_go). */
    const struct model *model;
    const uint32_t *devices; /* [n_devices] numbers of the devices to use; n_devices 0: the first */
    uint32_t n_devices;
    uint32_t n_slots;   /* sequences open at once, ≥ 1 */
    uint32_t n_context; /* most positions of one sequence, ≥ 1 */
    /* A device that decodes more sequences in hardly more time may have up to this many slots instead of
     * n_slots, provided that its KV blocks suffice for that many sequences of n_context, or of the length
     * that it expects: see info.n_slots. 0, or less than n_slots: n_slots. */
    uint32_t most_slots;
    /* Wanted KV blocks of each group; 0: those for n_slots sequences of n_context (kv_group_wants), as far as
     * memory allows. */
    uint32_t n_blocks;
    uint32_t n_snapshots; /* wanted snapshots of states; 0: as many as memory and n_slots suggest. None
                           * without states */
    bool drafts;          /* sequences get drafts: adds backend_spares_for(n_slots) snapshots */
    uint32_t n_sharers;   /* processes that take KV blocks from the same memory, including this one; 0 means
                           * 1. If n_blocks is 0, each uses at most its share. */
    /* Bytes of this machine's memory that the n_sharers use together (a pool's prefix store); they are
     * already allocated and count once. */
    size_t shared_bytes;
    uint32_t max_rows; /* most rows (ids) of one step; below n_slots: n_slots */
    enum backend_kv_type kv_type;
    /* A sequence's logits are bit-identical whatever else is in a step, and however its prompt is split.
     * Backends that always compute this way ignore it. */
    bool invariant;
    bool profile; /* measure each kernel (ops.profile), which costs time. -ENOTSUP if that is impossible */
    /* Packed weights that processes of one machine share (engine/backend/weight_store.h); it must outlive the
     * backend. NULL: private memory. Only for a backend with weight_packing. */
    struct weight_store *weights;
    struct backend_cpu_config cpu;
    struct backend_cuda_config cuda;
    /* Called while the backend opens with notes for the operator, one line at a time. NULL: not wanted. */
    void (*say)(void *arg, const char *line);
    void *say_arg;
    /* Proves progress, and can stop a step. Called on the caller's thread inside submit or poll: after each
     * layer if the device can stop there, otherwise at least once in each poll that waits. Returning true
     * abandons the oldest step in flight. Also called while a backend opens, after each part of the weights;
     * its result is then ignored. May be NULL. */
    bool (*progress)(void *arg);
    void *progress_arg;
    /* Called on the caller's thread while the backend opens, with the bytes of weights loaded so far. `total`
     * is the same each time; `done` never decreases and reaches total. Not called if the weights are already
     * loaded in shared memory. May be NULL. */
    void (*loaded)(void *arg, uint64_t done, uint64_t total);
    void *loaded_arg;
};

/* Most rows of a step: as configured, or the backend's own default, but at least one row per slot. */
static inline uint32_t backend_rows_for(const struct backend_config *config, uint32_t by_default)
{
    uint32_t rows = config->max_rows ? config->max_rows : by_default;
    return rows < config->n_slots ? config->n_slots : rows;
}

struct backend_group { /* layers that share tables of blocks */
    uint32_t n_layers;
    uint32_t window;    /* positions that a row sees, its own included; 0: all */
    uint32_t n_blocks;  /* in its pool: numbers 0 … n_blocks − 1 */
    size_t block_bytes; /* of one block, all layers of the group */
};

/* The first block of a group that the row at `position` sees; a sequence no longer needs those before it. */
static inline uint32_t backend_first_block(const struct backend_group *group, uint32_t position)
{
    bool all = group->window == 0 || position < group->window;
    return all ? 0 : (position - group->window + 1) / BACKEND_BLOCK_TOKENS;
}

/* Most blocks of a group that a sequence of this many positions holds at once. With a window: those that a
 * row sees, the next one, and the one before, which is released when the next is full. */
static inline uint32_t backend_held_blocks(const struct backend_group *group, uint32_t positions)
{
    uint32_t all = backend_blocks_for(positions), most = backend_blocks_for(group->window) + 2;
    return group->window > 0 && most < all ? most : all;
}

struct backend_info {
    char device[64];                                  /* "cpu avx2, 2 threads" */
    uint32_t n_groups;                                /* ≥ 1 */
    struct backend_group groups[BACKEND_MOST_GROUPS]; /* the first has the widest window */
    enum backend_kv_type kv_type;
    /* Ids of the layouts of KV blocks and of packed weights. Backends with equal ids for a model can exchange
     * them; an id changes whenever order, type or rounding change. 0: no exchange. */
    uint64_t kv_layout, weight_layout;
    size_t state_bytes;   /* of a slot's state, and of a snapshot; 0: the model has no recurrent layers */
    uint32_t n_snapshots; /* numbers 0 … n_snapshots − 1; 0 without states */
    size_t weight_bytes;  /* read for one decoded token: all matrices once (embedding: one row) */
    size_t memory_bytes;  /* allocated in total */

    uint32_t n_slots;      /* as configured, or more, up to config.most_slots */
    uint32_t most_flights; /* ≥ 1. 1: steps finish inside submit */
    uint32_t most_stop_ids;
    uint32_t max_rows;
    uint32_t n_embedding; /* numbers of a final state, for slots that embed; 0: not supported */

    /* The measurements by which kernels were chosen, in one line, from choices_summarize (choices/choices.h);
     * "": none. And a digest of the choices that affect ids; 0: none do. */
    char choices[128];
    uint64_t choices_arithmetic;

    /* The best steps for this device. */
    uint32_t step_ms;     /* budget of a step while sequences decode, ≥ 1 */
    uint32_t alone_ms;    /* budget of a step that only prefills: it bounds the wait of the next request */
    uint32_t chunk_least; /* rows of prefill below which a step saves no time */
    uint32_t chunk_most;  /* most rows of prefill beside sequences that decode */
};

/* Bytes of all its KV blocks. */
static inline uint64_t backend_kv_bytes(const struct backend_info *info)
{
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < info->n_groups; g++)
        bytes += (uint64_t)info->groups[g].n_blocks * info->groups[g].block_bytes;
    return bytes;
}

/* What a backend has allocated, and launched since it was opened; 0: none, or not known. */
struct backend_usage {
    uint64_t weights, workspace;        /* bytes of info.memory_bytes, besides KV blocks and states */
    uint64_t staging;                   /* bytes of pinned host memory */
    uint64_t device_free, device_total; /* bytes of the device's memory, for all processes */
    uint64_t launches;                  /* of kernels, one by one */
    uint64_t recorded;                  /* launches of recorded steps */
    uint64_t refused;                   /* sizes of decodes that the driver refused to record */
    uint64_t library_products;          /* made by a library instead of our kernels */
    uint64_t padding_rows;              /* rows computed only as padding of steps */
};

/* ---- slots ---- */

struct backend_slot {
    struct sampling sampling;
    uint32_t n_logprobs;     /* 0 = none; n: for the sampled id and n − 1 alternatives */
    const int32_t *stop_ids; /* [n_stop_ids], at most info.most_stop_ids */
    uint32_t n_stop_ids;
    uint32_t stops_from;   /* no stop id is sampled at an index before this; 0: no restriction */
    uint32_t end_position; /* the sequence ends (length) when it has this many ids, prompt included */
    /* Positions already filled in the first blocks of its tables (a prefix hit); 0: none. The slot begins
     * there, and never writes a block that they fill. A multiple of BACKEND_BLOCK_TOKENS if the model has
     * states or the backend has no copy_block. */
    uint32_t position;
    uint32_t snapshot; /* to begin with, taken at `position`; for models with states, if position is not 0 */
    /* [n_history] ids that penalties, DRY and bad words take into account: the prompt, then earlier outputs
     * (after a recompute or a move). The first n_prompt are the prompt, which only the repetition penalty
     * counts. The slot counts everything sampled from now on. */
    const int32_t *history;
    uint32_t n_history;
    uint32_t n_prompt;
    bool embeds; /* sums final states; not allowed if info.n_embedding is 0 */
};

/* ---- steps ---- */

enum backend_output {
    BACKEND_OUTPUT_NONE, /* a prefill chunk that is not the last */
    BACKEND_SAMPLE_LAST, /* sample after the last row */
    /* Verification: sample after every row, up to the first sample that differs from the set's next id. Row i
     * is sampled as if ids 1 … i had been sampled before it. One row only if sampling_needs_history. */
    BACKEND_SAMPLE_ALL,
    BACKEND_LOGITS_LAST, /* float logits of the last row to `logits` */
    BACKEND_LOGITS_ALL,
    BACKEND_SUM_LAST /* the sums of a slot that embeds: this set has its prompt's last rows */
};

struct backend_blocks { /* appended to one of a slot's tables before the step */
    const uint32_t *ids;
    uint32_t n;
    uint32_t told; /* blocks already in the table: including those attached for a prefix hit, without those
                    * that trim has cut */
};

struct backend_row_set { /* one sequence's part of a step; a slot is in at most one set of a step */
    uint32_t slot;
    uint32_t n_ids; /* rows, ≥ 1; 1 if ids is NULL */
    /* [n_ids], or NULL: the id that the slot sampled last, at its current position. A flight that samples the
     * slot may then still be under way. With ids, every flight that samples the slot must have been read; the
     * first id replaces the slot's last one. */
    const int32_t *ids;
    /* Position of the first id. With ids: the slot's own. Without: the largest that the slot can have after
     * all flights, which is exact unless one of them is a SAMPLE_ALL. */
    uint32_t position;
    enum backend_output output;
    /* BACKEND_LOGITS_*: [rows][n_vocab] floats in host memory, which the host must not touch until the ticket
     * is done. */
    float *logits;
    /* Masks over ids, one for each sampled row, or NULL: [sampled rows][⌈n_vocab / 32⌉], bit id % 32 of word
     * id / 32; read until the ticket is done. No set of the slot may be in flight when one with masks is
     * submitted: masked sequences do not run ahead. */
    const uint32_t *allowed;
    /* NULL: the masks are ready. Otherwise they are still being made, in parallel to the step: the backend
     * calls this with await_arg before it reads them, from any threads and any number of times; it returns
     * when they are ready. */
    void (*await)(void *arg);
    void *await_arg;
    struct backend_blocks
        blocks[BACKEND_MOST_GROUPS]; /* [info.n_groups]: the tables then cover position + n_ids */
    /* After this many rows of the set the slot's state is copied to a snapshot; 0: no copy. Surplus rows
     * leave it with undefined contents. */
    uint32_t snapshot_rows, snapshot;
};

/* The number of rows in a set that a slot that embeds sums, from *ret_first on. */
static inline uint32_t backend_pooled_rows(enum pooling_kind pooling, const struct backend_row_set *set,
                                           uint32_t *ret_first)
{
    const bool of_last = pooling == POOLING_LAST || pooling == POOLING_RANK;
    const bool last = set->output == BACKEND_SUM_LAST;
    *ret_first = of_last ? set->n_ids - 1 : 0;
    return of_last ? last : pooling == POOLING_FIRST ? set->position == 0 : set->n_ids;
}

struct backend_step {
    const struct backend_row_set *sets; /* [n_sets], ≥ 1 */
    uint32_t n_sets;
};

enum backend_end { BACKEND_RUNNING, BACKEND_END_STOP, BACKEND_END_LENGTH, BACKEND_END_FAULT };

/* The result of one row set, in the order of the step. A set with n rows moves its slot's position by n, a
 * SAMPLE_ALL by n_accepted + 1. A surplus set has no ids, and reports the slot's end. */
struct backend_result {
    /* The sampled ids; the first n_accepted repeat the set's own ids 1 … n_accepted. SAMPLE_LAST gives 1,
     * SAMPLE_ALL n_accepted + 1, so 1 if the draft's first id was wrong. Fewer at an end: nothing follows
     * a stop id, which is included, the last id of the length, or a row without a finite logit. */
    uint32_t n_ids;
    const int32_t *ids;
    uint32_t n_accepted;
    const struct logprob *logprobs; /* [n_ids][n_logprobs], or NULL */
    enum backend_end end;           /* after them. FAULT: no finite logit, or a mask without an id */
    const double *sums; /* SUM_LAST: [info.n_embedding], valid at most until the slot is closed; else NULL */
};

/* What is recorded about steps: nothing; facts; or facts and each kernel separately, for `profile`. The last
 * is slower: a GPU then launches each kernel alone. */
enum backend_watch { BACKEND_WATCH_NOTHING, BACKEND_WATCH_FACTS, BACKEND_WATCH_KERNELS };

/* Facts about the step that was read last; 0: not known. */
struct backend_facts {
    uint32_t padding_rows; /* computed only as padding; known for every step */
    /* If the backend is watched: time until the rows were embedded; in the layers and the head; sampling. */
    uint64_t embed_ns, layers_ns, sample_ns;
};

/* ---- copies ---- */

struct backend_copy {
    uint32_t group;         /* info.n_groups: snapshots */
    const uint32_t *blocks; /* [n] */
    uint32_t n;
    /* Whole blocks, [n][group's block_bytes, or state_bytes], in the backend's own layout. Must remain valid
     * until the ticket is done and, for a copy into blocks, unchanged. */
    void *host;
};

/* ---- profile ---- */

/* Measurements of a kernel, or a phase of a pass. 0: not measured here. */
#define BACKEND_KERNEL_NAME 48
struct backend_kernel {
    char name[BACKEND_KERNEL_NAME];
    uint64_t n;     /* runs */
    uint64_t ns;    /* time of all runs */
    uint64_t bytes; /* weights, keys and values to read, once per run */
    uint64_t macs;  /* multiply-adds */
    /* On an emulated device, which counts but measures no time: */
    uint64_t n_blocks;     /* of threads */
    uint64_t n_threads;    /* most threads of a block */
    uint64_t shared_bytes; /* most shared memory of a block */
    uint64_t loaded;       /* bytes of streaming loads */
    uint64_t sectors;      /* transactions of warps with its memory, 32 bytes each */
    uint64_t asked;        /* bytes of these that threads used */
    uint64_t passes; /* of warps over shared memory: without conflicts one, for 8 and 16 bytes two and four */
    uint64_t conflicts; /* passes caused by bank conflicts */
};

/* ---- the table ---- */

struct backend_ops {
    const char *name; /* "cpu", "null", … */

    /* It computes in the process's own memory and threads, and opens no files or devices. Only workers with
     * such a backend are confined (worker/start/sandbox.h): drivers open files at any time. */
    bool self_contained;

    /* Identifies its way of packing weights. NULL: it cannot pack them into shared memory. */
    uint64_t (*weight_packing)(void);

    /* -EINVAL names the traits of the model that this backend does not support (model/traits.h); open calls
     * it too. NULL: any model is supported. */
    int (*check)(const struct model *model, struct error *err);

    /* 0, or -errno with a reason that states both the requested and the available amount. */
    int (*open)(const struct backend_config *config, struct backend **ret_backend, struct error *err);
    /* Drops flights and copies under way; after it returns, the host may free their buffers. */
    void (*close)(struct backend *backend);
    void (*info)(const struct backend *backend, struct backend_info *ret_info);
    /* May query the device, which takes microseconds. NULL: nothing is known. */
    void (*usage)(struct backend *backend, struct backend_usage *ret_usage);

    /* Opens a slot with empty tables. 0; -EINVAL: it is open, or there are too many stop ids; -ENOMEM. */
    int (*slot_open)(struct backend *backend, uint32_t slot, const struct backend_slot *params);
    /* Closes it; no set of it may be in flight. Does nothing for a closed slot. */
    void (*slot_close)(struct backend *backend, uint32_t slot);

    /* Starts a step; at most info.most_flights are in flight. 0. On failure nothing was done: -EINVAL: the
     * step breaks a rule that the backend can check; -ENOMEM: the device works, and can take a smaller
     * step. */
    int (*submit)(struct backend *backend, const struct backend_step *step, uint64_t *ret_ticket);

    /* Waits for a ticket up to timeout_ms (0: does not wait). Tickets of steps are polled in the order of
     * submission, each to its end exactly once. 0 with the results [n_sets], valid until the next submit (a
     * copy has none); -EAGAIN: not done yet; -ECANCELED: the step was abandoned; -EINVAL: no such ticket is
     * open. */
    int (*poll)(struct backend *backend, uint64_t ticket, int timeout_ms,
                const struct backend_result **ret_results, struct error *err);

    /* Sets what is recorded from the next step on. FACTS may be requested from the progress hook, inside a
     * step. 0; on -ENOTSUP, -ENOMEM or a fault nothing changes. NULL: facts, if the backend has any, are
     * always recorded, and kernels cannot be measured. */
    int (*watch)(struct backend *backend, enum backend_watch what);
    /* About the step that was last polled to its end. NULL: this backend has none. */
    void (*facts)(const struct backend *backend, struct backend_facts *ret_facts);

    /* Cuts the sequence to its first `position` ids, and each table to ⌈position / 32⌉ blocks; clears its end
     * and its last id. Penalty counts stay. No set of the slot may be in flight, and `position` must lie
     * between its first position and its current one. For a group with a window, the host must still hold the
     * blocks that the row at `position` sees. In a model with states, `snapshot` was taken of the slot at
     * this position; the slot's state becomes a copy of it, or zeros at position 0. If there is no such
     * snapshot (`snapshot` ≥ info.n_snapshots), the slot can only be closed afterwards. Other models ignore
     * it. */
    void (*trim)(struct backend *backend, uint32_t slot, uint32_t position, uint32_t snapshot);

    /* Copies blocks to or from the host, in order with the steps: a copy out sees the writes of all steps
     * submitted before it, and a step submitted after a copy in sees the copy. Its ticket is separate: it may
     * end before or after those of steps, and does not count as a flight. 0; -EINVAL: no such block or group;
     * -EAGAIN: too many are under way, poll one first. */
    int (*copy_out)(struct backend *backend, const struct backend_copy *copy, uint64_t *ret_ticket);
    int (*copy_in)(struct backend *backend, const struct backend_copy *copy, uint64_t *ret_ticket);

    /* Copies a block of a group over another, in order with the steps: the copy has the writes of all steps
     * submitted before it, and steps submitted after it see it. No ticket. Steps in flight may write rows of
     * `from`, whose copies are then undefined; none may write `to`. 0; -EINVAL: no such block or group. NULL:
     * slots begin at block borders. */
    int (*copy_block)(struct backend *backend, uint32_t group, uint32_t from, uint32_t to);

    /* 0: the device works. Otherwise -errno with the reason, the same from then on: -EIO: another process
     * may try again; -ENODEV: the device is gone for every process; -ETIMEDOUT: it makes no progress. Never
     * waits, and may be called at any time. */
    int (*verdict)(struct backend *backend, struct error *err);

    /* With config.profile, or while kernels are watched: the kernels that ran since then, or since the last
     * call, in no particular order. Valid until the next call. NULL: profiling is not supported. */
    uint32_t (*profile)(struct backend *backend, const struct backend_kernel **ret_kernels);
};

/* The backends of every build; backends.h finds them and others by name. */
extern const struct backend_ops backend_cpu;  /* cpu */
extern const struct backend_ops backend_null; /* engine: tokens without computation, to measure the rest */

#endif
