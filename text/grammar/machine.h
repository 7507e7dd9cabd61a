/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_MACHINE_H
#define TEXT_GRAMMAR_MACHINE_H

/* A program at work: where texts stand that are being made after one grammar.
 *
 * A *frame* is a call that has not returned: where it goes on, and the frame below. Frames are kept once each
 * (two calls from the same place over the same frame are one), so a stack is a number. A *state* is a set of
 * (node, frame), all the ways in which the text so far can be read, and whether it may end here; states are
 * kept once each too, and what a byte makes of a state is remembered. So a grammar becomes a deterministic
 * automaton over bytes, as far as it is used, and the same place in two answers is the same number.
 *
 * Not for several threads at once: one machine serves all sequences of a grammar, on one thread. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "text/grammar/machine_sets.h"
#include "text/grammar/program.h"

#define MACHINE_DEAD       0u /* no way to read it */
#define MACHINE_BOTTOM     0u /* the frame below all others: the end of the text */
#define MACHINE_MOST_DEPTH 512u
#define MACHINE_MOST_WAYS  4096u /* of a state */

/* Why a call was not done, beside -ENOMEM; machine.failure has the bound's name. */
enum { MACHINE_E_LIMIT = 1 /* states, frames or work beyond the bounds */ };

struct machine_way {
    uint32_t frame, node; /* the node takes a byte */
};

/* A rule whose members come in any order has the set of those that came in its frame: with each that comes it
 * goes on in another frame. What it is over is the end of the text too where node is MACHINE_ENDS: so mask.c
 * looks at a rule by itself. */
#define MACHINE_ENDS UINT32_MAX

struct machine_frame {
    uint32_t node, below; /* goes on at node, over the frame below */
    uint32_t set;         /* machine_sets.h */
    uint32_t depth;
    uint32_t chain;
};

struct machine_mask; /* mask.h */

struct machine_state {
    struct machine_way *ways; /* [n_ways] ascending by frame, then node */
    uint32_t n_ways;
    bool accepting;                      /* the text may end here */
    uint32_t *next;                      /* [n_classes] states; UINT32_MAX: not known yet */
    struct machine_mask *within, *whole; /* mask.c; NULL: not made */
    uint32_t chain;
};

struct matcher { /* a text on its way */
    uint32_t state;
    struct matcher *before, *after;
};

struct machine {
    const struct program *program;
    struct machine_state *states; /* [n_states]; the first is MACHINE_DEAD */
    uint32_t n_states, states_cap;
    struct machine_frame *frames; /* [n_frames]; the first is MACHINE_BOTTOM */
    uint32_t n_frames, frames_cap;
    struct member_sets sets;
    uint32_t *state_heads, *frame_heads; /* chains by hash */
    size_t bytes;                        /* of states, with what hangs on them, but for masks */
    size_t mask_bytes;
    struct matcher *matchers; /* all that there are */
    uint64_t work;            /* steps taken; machine_begin bounds those of a turn */
    uint64_t work_end;
    bool out_of_memory;
    struct error failure; /* why the last MACHINE_E_LIMIT was */
    /* scratch */
    struct machine_way *ways, *stack; /* [scratch_cap] */
    uint32_t n_ways, n_stack, scratch_cap;
    uint64_t *seen; /* [SEEN] (round, node, frame) */
    uint32_t *seen_rounds;
    uint32_t round;
};

/* The program outlives the machine. 0 or -ENOMEM. */
int machine_init(struct machine *machine, const struct program *program);
void machine_deinit(struct machine *machine);

/* A turn begins: what is too much of the past is forgotten, and `most_work` steps may be taken. 0, -ENOMEM.
 * States and frames keep their numbers only until the next one; those of matchers follow. */
int machine_begin(struct machine *machine, uint64_t most_work);

/* Puts a matcher at the beginning of a text, and into the machine's list. 0, MACHINE_E_LIMIT, -ENOMEM. */
int matcher_init(struct matcher *matcher, struct machine *machine);
void matcher_deinit(struct matcher *matcher, struct machine *machine);

/* What a byte makes of a state: 0 with the state, which may be MACHINE_DEAD; MACHINE_E_LIMIT; -ENOMEM. */
int machine_step(struct machine *machine, uint32_t state, uint8_t class, uint32_t *ret_state);

/* The state of these nodes over a frame: what the rule that begins or goes on there makes possible. */
int machine_state_at(struct machine *machine, uint32_t node, uint32_t frame, uint32_t *ret_state);

/* The frame of a text that ends where this frame's rule returns, with the same set. 0, MACHINE_E_LIMIT,
 * -ENOMEM. */
int machine_end_of(struct machine *machine, uint32_t frame, uint32_t *ret_frame);

/* The state of these ways. They all take a byte; sorted in place. */
int machine_intern(struct machine *machine, struct machine_way *ways, uint32_t n, bool accepting,
                   uint32_t *ret_state);

/* Charges so many steps to the turn. 0 or MACHINE_E_LIMIT. */
int machine_charge(struct machine *machine, uint64_t steps);

/* As machine_step, where the way is known already: as it is nearly always. */
static inline int machine_next(struct machine *machine, uint32_t state, uint8_t class, uint32_t *ret_state)
{
    uint32_t next = machine->states[state].next[class];
    if (__builtin_expect(next == UINT32_MAX, 0))
        return machine_step(machine, state, class, ret_state);
    *ret_state = next;
    return 0;
}

#endif
