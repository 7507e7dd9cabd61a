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
 * among the running. Only sequence_plan and sequence_settle move its progress: the first when a step is
 * built, the second when that step was read. The functions here use no module but those of its text, its
 * mask and its thoughts. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "engine/engine.h"
#include "engine/sampling/masks.h"
#include "engine/text.h"
#include "engine/thought.h"
#include "text/tokenizer/tokenizer.h"

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>

#define SEQUENCE_NO_SLOT UINT32_MAX

#define SEQUENCE_MOST_SNAPSHOTS 2 /* one for each flight */

/* What a priority class and a deadline are worth: a sequence one class lower waits at most this long for
 * later arrivals; so does a sequence without a deadline, or with a later one, for sequences with a
 * deadline. */
#define SEQUENCE_CLASS_NS    (30 * (int64_t)CLOCK_NS_PER_S)
#define SEQUENCE_PRESSING_NS (30 * CLOCK_NS_PER_S)

enum sequence_state {
    SEQUENCE_WAITING,    /* for a slot */
    SEQUENCE_PREFILLING, /* its slot is fed from ids */
    SEQUENCE_DECODING,   /* its slot goes on from what it sampled */
    SEQUENCE_LEAVING,    /* preempted; what its flights bring still counts */
    SEQUENCE_SPOILED,    /* what its flights bring means nothing */
    SEQUENCE_DUE,        /* ends at the next look, as `due` says */
    SEQUENCE_ENDED       /* its last event is out; lives on only until its flights are read */
};

/* Of one for which drafts are made (drafts.h). */
struct sequence_drafts {
    uint32_t length;            /* ids of the next one, at most; 0: none was made yet */
    uint32_t wait;              /* steps to come without one */
    uint32_t pause;             /* and how many those will be after the next that is all wrong */
    uint32_t drafted, accepted; /* ids of those that were verified, and of them those in the answer */
    bool has_spare;             /* the set in flight copies the state behind its first row … */
    uint32_t spare;             /* … to this snapshot */
};

struct sequence {
    /* what was asked */
    struct sampling sampling;             /* a copy of its own */
    struct ids stop_ids;                  /* the model's and the request's */
    int32_t spelled[ENGINE_MOST_SPELLED]; /* [n_spelled] control tokens whose names are text */
    uint32_t n_spelled;
    uint32_t n_logprobs;
    uint32_t n_prompt;
    int32_t priority;
    uint64_t deadline_ns;  /* 0 = none */
    uint64_t arrival;      /* grows with each request */
    bool uncached;         /* it has none */
    bool unsalted;         /* those who need not know one another share its prefixes */
    bool embeds;           /* its prompt's final states are asked for, and no token */
    bool watched;          /* it is told how much of its prompt is computed */
    uint64_t space;        /* of the prefix cache, by the request's salt */
    uint32_t n_groups;     /* of KV blocks, each with its table */
    uint64_t store_use;    /* of the prefix store; 0: not yet */
    uint64_t turn_ns;      /* when it was first looked at with a slot free; 0: not yet */
    uint64_t started_ns;   /* when it first got one; 0: not yet */
    uint32_t n_missing;    /* while it waits: the store lacks the block before this one; 0: not known */
    uint64_t follows;      /* while it waits: arrival of who computes its prefix; 0: nobody known */
    uint32_t n_followed;   /* and blocks of it that both are known to have in common */
    uint32_t n_wanted;     /* while it waits: blocks up to the snapshot that the store has; 0: not known */
    uint32_t end_position; /* n_prompt + max_tokens */
    uint32_t stops_from;   /* n_prompt + min_tokens: until it has so many ids, no stop ends it */
    uint32_t credit_end;   /* n_prompt + credit: ids that it may have for now; end_position: all */
    uint64_t tag;

    /* what it made; from here to `n_slid` is what a step touches, together: all that runs is to stay in the
     * first cache of a core */
    struct ids ids; /* prompt, then output */
    struct text text;
    struct buffer unsent;    /* text that goes out with the next event */
    struct mask *mask;       /* what may come next; NULL: anything */
    struct thought *thought; /* the budget of its thoughts; NULL: none */
    uint64_t submitted_ns, first_ns, last_ns;

    /* where it stands */
    enum sequence_state state;
    enum engine_end due; /* in SEQUENCE_DUE */
    bool started;        /* it ran before, here or elsewhere */
    bool is_held;        /* it stands in the list of those that wait for credit */
    uint32_t slot;       /* or SEQUENCE_NO_SLOT */
    uint32_t n_begun;    /* positions that were filled when it got its slot */
    uint32_t n_prefill;  /* ids that it had when it got its slot: the slot is fed these */
    uint32_t fed;        /* positions submitted: what the slot's will be, at most */
    uint32_t in_flight;  /* submitted sets that were not read */
    uint32_t n_final;    /* of them, from the first on: computed, and read to be so */
    uint32_t n_cached;   /* positions that were filled when it first got a slot */
    uint32_t n_blocks;   /* of each of its tables, those that were filled at the start included */
    uint32_t n_told;     /* of them, its slot knows */
    uint32_t n_offered;  /* of them, the prefix cache has been offered, or gave */
    uint32_t offer_at;   /* when so many positions are final it is offered more */
    uint32_t n_again;    /* ids from `fed` on that its slot was fed and is fed again; all that there are */
    uint64_t place;      /* in the prefix cache, of the last of those; 0: none is kept behind it */
    /* Of models with recurrent layers: snapshots that steps in flight take, and behind how many positions. */
    struct {
        uint32_t snapshot, border;
    } snapshots[SEQUENCE_MOST_SNAPSHOTS];
    uint32_t n_snapshots;
    uint32_t branch; /* the end of the blocks that were found, where no snapshot was; 0: not so */
    uint64_t turn;   /* the place of the last one that its answer has; 0: none */
    uint32_t n_turn; /* blocks up to there */
    struct sequence_drafts drafts;
    /* [n_groups]: [⌈end_position / 32⌉] room; all but the first n_slid are held. Those are out of every
     * window to come: given back, or not there from the start. */
    uint32_t *tables[BACKEND_MOST_GROUPS];
    uint32_t n_slid[BACKEND_MOST_GROUPS];

    struct sequence *prev, *next; /* in the waiting list, or that of the held */
    UT_hash_handle hh;            /* by tag, among those alive */
};

const char *sequence_state_name(enum sequence_state state);

/* Copies the request, in SEQUENCE_WAITING, with tables for so many groups. 0 or -ENOMEM. */
int sequence_new(const struct engine_request *request, struct ids_view end_ids, uint32_t n_groups,
                 uint64_t arrival, uint64_t now, struct sequence **ret_sequence);
struct sequence *sequence_free(struct sequence *sequence);

/* Goes back to where the request's outputs left off: their text is made again, what was not published of it
 * is unsent, and a request that was complete already is due. 0, -ENOMEM, or ENGINE_E_INVALID with the reason
 * when outputs and offset contradict the request. */
int sequence_resume(struct sequence *sequence, const struct engine_request *request,
                    const struct tokenizer *tokenizer, struct error *err);

/* Changes the state; a change that the picture above does not show is a programming error and aborts. */
void sequence_become(struct sequence *sequence, enum sequence_state state);

/* Gets a slot. The first `n_filled` blocks of its tables are filled with its first ids, and the next one, if
 * n_copied > 0, with so many more that were copied into it: fewer than it has; the rest of them is to be fed.
 * The caller has written the blocks there, and where the full ones end into `place`, and holds those that the
 * row behind them sees. */
void sequence_start(struct sequence *sequence, uint32_t slot, uint32_t n_filled, uint32_t n_copied);

/* Sets offer_at: the end of the block that n_offered says is next, or of the prompt within it. */
void sequence_set_offer(struct sequence *sequence);

/* Has lost its slot and its blocks; flights are read. */
void sequence_leave(struct sequence *sequence);

/* Whether it may have no id more until it gets credit. */
static inline bool sequence_is_held(const struct sequence *sequence)
{
    return sequence->ids.len >= sequence->credit_end && sequence->credit_end < sequence->end_position;
}

/* Blocks of a prefix that it can do with: at least its last id is fed, so that there are logits. */
static inline uint32_t sequence_most_found(const struct sequence *sequence)
{
    return ((uint32_t)sequence->ids.len - 1) / BACKEND_BLOCK_TOKENS;
}

/* Whether it has a slot and keeps it. */
static inline bool sequence_stays(const struct sequence *sequence)
{
    return sequence->state == SEQUENCE_PREFILLING || sequence->state == SEQUENCE_DECODING;
}

/* Sets its credit, in outputs; 0: all that it may make. Never takes away. */
void sequence_set_credit(struct sequence *sequence, uint32_t credit);

/* Rows that it wants of the next step: what is left of its ids, or 1 of a decode, or 0. */
static inline uint32_t sequence_wants(const struct sequence *sequence)
{
    if (sequence->state == SEQUENCE_PREFILLING)
        return sequence->n_prefill - sequence->fed;
    const uint32_t known = sequence->fed + (sequence->n_again > 0 ? sequence->n_again : 1);
    return sequence->state == SEQUENCE_DECODING && known < sequence->credit_end;
}

/* How many ids it may sample, beyond those in flight, before it has to wait for what they are: because they
 * may have used up the budget of its thoughts. 0: the next one is forced, or it has to wait. */
static inline uint32_t sequence_free_ids(const struct sequence *sequence)
{
    const uint32_t free = sequence->thought ? thought_free_ids(sequence->thought) : UINT32_MAX;
    return free > sequence->in_flight ? free - sequence->in_flight : 0;
}

/* Makes the next `rows` rows, no more than it wants, or is fed again, and has blocks for, a set of a step.
 * With n_draft > 0,
 * for one that decodes and has nothing in flight, the ids draft[1 … n_draft] are verified with the next row;
 * draft[0] is filled in, and the array lives until the submit. */
void sequence_plan(struct sequence *sequence, uint32_t rows, int32_t *draft, uint32_t n_draft,
                   struct backend_row_set *ret_set);

/* That set was read, or abandoned: result NULL. How many of the result's ids count. Behind a wrong draft of
 * one that has a spare snapshot only the set's first row counts as fed, and the caller leads the slot back.
 */
uint32_t sequence_settle(struct sequence *sequence, const struct backend_row_set *set,
                         const struct backend_result *result);

/* Takes ids that the backend sampled, up to the end that a stop string makes, and how it judged the last.
 * Appends their text to `out`, and at an end what was withheld. How many were taken, or -ENOMEM. */
int sequence_accept(struct sequence *sequence, const struct tokenizer *tokenizer, const int32_t *ids,
                    uint32_t n, enum backend_end verdict, struct buffer *out, enum engine_end *ret_end);

/* Takes one id that ends nothing and whose text may go out as it is, as most do: ret_text borrows from the
 * tokenizer. False, with nothing done: it is not so, or text is unsent. */
bool sequence_accept_plain(struct sequence *sequence, const struct tokenizer *tokenizer, int32_t id,
                           struct bytes *ret_text);

/* Order of admission: priority; those that ran before, in order of arrival; the earlier deadline that
 * presses; arrival. Priorities and deadlines count as said above. */
bool sequence_goes_before(const struct sequence *a, const struct sequence *b);

/* Order of seniority: priority, then arrival, likewise. It never changes and all that comes later is junior
 * in the end, so every sequence becomes the most senior in time, and the most senior always finishes. */
bool sequence_is_senior(const struct sequence *a, const struct sequence *b);

#endif
