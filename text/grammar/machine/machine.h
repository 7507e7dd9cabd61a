/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_MACHINE_MACHINE_H
#define TEXT_GRAMMAR_MACHINE_MACHINE_H

/* Runs a program: the positions of all texts generated from one grammar.
 *
 * A *frame* is a call that has not returned: its return node and the frame below. Equal frames are stored
 * once, so a stack is a number. A *state* is a set of (node, frame), all parses of the text so far, and
 * whether it may end here. Equal states are also stored once, and the successor of a state for a byte is
 * cached. So the used part of a grammar becomes a deterministic automaton over bytes, and equal positions in
 * two answers have the same number.
 *
 * One thread at a time: one machine serves all sequences of a grammar. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "text/grammar/machine/machine_sets.h"
#include "text/grammar/machine/program.h"

#define MACHINE_DEAD       0u /* no parse */
#define MACHINE_BOTTOM     0u /* the bottom frame: the end of the text */
#define MACHINE_MOST_DEPTH 512u
#define MACHINE_MOST_WAYS  4096u /* of a state */

/* Codes in addition to -ENOMEM; machine.failure names the limit. */
enum { MACHINE_E_LIMIT = 1 /* states, frames or work beyond the limits */ };

struct machine_way {
    uint32_t frame, node; /* the node takes a byte */
};

/* A rule whose members come in any order keeps the set of members so far in its frame: after each member it
 * continues in another frame. If `node` is MACHINE_ENDS, the rule's return ends the text: with this, mask.c
 * can consider a rule in isolation. */
#define MACHINE_ENDS UINT32_MAX

struct machine_frame {
    uint32_t node, below; /* continues at node, over the frame below */
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
    struct machine_mask *within, *whole; /* mask.c; NULL: not computed */
    uint32_t chain;
};

struct matcher { /* a text in progress */
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
    size_t bytes;                        /* bytes of states with their tables, without masks */
    size_t mask_bytes;
    struct matcher *matchers; /* all matchers */
    uint64_t work;            /* steps taken; machine_begin bounds those of a turn */
    uint64_t work_end;
    bool out_of_memory;
    struct error failure; /* reason of the last MACHINE_E_LIMIT */
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

/* Begins a turn: drops old states if there are too many, and allows `most_work` steps. 0, -ENOMEM. Numbers
 * of states and frames are valid only until the next turn; those in matchers are updated. */
int machine_begin(struct machine *machine, uint64_t most_work);

/* Sets a matcher to the start of a text, and adds it to the machine's list. 0, MACHINE_E_LIMIT, -ENOMEM. */
int matcher_init(struct matcher *matcher, struct machine *machine);
void matcher_deinit(struct matcher *matcher, struct machine *machine);

/* The successor of a state for a byte: 0 with the state, which may be MACHINE_DEAD; MACHINE_E_LIMIT;
 * -ENOMEM. */
int machine_step(struct machine *machine, uint32_t state, uint8_t class, uint32_t *ret_state);

/* The state of these nodes over a frame. */
int machine_state_at(struct machine *machine, uint32_t node, uint32_t frame, uint32_t *ret_state);

/* The frame of a text that ends where this frame's rule returns, with the same set. 0, MACHINE_E_LIMIT,
 * -ENOMEM. */
int machine_end_of(struct machine *machine, uint32_t frame, uint32_t *ret_frame);

/* The state of these ways, all of which take a byte. Sorts them in place. */
int machine_intern(struct machine *machine, struct machine_way *ways, uint32_t n, bool accepting,
                   uint32_t *ret_state);

/* Charges steps to the turn. 0 or MACHINE_E_LIMIT. */
int machine_charge(struct machine *machine, uint64_t steps);

/* machine_step with the cached case, by far the most frequent, inline. */
static inline int machine_next(struct machine *machine, uint32_t state, uint8_t class, uint32_t *ret_state)
{
    uint32_t next = machine->states[state].next[class];
    if (__builtin_expect(next == UINT32_MAX, 0))
        return machine_step(machine, state, class, ret_state);
    *ret_state = next;
    return 0;
}

#endif
