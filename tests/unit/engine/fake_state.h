/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_ENGINE_FAKE_STATE_H
#define TESTS_UNIT_ENGINE_FAKE_STATE_H

/* The state of the backend of fake.h, for its two halves: fake.c has the functions that the host calls and
 * asserts the contract; fake_device.c does the device's work when a step is due. */

#include "tests/unit/engine/fake.h"

#define QUEUE         4 /* steps remembered */
#define COPIES        4
#define COPY_TICKET   (1ull << 32)
#define MOST_STOP_IDS 16
#define MOST_IDS      8192 /* of a slot */
#define MASK_WORDS    ((FAKE_VOCAB + 31) / 32)
#define UNTOUCHED     (-1234.5f) /* in logits not written yet */

enum { JUNK = -7, NOBODY = -1 };

struct fake_recurrence { /* in place of a state: a hash of the first n ids */
    uint32_t n;
    uint64_t hash;
};

struct fake_slot {
    bool open;
    struct backend_slot params;
    int32_t *history, *stop_ids;
    uint32_t n_known; /* ids in history: those that the slot began with, and sampled ones */
    /* as told by the host */
    uint32_t *tables[2]; /* by group */
    uint32_t n_table;
    uint32_t n_out[2]; /* of these, the first ones are out of the window and free for others */
    uint32_t most;     /* the most positions when everything in flight is done */
    uint32_t in_flight, sampling_in_flight;
    /* on the device */
    uint32_t position;
    int32_t last; /* sampled; −1: none */
    double sums[FAKE_EMBD];
    enum backend_end end;
    bool spoiled;
    struct fake_recurrence state;
};

struct fake_step {
    uint32_t n;
    struct backend_row_set *sets; /* [n_slots] */
    struct backend_result *results;
    uint64_t *mask_hashes; /* [n_slots] */
    int32_t *ids;          /* [max_rows]: of the sets */
    int32_t *sampled;      /* [max_rows] */
    uint32_t polls;
    bool abandoned;
};

struct fake_copy {
    uint64_t ticket; /* 0: free */
    uint64_t after;  /* steps submitted before it */
    bool out, done;
    uint32_t group;
    uint32_t *blocks;
    uint32_t n;
    void *host;
};

struct fake_block_copy {
    uint64_t after;
    uint32_t group, from, to;
};

struct fake_group {
    struct backend_group group;
    int32_t (*kv)[BACKEND_BLOCK_TOKENS]; /* ids in place of keys and values */
    int32_t *writer;                     /* the slot that may write each block, or NOBODY */
    uint32_t *readers;                   /* slots that each block was attached to */
};

struct backend {
    struct backend_config config;
    struct fake_group groups[2];
    uint32_t n_groups;
    struct fake_recurrence *snapshots; /* [n_snapshots] */
    uint32_t n_snapshots;
    struct fake_slot *slots;
    struct fake_step steps[QUEUE];
    struct fake_copy copies[COPIES];
    struct fake_block_copy *block_copies; /* [n_block_copies]: pending ones */
    uint32_t n_block_copies;
    uint64_t submitted, executed, n_copies;
};

static inline uint32_t fake_sampled_rows(const struct backend_row_set *set)
{
    return set->output == BACKEND_SAMPLE_ALL ? set->n_ids : set->output == BACKEND_SAMPLE_LAST;
}

static inline uint32_t fake_logit_rows(const struct backend_row_set *set)
{
    return set->output == BACKEND_LOGITS_ALL ? set->n_ids : set->output == BACKEND_LOGITS_LAST;
}

/* ---- fake.c ---- */

/* The slot no longer uses the n-th block of the group. */
void fake_leave_block(struct backend *b, const struct fake_slot *slot, uint32_t g, uint32_t n);

/* A hash of the set's current masks; 0: it has none. */
uint64_t fake_mask_hash(const struct backend_row_set *set);

/* ---- fake_device.c ---- */

/* The state after one more id. */
struct fake_recurrence fake_recur(struct fake_recurrence state, int32_t id);

/* Executes the step with this ticket, and the copies before it. */
void fake_execute(struct backend *b, struct fake_step *step, uint64_t ticket);

/* Executes the copies that follow at most this many steps: copies and steps are in order. */
void fake_run_copies(struct backend *b, uint64_t steps_done);

#endif
