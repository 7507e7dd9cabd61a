/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_STATE_H
#define CUDA_KERNELS_STATE_H

/* The data that host and kernels share: slots, the description of a step, and its results.
 *
 * Slots live in device memory and are advanced there, so step n + 1 can be queued before step n was read.
 * The host writes the description of a step (struct step and what follows it) into pinned memory; it is
 * copied to one fixed place on the device before the step's kernels, so recorded graphs serve every step.
 * The last kernel writes the results into the flight's mailbox in pinned memory, `number` last. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "engine/sampling/sampling.h"

#define STATE_MOST_STOP_IDS 1024
#define STATE_MOST_BIASES   4096 /* logit_bias entries of a slot */

/* One sequence. Written by the host when it opens (a copy in the stream), by kernels afterwards. */
struct slot_state {
    uint32_t position;     /* ids whose keys and values are computed */
    int32_t last_id;       /* sampled and not yet fed; −1: none */
    uint32_t end;          /* enum backend_end: what ended the sequence */
    uint32_t end_position; /* it ends (length) with this many ids */
    uint32_t n_stop_ids, n_biases, n_logprobs;
    uint32_t keeps_uses; /* some penalty uses them */
    uint32_t top_k;
    float temperature, repetition_penalty, presence_penalty, frequency_penalty;
    uint32_t keeps_history; /* of ids, because sampling depends on earlier ones */
    double top_p, min_p;
    uint64_t seed;
    double top_n_sigma, typical_p, xtc_probability, xtc_threshold;
    double dynatemp_middle, dynatemp_range, dynatemp_exponent; /* the requested temperature */
    double dry_multiplier, dry_base;
    uint32_t dry_allowed, dry_last; /* ids that DRY considers; 0: it is off; UINT32_MAX: all */
    uint32_t window;                /* ids that penalties consider; UINT32_MAX: all */
    uint32_t n_prompt;              /* ids of the history that are the prompt's */
    uint32_t has_bad_words;
    uint32_t stops_from; /* no stop id is sampled at an index before this */
};

/* Bad words of a slot, then breakers of several ids: for each, its length and its ids, from items[start]
 * on. */
struct slot_sequences {
    uint32_t n, n_bad_words;
    uint32_t starts[SAMPLING_MOST_SEQUENCES];
    int32_t items[SAMPLING_MOST_SEQUENCE_LEN];
};

/* A number added to the logit of an id. A slot's ids are below n_vocab and distinct: the host adds up
 * repeated ids of a request, as floats in the order of its list. */
struct slot_bias {
    int32_t id;
    float bias;
};

/* All slots' memory on the device. */
struct slots {
    struct slot_state *states;        /* [n_slots] */
    int32_t *stop_ids;                /* [n_slots][STATE_MOST_STOP_IDS] */
    struct slot_bias *biases;         /* [n_slots][STATE_MOST_BIASES] */
    struct token_use *uses;           /* [n_slots][n_vocab] */
    int32_t *history;                 /* [n_slots][n_history] prompt and output, of slots that keep it */
    struct slot_sequences *sequences; /* [n_slots] */
    uint32_t *breakers;               /* [n_slots][⌈n_vocab / 32⌉] ids at which a repeat of DRY ends */
    uint32_t n_history;               /* the most positions of a slot */
    uint32_t *tables;                 /* [n_groups][n_slots][table_size]: KV block of position / 32 */
    uint32_t table_size, n_groups;
    uint32_t n_slots, n_vocab;
    const uint32_t *mask; /* [⌈n_vocab / 32⌉] ids that may ever be sampled; NULL: all */
};

/* ---- a step ---- */

/* One row set (backend_row_set), in the order of the step. */
struct step_set {
    uint32_t slot;
    uint32_t first_row, n_rows;
    uint32_t from_slot;    /* 1: the row is the slot's last id at its own position; ids are not read */
    uint32_t output;       /* enum backend_output */
    uint32_t first_output; /* of the rows with logits, if output is not NONE */
    uint32_t told;         /* blocks in the slot's tables before these */
    uint32_t first_block, n_blocks; /* in step.blocks, [n_groups][n_blocks]: to append to the tables */
    uint32_t first_mask;    /* in masks, [all sets' sampled rows][⌈n_vocab / 32⌉]; UINT32_MAX: none */
    uint32_t first_logprob; /* of its log probabilities in the mailbox */
    /* After this many rows the slot's recurrent state is copied to a snapshot; 0: it is not. */
    uint32_t snapshot_rows, snapshot;
};

/* A row: one token at one position. Made by the resolving kernel from the sets and the slots. */
struct step_row {
    uint32_t slot;
    uint32_t position; /* ROW_DEAD: padding, or of an ended sequence: its results are not used */
    int32_t id;
    uint32_t set;
};
#define ROW_DEAD UINT32_MAX

/* The description, at one fixed place in device memory, as are the arrays that go with it. Rows of a step are
 * those of its sets, one after the other; outputs likewise: one of a set, or all its rows with *_ALL. */
struct step {
    uint64_t number;  /* counts steps from 1 */
    uint32_t mailbox; /* which one takes the results */
    uint32_t n_sets, n_rows, n_outputs;
};

struct step_memory {
    struct step *step;
    struct step_set *sets; /* [max_rows] */
    int32_t *ids;          /* [max_rows]: of row i, if its set is not from_slot */
    uint32_t *blocks;      /* [max_blocks] */
    /* made by kernels */
    struct step_row *rows; /* [max_rows] */
    uint32_t *outputs;     /* [max_rows]: rows with logits, in order */
    uint32_t max_rows, max_blocks;
};

/* ---- results ---- */

/* The result of a set, as backend_result. */
struct set_result {
    uint32_t n_ids, n_accepted, end, first_id; /* first_id: its ids in mailbox.ids, set.first_output */
};

#define MAILBOXES 4

/* A flight's results, in pinned memory. The host may read the rest when it sees the step's number. */
struct mailbox {
    uint64_t *number;
    struct set_result *sets;  /* [max_rows] */
    int32_t *ids;             /* [outputs]: those of a set begin at its first_output */
    struct logprob *logprobs; /* [max_logprobs] */
};

#ifdef __cplusplus
}
#endif

#endif
