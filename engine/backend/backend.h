/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_BACKEND_H
#define ENGINE_BACKEND_BACKEND_H

/* What the engine needs from hardware: one table of asynchronous functions. The author of a backend needs
 * only this file; tests/unit/engine/fake.c asserts each of its rules that binds the caller.
 *
 * STEPS. A step is one call on a ragged batch: prefill chunks, single decodes and the verification of drafts
 * alike. submit starts it and gives its ticket; poll waits for it. Up to info.most_flights steps are in
 * flight, that is, submitted and not yet polled to an end; they run, finish and are polled in the order of
 * submission. A CPU has one flight and finishes it inside submit; a device has two or more, and computes
 * step n + 1 before the host has read step n.
 *
 * SLOTS. A slot is a sequence as the device sees it, and lives there: its position, the id sampled last,
 * whether it has ended, its sampler and penalty counts, its tables of KV blocks. The host knows them only as
 * far as it has read results. So a set without ids continues from wherever earlier flights left the slot; a
 * set with ids says where it begins, and the host can say so only when it has read everything that moves the
 * slot.
 *     position   ids whose keys and values are computed: where the next row goes.
 *     last id    sampled and not yet fed; the next row feeds it, or ids of the host take its place. There is
 *                none after slot_open, trim, and a set that samples nothing.
 *     end        set by the device at a stop id, at the slot's length, or where no logit is finite. Rows of
 *                an ended slot are surplus: they have no result, and change nothing but the contents of the
 *                slot's own blocks beyond its position.
 *
 * BLOCKS. The host decides which KV blocks there are and who holds them; the backend owns what is in them. A
 * block holds BACKEND_BLOCK_TOKENS positions of every layer of its group. Groups are the layers with an equal
 * window, the widest first (kv_groups.h); each has its own pool, numbered from 0, and a slot a table for
 * each. The tables of a slot are equally long. A slot may write any block it was told of but those below its
 * first position, which others may hold too (prefix hits). A block must not go from one slot to another, or
 * be copied over, while a ticket that may write it is in flight. In a group with a window, blocks wholly out
 * of that of every row to come are never read again: the host may give them to others, and where a prefix hit
 * lacks them, any number of the group stands for them in the table. A backend may keep layers with different
 * windows in one group: its window is then the widest of them.
 *
 * STATES. Recurrent layers have no KV blocks; what they keep of a sequence has one size and belongs to the
 * slot. It is the state behind the slot's position, and cannot be turned back. So if info.state_bytes is not
 * 0, a sequence can be resumed only from a *snapshot*: a copy of the state at a border of blocks, one of
 * info.n_snapshots, which the host numbers and hands out like blocks. A set says behind which of its rows the
 * slot's state goes to which snapshot. A slot that begins at a position other than 0 says which snapshot it
 * begins with; at position 0 it begins with zeros. No set is a SAMPLE_ALL with more than one id, and trim
 * goes to 0. Attention's blocks are as in any model.
 *
 * EMBEDDINGS. A slot that embeds samples nothing. It sums the final states of the rows that the model's
 * pooling takes (model/description.h): of all, of the one at position 0, or of the last one of the set with
 * BACKEND_SUM_LAST. A final state is what the head would read: the last layer's output after the output norm.
 * Sums are in double, from 0, in the order of positions, each row by itself: so the sums are the same bits
 * however its rows are cut into sets and whatever else a step has. It begins at position 0 with nothing
 * filled, is fed by ids alone, and never trimmed. Its sets have BACKEND_OUTPUT_NONE or BACKEND_SUM_LAST.
 *
 * ABANDONED STEPS. When progress says so the oldest step in flight, the one that submit is starting included,
 * is abandoned: poll gives -ECANCELED. A device that cannot stop it any more drops what it makes. It samples
 * nothing, and every slot in it is spoiled: of later sets for it, those in flight already included,
 * results mean nothing and the host drops them unread; it must submit no more of them, and slot_close is all
 * that such a slot is good for. Positions that its earlier steps computed stay valid in their blocks, to be
 * attached elsewhere; those from the abandoned step on are undefined. Slots that were not in the abandoned
 * step are untouched, also in flights that share them with spoiled ones.
 *
 * FAILURE. When submit, poll or a copy gives any other error than those it lists, the device has failed: no
 * ticket will come to an end, verdict says why, and close is all that is left. A backend never waits without
 * end: poll returns within its timeout, and a device that stands still becomes a verdict.
 *
 * MEMORY. submit and slot_open read the descriptions of steps and slots, which may be freed after the call.
 * Only what says "until the ticket is done" must live, unchanged, until poll has given the ticket an end.
 *
 * The one thread that opened a backend makes every call. */

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

/* Blocks that so many positions take. */
static inline uint32_t backend_blocks_for(uint32_t positions)
{
    return positions / BACKEND_BLOCK_TOKENS + (positions % BACKEND_BLOCK_TOKENS != 0);
}

/* ---- opening ---- */

enum backend_kv_type { BACKEND_KV_DEFAULT, BACKEND_KV_F16, BACKEND_KV_BF16, BACKEND_KV_Q8 };

/* For a backend that computes on the cores of this machine; others ignore it. */
struct backend_cpu_config {
    uint32_t n_threads; /* 0: all of cpus, else all cores */
    const int *cpus;    /* cores to pin to, [n_cpus]; n_cpus 0 = unpinned */
    uint32_t n_cpus;
    bool float_activations; /* the plain path: no activation is rounded to 8 bits */
    bool portable;          /* the plain C kernels even where better ones could run */
};

/* For a backend that computes on GPUs of NVIDIA; others ignore it. */
struct backend_cuda_config {
    /* Steps that read a prompt, of so many rows, at least BACKEND_LEAST_LIBRARY_ROWS, make the products of
     * their layers with cuBLASLt, in bfloat16; 0: none do. A row then has other bits in such a step than in
     * one with fewer rows: -EINVAL together with `invariant`. */
    uint32_t library_rows;
};
#define BACKEND_LEAST_LIBRARY_ROWS 65 /* with fewer it cannot win */

/* Zero means "as the backend likes" unless it says otherwise. What a backend cannot do is refused by open,
 * never ignored: -ENOTSUP for a KV type or a weight store, -ENODEV for a device. */
struct backend_config {
    /* Outlives the backend; its file need not: what the tensors hold, and their names, are read inside open
     * only (model_let_go). */
    const struct model *model;
    const uint32_t *devices; /* [n_devices] numbers of the devices to use; n_devices 0: the first */
    uint32_t n_devices;
    uint32_t n_slots;   /* sequences open at once, ≥ 1 */
    uint32_t n_context; /* most positions of one sequence, ≥ 1 */
    /* A device that decodes more sequences in hardly more time may have up to so many slots instead of
     * n_slots, as long as it has KV blocks for as many sequences of n_context, or as it expects them:
     * info.n_slots says how many. 0, or less than n_slots: n_slots it is. */
    uint32_t most_slots;
    /* KV blocks wanted, so many of each group; 0: what n_slots sequences of n_context hold of it
     * (kv_group_wants), cut to what memory allows. */
    uint32_t n_blocks;
    uint32_t n_snapshots; /* snapshots of states wanted; 0: as many as memory and n_slots suggest. Without
                           * states there are none */
    uint32_t n_sharers;   /* processes that take their KV blocks from the same memory, this one included; 0
                           * is 1. What n_blocks 0 allows itself is one part of so many. */
    /* Bytes of this machine's memory that the n_sharers have together besides, the prefix store of a pool;
     * they are taken already, and count once. */
    size_t shared_bytes;
    uint32_t max_rows; /* most rows (ids) of one step; below n_slots: n_slots */
    enum backend_kv_type kv_type;
    /* A sequence's logits are bit-identical whatever else is in a step, and however its prompt is split. A
     * backend that always computes this way ignores it. */
    bool invariant;
    bool profile; /* what each kernel does is measured (ops.profile), which costs time. -ENOTSUP where it
                     cannot be */
    /* Packed weights that processes of one machine share (engine/backend/weight_store.h); it outlives the
     * backend. NULL: memory of its own. Not for a backend without weight_packing. */
    struct weight_store *weights;
    struct backend_cpu_config cpu;
    struct backend_cuda_config cuda;
    /* Notes for the operator about how it opened, one line at a time, while it opens. NULL: not wanted. */
    void (*say)(void *arg, const char *line);
    void *say_arg;
    /* Proof of progress, and the way to stop. Called by the calling thread, from inside submit or poll: after
     * each layer where the device can stop there, else at least once in each poll that waits. True abandons
     * the oldest step in flight. While a backend opens, after each part of the weights that is where it
     * belongs; what it says then means nothing. May be NULL. */
    bool (*progress)(void *arg);
    void *progress_arg;
    /* While a backend opens, by the calling thread: how many bytes of the weights are where they belong, of
     * `total`, which is the same each time; `done` never falls, and is total at the end. Not called where
     * they are there already, in memory that processes share. May be NULL. */
    void (*loaded)(void *arg, uint64_t done, uint64_t total);
    void *loaded_arg;
};

/* Most rows of a step: as configured, or by the backend's own default, and a row for each slot at least. */
static inline uint32_t backend_rows_for(const struct backend_config *config, uint32_t by_default)
{
    uint32_t rows = config->max_rows ? config->max_rows : by_default;
    return rows < config->n_slots ? config->n_slots : rows;
}

struct backend_group { /* layers that share tables of blocks */
    uint32_t n_layers;
    uint32_t window;    /* positions that a row sees, its own included; 0: all */
    uint32_t n_blocks;  /* KV blocks there are: numbers 0 … n_blocks − 1 */
    size_t block_bytes; /* of one block, all layers of the group */
};

/* The first block of a group that the row at `position` sees: with those before it a sequence has done. */
static inline uint32_t backend_first_block(const struct backend_group *group, uint32_t position)
{
    bool all = group->window == 0 || position < group->window;
    return all ? 0 : (position - group->window + 1) / BACKEND_BLOCK_TOKENS;
}

/* Most blocks of a group that a sequence of so many positions has to hold at once: with a window, those that
 * a row sees, the one before that is given back when the next is full, and the next. */
static inline uint32_t backend_held_blocks(const struct backend_group *group, uint32_t positions)
{
    uint32_t all = backend_blocks_for(positions), most = backend_blocks_for(group->window) + 2;
    return group->window > 0 && most < all ? most : all;
}

struct backend_info {
    char device[64];                                  /* "cpu avx2, 2 threads" */
    uint32_t n_groups;                                /* ≥ 1 */
    struct backend_group groups[BACKEND_MOST_GROUPS]; /* the first sees as much as any */
    enum backend_kv_type kv_type;
    /* What bytes of KV blocks and of packed weights mean. Backends with equal ids for one model may exchange
     * them; an id changes with any change of order, type or rounding. 0: they cannot be exchanged. */
    uint64_t kv_layout, weight_layout;
    size_t state_bytes;   /* of a slot's state, and of a snapshot; 0: the model has no recurrent layers */
    uint32_t n_snapshots; /* numbers 0 … n_snapshots − 1; 0 where there are no states */
    size_t weight_bytes;  /* read for one decoded token: all matrices once (embedding: one row) */
    size_t memory_bytes;  /* allocated in all */

    uint32_t n_slots;      /* as configured, or more, up to config.most_slots */
    uint32_t most_flights; /* ≥ 1. 1: steps finish inside submit */
    uint32_t most_stop_ids;
    uint32_t max_rows;
    uint32_t n_embedding; /* numbers of a final state, for slots that embed; 0: there can be none */

    /* How steps are best made on this device. */
    uint32_t step_ms;     /* budget of a step while sequences decode, ≥ 1 */
    uint32_t alone_ms;    /* of one that only prefills: it bounds the wait of the next request */
    uint32_t chunk_least; /* rows of prefill below which a step saves no time */
    uint32_t chunk_most;  /* rows of prefill beside sequences that decode */
};

/* Bytes of all its KV blocks. */
static inline uint64_t backend_kv_bytes(const struct backend_info *info)
{
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < info->n_groups; g++)
        bytes += (uint64_t)info->groups[g].n_blocks * info->groups[g].block_bytes;
    return bytes;
}

/* ---- slots ---- */

struct backend_slot {
    struct sampling sampling;
    uint32_t n_logprobs;     /* 0 = none; n: the sampled id's and n − 1 alternatives */
    const int32_t *stop_ids; /* [n_stop_ids], at most info.most_stop_ids */
    uint32_t n_stop_ids;
    uint32_t end_position; /* the sequence ends (length) when it has this many ids, prompt included */
    /* Positions that the first blocks it is told of hold already: a multiple of BACKEND_BLOCK_TOKENS; 0
     * without a prefix hit. The slot begins there, and never writes those blocks. */
    uint32_t position;
    uint32_t snapshot; /* that it begins with, taken at `position`; with states, and position not 0 */
    /* [n_history] ids that penalties, DRY and bad words look at: the prompt, then what was sampled of it
     * before (a recompute, a move). The first n_prompt are prompt, which counts for the repetition penalty
     * only. Everything sampled from now on is counted by the slot. */
    const int32_t *history;
    uint32_t n_history;
    uint32_t n_prompt;
    bool embeds; /* final states are summed; not where info.n_embedding is 0 or the pooling is a rank */
};

/* ---- steps ---- */

enum backend_output {
    BACKEND_OUTPUT_NONE, /* a prefill chunk that is not the last */
    BACKEND_SAMPLE_LAST, /* sample after the last row */
    /* Verification: sample after every row, up to the first sample that is not the set's next id. Row i is
     * sampled as if ids 1 … i had been sampled before it. Of one row only where sampling_needs_history. */
    BACKEND_SAMPLE_ALL,
    BACKEND_LOGITS_LAST, /* float logits of the last row to `logits` */
    BACKEND_LOGITS_ALL,
    BACKEND_SUM_LAST /* the sums of a slot that embeds: this set has its prompt's last rows */
};

struct backend_blocks { /* appended to one of a slot's tables before the step */
    const uint32_t *ids;
    uint32_t n;
    uint32_t told; /* blocks that the table has before these: all that the slot was told and no trim has cut,
                    * those attached for a prefix hit included */
};

struct backend_row_set { /* one sequence's part of a step; a slot is in one set of a step at most */
    uint32_t slot;
    uint32_t n_ids; /* rows, ≥ 1; 1 when ids is NULL */
    /* [n_ids], or NULL: the id that the slot sampled last, at the position where it stands. A flight with a
     * sample of the slot may then still be under way. With ids, every sampling flight of it has been read;
     * the first id takes the place of the slot's last one. */
    const int32_t *ids;
    /* Of the first id: the slot's own when ids are given; else the most it can be when all flights are read,
     * which is exact unless a SAMPLE_ALL is among them. */
    uint32_t position;
    enum backend_output output;
    /* BACKEND_LOGITS_*: [rows][n_vocab] floats of the host; written, and not to be touched, until the ticket
     * is done. */
    float *logits;
    /* Masks over ids, one for each sampled row, or NULL: [sampled rows][⌈n_vocab / 32⌉], bit id % 32 of word
     * id / 32; read until the ticket is done. Nothing of a slot is in flight when a set with masks is
     * submitted: a masked sequence is not run ahead. */
    const uint32_t *allowed;
    /* NULL: the masks are there. Else they are being made beside the step: to be called with await_arg before
     * they are read, by any threads and however often; it returns when they are there, and waits until then.
     */
    void (*await)(void *arg);
    void *await_arg;
    struct backend_blocks
        blocks[BACKEND_MOST_GROUPS]; /* [info.n_groups]: then position + n_ids are covered */
    /* Behind so many rows of it, where a block ends, the slot's state goes to a snapshot; 0: it does not. A
     * surplus row may leave anything there. */
    uint32_t snapshot_rows, snapshot;
};

/* How many rows of a set of a slot that embeds are summed, from *ret_first on. */
static inline uint32_t backend_pooled_rows(enum pooling_kind pooling, const struct backend_row_set *set,
                                           uint32_t *ret_first)
{
    const bool last = set->output == BACKEND_SUM_LAST;
    *ret_first = pooling == POOLING_LAST ? set->n_ids - 1 : 0;
    return pooling == POOLING_LAST ? last : pooling == POOLING_FIRST ? set->position == 0 : set->n_ids;
}

struct backend_step {
    const struct backend_row_set *sets; /* [n_sets], ≥ 1 */
    uint32_t n_sets;
};

enum backend_end { BACKEND_RUNNING, BACKEND_END_STOP, BACKEND_END_LENGTH, BACKEND_END_FAULT };

/* Of one row set, in the order of the step. A set with n rows moves its slot's position by n, a SAMPLE_ALL by
 * n_accepted + 1. A surplus set gives no ids and the end that the slot has. */
struct backend_result {
    /* Ids that the sequence has more: sampled ones, of which the first n_accepted are the set's own ids 1 …
     * n_accepted again. SAMPLE_LAST gives 1; SAMPLE_ALL n_accepted + 1, so 1 when the draft was wrong at
     * once. Fewer at an end: nothing follows a stop id, which is among them, nor the last id of the length,
     * nor a row without a finite logit. */
    uint32_t n_ids;
    const int32_t *ids;
    uint32_t n_accepted;
    const struct logprob *logprobs; /* [n_ids][n_logprobs], or NULL */
    enum backend_end end;           /* after them. FAULT: no finite logit, or a mask without an id */
    const double *sums; /* SUM_LAST: [info.n_embedding], until the slot is closed at most; else NULL */
};

/* ---- copies ---- */

struct backend_copy {
    uint32_t group;         /* info.n_groups: snapshots */
    const uint32_t *blocks; /* [n] */
    uint32_t n;
    /* Whole blocks, [n][group's block_bytes, or state_bytes], in the backend's own layout; must live until
     * the ticket is done, for a copy into blocks unchanged. */
    void *host;
};

/* ---- profile ---- */

/* What a kernel, or a phase of a pass, did while its backend was profiled. 0: not measured here.
 */
#define BACKEND_KERNEL_NAME 48
struct backend_kernel {
    char name[BACKEND_KERNEL_NAME];
    uint64_t n;     /* times it ran */
    uint64_t ns;    /* that they took */
    uint64_t bytes; /* of weights, keys and values that they had to read, once each time */
    uint64_t macs;  /* products that they added up */
    /* Of an emulated device, which counts and measures no time: */
    uint64_t n_blocks;     /* of threads */
    uint64_t n_threads;    /* of a block, at most */
    uint64_t shared_bytes; /* of its memory, at most */
    uint64_t loaded;       /* bytes of streaming loads */
    uint64_t sectors;      /* 32 bytes each, of its memory, that warps read or wrote together: transactions */
    uint64_t asked;        /* bytes that threads wanted of them */
    uint64_t passes; /* of warps over shared memory: one, of 8 and 16 bytes two and four, without conflicts */
    uint64_t conflicts; /* those of them that are there because lanes met in a bank */
};

/* ---- the table ---- */

struct backend_ops {
    const char *name; /* "cpu", "null", … */

    /* It computes on the process's own memory and threads, and opens no file and no device of its own. Only a
     * worker with such a backend is confined (worker/start/sandbox.h): a driver opens what it likes at any
     * time. */
    bool self_contained;

    /* NULL: it packs weights into no memory that processes share. Else another number means another way. */
    uint64_t (*weight_packing)(void);

    /* -EINVAL names what the model computes and this backend cannot (model/traits.h); open asks it
     * too. NULL: any model will do. */
    int (*check)(const struct model *model, struct error *err);

    /* -errno with a reason that names the numbers: what was asked, what there is. */
    int (*open)(const struct backend_config *config, struct backend **ret_backend, struct error *err);
    /* Flights and copies under way are dropped; their buffers are the host's again when it returns. */
    void (*close)(struct backend *backend);
    void (*info)(const struct backend *backend, struct backend_info *ret_info);

    /* Takes a slot into use with empty tables. 0; -EINVAL: it is open, or more stop ids than there may be;
     * -ENOMEM. */
    int (*slot_open)(struct backend *backend, uint32_t slot, const struct backend_slot *params);
    /* Gives it back; nothing of it is in flight. A slot that is not open stays so. */
    void (*slot_close)(struct backend *backend, uint32_t slot);

    /* Starts a step; at most info.most_flights are in flight. 0; -EINVAL: it breaks a rule that the backend
     * can see, and nothing of it was done; -ENOMEM, the same: the device is sound, and takes a smaller step.
     */
    int (*submit)(struct backend *backend, const struct backend_step *step, uint64_t *ret_ticket);

    /* Waits for a ticket up to timeout_ms (0: only looks). Tickets of steps are polled in the order of
     * submission, each to its end once. 0 with the results [n_sets], which live until the next submit (none
     * for a copy); -EAGAIN: not yet; -ECANCELED: the step was abandoned; -EINVAL: no such ticket is open. */
    int (*poll)(struct backend *backend, uint64_t ticket, int timeout_ms,
                const struct backend_result **ret_results, struct error *err);

    /* Cuts the sequence to its first `position` ids, and each table to ⌈position / 32⌉ blocks; its end is
     * forgotten, and it has no last id. What penalties counted stays counted. Nothing of the slot is in
     * flight, position is at most its own and not below its first; of a group with a window, the host still
     * holds the blocks that the window of the row at `position` reaches back on. */
    void (*trim)(struct backend *backend, uint32_t slot, uint32_t position);

    /* Copies blocks to the host or from it, in order with the steps: a copy out has what all steps submitted
     * before it wrote, a step submitted after a copy in sees it. A ticket of its own kind: it may end before
     * or after those of steps, and counts as no flight. 0; -EINVAL: a block or group that is not there;
     * -EAGAIN: too many are under way, poll one first. */
    int (*copy_out)(struct backend *backend, const struct backend_copy *copy, uint64_t *ret_ticket);
    int (*copy_in)(struct backend *backend, const struct backend_copy *copy, uint64_t *ret_ticket);

    /* 0: the device is sound. Else -errno with the reason, the same from then on: -EIO, another process may
     * try again; -ENODEV, the device is gone, and no other process will find it; -ETIMEDOUT, it stands still.
     * Never waits; to be asked at any time, with nothing in flight too. */
    int (*verdict)(struct backend *backend, struct error *err);

    /* With config.profile: what ran since it was opened, or since the last call. The rows, in no order, live
     * until the next one. NULL: it cannot be profiled. */
    uint32_t (*profile)(struct backend *backend, const struct backend_kernel **ret_kernels);
};

/* The backends that every build has; backends.h finds them and others by name. */
extern const struct backend_ops backend_cpu;  /* cpu */
extern const struct backend_ops backend_null; /* engine: tokens for free, to measure everything else */

#endif
