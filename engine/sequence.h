/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SEQUENCE_H
#define ENGINE_SEQUENCE_H

/* One request inside the engine: its ids, its text, and how far the backend has been asked to go.
 *
 *                   ┌──────────── flights read ──────── LEAVING ◀── preempted, or out of credit
 *                   ▼                                      ▲
 *     new ──▶ WAITING ──slot──▶ PREFILLING ──last chunk──▶ DECODING      (each ──▶ DUE ──▶ ENDED)
 *                   ▲                                      ▼
 *                   └──────────── flights read ──────── SPOILED ◀── a step was abandoned
 *
 * A sequence that embeds decodes nothing: it ends when its last chunk is read.
 *
 * The state says what it does. `slot` says whether it holds one, and so whether it is in the waiting list or
 * running. Only sequence_plan and sequence_settle change its progress: the first when a step is built, the
 * second when that step was read. The functions here use only the modules of its text, its mask and its
 * thoughts. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "engine/engine.h"
#include "engine/sampling/masks.h"
#include "engine/text.h"
#include "engine/thought.h"
#include "text/tokenizer/tokenizer.h"

#define HASH_NONFATAL_OOM 1 /* an element that could not be added has no table */
#include <uthash.h>

#define SEQUENCE_NO_SLOT UINT32_MAX

#define SEQUENCE_MOST_SNAPSHOTS 2 /* one for each flight */

/* What a priority class and a deadline are worth: a sequence one class lower waits at most this long for
 * later arrivals; a sequence without a deadline, or with a later one, waits at most this long for those with
 * a deadline. */
#define SEQUENCE_CLASS_NS    (30 * (int64_t)CLOCK_NS_PER_S)
#define SEQUENCE_PRESSING_NS (30 * CLOCK_NS_PER_S)

enum sequence_state {
    SEQUENCE_WAITING,    /* for a slot */
    SEQUENCE_PREFILLING, /* its slot is fed from ids */
    SEQUENCE_DECODING,   /* its slot continues from what it sampled */
    SEQUENCE_LEAVING,    /* preempted; results of its flights still count */
    SEQUENCE_SPOILED,    /* results of its flights are meaningless */
    SEQUENCE_DUE,        /* ends at the next check, as `due` says */
    SEQUENCE_ENDED       /* its last event is delivered; it lives on only until its flights are read */
};

/* Drafts of a sequence (drafts.h). */
struct sequence_drafts {
    uint32_t length;            /* most ids of the next draft; 0: none was made yet */
    uint32_t wait;              /* number of coming steps without a draft */
    uint32_t pause;             /* value of `wait` after the next draft that is all wrong */
    uint32_t drafted, accepted; /* draft ids that were verified, and those in the answer */
    bool has_spare;             /* the set in flight copies the state after its first row … */
    uint32_t spare;             /* … to this snapshot */
};

struct sequence {
    /* the request */
    struct sampling sampling;             /* its lists are copies */
    struct ids stop_ids;                  /* the model's and the request's */
    int32_t spelled[ENGINE_MOST_SPELLED]; /* [n_spelled] control tokens whose names are text */
    uint32_t n_spelled;
    uint32_t n_logprobs;
    uint32_t n_prompt;
    int32_t priority;
    uint64_t deadline_ns;  /* 0 = none */
    uint64_t arrival;      /* grows with each request */
    bool uncached;         /* it uses no prefix cache */
    bool unsalted;         /* strangers may share its prefixes */
    bool embeds;           /* it wants its prompt's final states, and no tokens */
    bool watched;          /* events report how much of its prompt is computed */
    uint64_t space;        /* in the prefix cache, by the request's salt */
    uint32_t n_groups;     /* of KV blocks, each with its table */
    uint64_t store_use;    /* of the prefix store; 0: not yet */
    uint64_t turn_ns;      /* when it was first considered with a slot free; 0: not yet */
    uint64_t started_ns;   /* when it first got a slot; 0: not yet */
    uint32_t n_missing;    /* while it waits: the store lacks the block before this one; 0: not known */
    uint64_t follows;      /* while it waits: arrival of the sequence computing its prefix; 0: none known */
    uint32_t n_followed;   /* blocks that both are known to have in common */
    uint32_t n_wanted;     /* while it waits: blocks up to the snapshot that the store has; 0: not known */
    uint32_t end_position; /* n_prompt + max_tokens */
    uint32_t stops_from;   /* n_prompt + min_tokens: no stop ends it before it has this many ids */
    uint32_t credit_end;   /* n_prompt + credit: ids that it may have for now; end_position: all */
    uint64_t tag;

    /* its output; the members from here to `n_slid`, which each step touches, are together: those of all
     * running sequences should fit a core's first-level cache */
    struct ids ids; /* prompt, then output */
    struct text text;
    struct buffer unsent;    /* text for the next event */
    struct mask *mask;       /* what may come next; NULL: anything */
    struct thought *thought; /* the budget of its thoughts; NULL: none */
    uint64_t submitted_ns, first_ns, last_ns;

    /* its progress */
    enum sequence_state state;
    enum engine_end due; /* in SEQUENCE_DUE */
    bool started;        /* it has run before, here or elsewhere */
    bool is_held;        /* it is in the list of those that wait for credit */
    uint32_t slot;       /* or SEQUENCE_NO_SLOT */
    uint32_t n_begun;    /* positions that were filled when it got its slot */
    uint32_t n_prefill;  /* ids that it had when it got its slot: the slot is fed these */
    uint32_t fed;        /* positions submitted: the most that the slot's will be */
    uint32_t in_flight;  /* submitted sets that were not read */
    uint32_t n_final;    /* positions from the first on that were computed, and whose results were read */
    uint32_t n_cached;   /* positions that were filled when it first got a slot */
    uint32_t n_blocks;   /* in each of its tables, including those filled at the start */
    uint32_t n_told;     /* of these, blocks that its slot knows */
    uint32_t n_offered;  /* of these, blocks that the prefix cache was offered, or gave */
    uint32_t offer_at;   /* when this many positions are final, it is offered more */
    uint32_t n_again;    /* ids from `fed` on, up to the last, that its slot is fed a second time */
    uint64_t place;      /* in the prefix cache, of the last offered block; 0: none is kept after it */
    /* Models with recurrent layers: snapshots that steps in flight take, and at which positions. */
    struct {
        uint32_t snapshot, border;
    } snapshots[SEQUENCE_MOST_SNAPSHOTS];
    uint32_t n_snapshots;
    uint32_t branch; /* the end of the blocks that were found, if no snapshot was there; else 0 */
    uint64_t turn;   /* the place of the last snapshot within its answer; 0: none */
    uint32_t n_turn; /* blocks up to there */
    struct sequence_drafts drafts;
    /* [n_groups]: [⌈end_position / 32⌉] entries; all but the first n_slid are held. Those first ones are
     * outside every later window: given back, or absent from the start. */
    uint32_t *tables[BACKEND_MOST_GROUPS];
    uint32_t n_slid[BACKEND_MOST_GROUPS];

    struct sequence *prev, *next; /* in the waiting list, or that of the held */
    UT_hash_handle hh;            /* by tag, among those alive */
};

const char *sequence_state_name(enum sequence_state state);

/* Copies the request, in SEQUENCE_WAITING, with tables for n_groups groups. 0 or -ENOMEM. */
int sequence_new(const struct engine_request *request, struct ids_view end_ids, uint32_t n_groups,
                 uint64_t arrival, uint64_t now, struct sequence **ret_sequence);
struct sequence *sequence_free(struct sequence *sequence);

/* Restores the progress of the request's outputs: remakes their text, leaves the part that was not published
 * as unsent, and makes a complete request due. 0, -ENOMEM, or ENGINE_E_INVALID with the reason if outputs and
 * offset contradict the request. */
int sequence_resume(struct sequence *sequence, const struct engine_request *request,
                    const struct tokenizer *tokenizer, struct error *err);

/* Changes the state; a change that the picture above does not show is a programming error and aborts. */
void sequence_become(struct sequence *sequence, enum sequence_state state);

/* Gets a slot. The first `n_filled` blocks of its tables are filled with its first ids. If n_copied > 0, that
 * many more were copied into the next block, fewer than a whole block and than its ids; the rest is to be
 * fed. The caller has written the blocks into the tables and the end of the full ones into `place`, and holds
 * the blocks that the next row sees. */
void sequence_start(struct sequence *sequence, uint32_t slot, uint32_t n_filled, uint32_t n_copied);

/* Sets offer_at: the end of the block after n_offered, or the prompt's end inside it. */
void sequence_set_offer(struct sequence *sequence);

/* It has lost its slot and its blocks; its flights are read. */
void sequence_leave(struct sequence *sequence);

/* Whether it may have no more ids until it gets credit. */
static inline bool sequence_is_held(const struct sequence *sequence)
{
    return sequence->ids.len >= sequence->credit_end && sequence->credit_end < sequence->end_position;
}

/* The most blocks of a prefix that it can use: at least its last id is fed, so that there are logits. */
static inline uint32_t sequence_most_found(const struct sequence *sequence)
{
    return ((uint32_t)sequence->ids.len - 1) / BACKEND_BLOCK_TOKENS;
}

/* Whether it has a slot and keeps it. */
static inline bool sequence_stays(const struct sequence *sequence)
{
    return sequence->state == SEQUENCE_PREFILLING || sequence->state == SEQUENCE_DECODING;
}

/* Sets its credit, in outputs; 0: unlimited. Never reduces it. */
void sequence_set_credit(struct sequence *sequence, uint32_t credit);

/* Rows that it wants in the next step: the rest of its ids, 1 for a decode, or 0. */
static inline uint32_t sequence_wants(const struct sequence *sequence)
{
    if (sequence->state == SEQUENCE_PREFILLING)
        return sequence->n_prefill - sequence->fed;
    const uint32_t known = sequence->fed + (sequence->n_again > 0 ? sequence->n_again : 1);
    return sequence->state == SEQUENCE_DECODING && known < sequence->credit_end;
}

/* How many ids it may sample, beyond those in flight, before it has to wait for their values, because they
 * may use up the budget of its thoughts. 0: the next one is forced, or it has to wait. */
static inline uint32_t sequence_free_ids(const struct sequence *sequence)
{
    const uint32_t free = sequence->thought ? thought_free_ids(sequence->thought) : UINT32_MAX;
    return free > sequence->in_flight ? free - sequence->in_flight : 0;
}

/* Makes a set of a step from the next `rows` rows: no more than it wants, or is fed again, or has blocks for.
 * With n_draft > 0, allowed if it decodes and has nothing in flight, also verifies the ids draft[1 …
 * n_draft]; draft[0] is filled in, and the array must live until the submit. */
void sequence_plan(struct sequence *sequence, uint32_t rows, int32_t *draft, uint32_t n_draft,
                   struct backend_row_set *ret_set);

/* The set was read or (result NULL) abandoned. Returns how many of the result's ids count. After a wrong
 * draft of a sequence with a spare snapshot only the set's first row counts as fed, and the caller returns
 * the slot to the snapshot. */
uint32_t sequence_settle(struct sequence *sequence, const struct backend_row_set *set,
                         const struct backend_result *result);

/* Takes ids that the backend sampled, up to the end of a stop string, and the backend's verdict on the last.
 * Appends their text to `out`, and at an end the withheld text. Returns how many were taken, or -ENOMEM. */
int sequence_accept(struct sequence *sequence, const struct tokenizer *tokenizer, const int32_t *ids,
                    uint32_t n, enum backend_end verdict, struct buffer *out, enum engine_end *ret_end);

/* The common case: takes one id that ends nothing and whose text needs no withholding; ret_text borrows from
 * the tokenizer. False, with nothing done: it is another case, or text is unsent. */
bool sequence_accept_plain(struct sequence *sequence, const struct tokenizer *tokenizer, int32_t id,
                           struct bytes *ret_text);

/* Order of admission: priority; those that ran before, by arrival; the earlier pressing deadline; arrival.
 * Priorities and deadlines count as described above. */
bool sequence_goes_before(const struct sequence *a, const struct sequence *b);

/* Order of seniority: priority, then arrival, with the same weights. It never changes, and every later
 * arrival eventually is junior, so every sequence eventually becomes the most senior, and the most senior
 * always finishes. */
bool sequence_is_senior(const struct sequence *a, const struct sequence *b);

#endif
