/* SPDX-License-Identifier: MIT */
/* A mask is one walk of the trie, and most of a walk is the same wherever the state's frame stands.
 *
 * The ways of a state that share a frame are looked at as if that frame were the bottom: which tokens stay
 * within it, and at which nodes of the trie the rule may have returned. That depends on the nodes alone, and
 * on the members that came where a rule has those, and is remembered; inside the string of a JSON document it
 * is a hundred thousand tokens. What remains are the few tokens that go on after the return, and for those
 * the rest of their bytes is tried over the real frame. The sum is remembered too, by the state.
 *
 * Over the bottom there is more room than over a frame that is deep already (MACHINE_MOST_DEPTH), so the ways
 * of such a one are tried as they are. */

#include "text/grammar/machine/mask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct machine_mask {
    uint32_t n_returns;
    uint32_t *returns; /* [n_returns] nodes of the trie: behind them the frame may have returned */
    uint32_t bits[];   /* [mask_words] */
};

struct walk {
    struct machine *machine;
    const struct token_trie *trie;
    uint32_t *bits;
    uint32_t *returns; /* NULL: returns are ways like others */
    uint32_t n_returns;
    uint32_t steps; /* not charged yet */
};

static inline void allow(const struct walk *walk, uint32_t node)
{
    const struct token_trie *trie = walk->trie;
    for (uint32_t i = trie->firsts[node]; i < trie->firsts[node + 1]; i++) {
        uint32_t id = (uint32_t)trie->ids[i];
        walk->bits[id / 32] |= 1u << id % 32;
    }
}

/* Charges eight steps as one; what is left over is charged with the next. */
static int charge(struct walk *walk)
{
    uint32_t n = walk->steps / 8;
    walk->steps %= 8;
    return machine_charge(walk->machine, n);
}

/* Tries the nodes first … end − 1, which all lie below one of `depth` that `state` was reached by. */
static int walk_below(struct walk *walk, uint32_t state, uint32_t first, uint32_t end, uint32_t depth)
{
    const struct token_trie *trie = walk->trie;
    struct machine *machine = walk->machine;
    const uint8_t *classes = machine->program->classes;
    uint32_t states[TOKEN_TRIE_MOST_BYTES + 1];
    states[depth] = state;
    for (uint32_t i = first; i < end;) {
        uint32_t next;
        int r = machine_next(machine, states[trie->depths[i] - 1], classes[trie->bytes[i]], &next);
        if (r != 0)
            return r;
        const struct machine_state *reached = &machine->states[next];
        if (reached->n_ways > 0 || (reached->accepting && !walk->returns))
            allow(walk, i);
        if (reached->accepting && walk->returns)
            walk->returns[walk->n_returns++] = i;
        states[trie->depths[i]] = next;
        i = reached->n_ways > 0 ? i + 1 : trie->skips[i];
        walk->steps++;
    }
    return charge(walk);
}

/* What is within the frame of a state that has one frame, an end. */
static int make_within(struct machine *machine, const struct token_trie *trie, uint32_t state)
{
    const size_t words = mask_words(trie->n_vocab);
    struct walk walk = {.machine = machine, .trie = trie};
    uint32_t *returns = malloc((trie->n_nodes + (size_t)1) * sizeof *returns);
    walk.bits = calloc(words + 1, sizeof *walk.bits);
    walk.returns = returns;
    int r = walk.bits && returns ? walk_below(&walk, state, 0, trie->n_nodes, 0) : -ENOMEM;
    size_t bytes =
        sizeof(struct machine_mask) + words * sizeof *walk.bits + walk.n_returns * sizeof *walk.returns;
    struct machine_mask *mask = r == 0 ? malloc(bytes) : NULL;
    if (r == 0 && !mask)
        r = -ENOMEM;
    if (r == 0) {
        memcpy(mask->bits, walk.bits, words * sizeof *walk.bits);
        mask->returns = mask->bits + words;
        mask->n_returns = walk.n_returns;
        memcpy(mask->returns, returns, walk.n_returns * sizeof *returns);
        machine->mask_bytes += bytes;
        machine->states[state].within = mask;
    }
    free(walk.bits);
    free(returns);
    return r;
}

/* Adds the ids that the ways of one frame allow: n of them, which it changes. */
static int add_frame(struct walk *walk, struct machine_way *ways, uint32_t n, uint32_t frame)
{
    struct machine *machine = walk->machine;
    const struct token_trie *trie = walk->trie;
    const size_t words = mask_words(trie->n_vocab);
    uint32_t state, end, outside = MACHINE_DEAD;
    int r = machine_end_of(machine, frame, &end);
    for (uint32_t i = 0; i < n && r == 0; i++)
        ways[i].frame = end;
    if (r == 0)
        r = machine_intern(machine, ways, n, false, &state);
    if (r == 0 && !machine->states[state].within)
        r = make_within(machine, trie, state);
    if (r == 0 && frame != MACHINE_BOTTOM)
        r = machine_state_at(machine, machine->frames[frame].node, machine->frames[frame].below, &outside);
    if (r != 0)
        return r;
    const struct machine_mask *within = machine->states[state].within;
    for (size_t i = 0; i < words; i++)
        walk->bits[i] |= within->bits[i];
    if (frame != MACHINE_BOTTOM && outside == MACHINE_DEAD)
        return 0;
    for (uint32_t i = 0; i < within->n_returns && r == 0; i++) {
        uint32_t node = within->returns[i];
        allow(walk, node);
        walk->steps++;
        r = machine->states[outside].n_ways > 0
                ? walk_below(walk, outside, node + 1, trie->skips[node], trie->depths[node])
                : charge(walk);
    }
    return r;
}

static int make_whole(struct machine *machine, const struct token_trie *trie, uint32_t state)
{
    const size_t words = mask_words(trie->n_vocab);
    const uint32_t n = machine->states[state].n_ways;
    const struct machine_way *ways = machine->states[state].ways; /* stays where it is until the next turn */
    struct machine_mask *mask = calloc(1, sizeof *mask + words * sizeof *mask->bits);
    struct machine_way *part = malloc((n + (size_t)1) * sizeof *part);
    struct walk walk = {.machine = machine, .trie = trie, .bits = mask ? mask->bits : NULL};
    int r = mask && part ? 0 : -ENOMEM;
    bool deep = false;
    for (uint32_t i = 0; i < n; i++)
        deep |= machine->frames[ways[i].frame].depth > MACHINE_MOST_DEPTH / 2;
    if (r == 0 && deep)
        r = walk_below(&walk, state, 0, trie->n_nodes, 0);
    for (uint32_t i = 0, of_frame; !deep && i < n && r == 0; i += of_frame) {
        for (of_frame = 0; i + of_frame < n && ways[i + of_frame].frame == ways[i].frame; of_frame++)
            part[of_frame] = ways[i + of_frame];
        r = add_frame(&walk, part, of_frame, ways[i].frame);
    }
    free(part);
    if (r != 0) {
        free(mask);
        return r;
    }
    machine->mask_bytes += sizeof *mask + words * sizeof *mask->bits;
    machine->states[state].whole = mask;
    return 0;
}

int mask_of(struct machine *machine, const struct token_trie *trie, uint32_t state, uint32_t *ret_bits)
{
    int r = machine->states[state].whole ? 0 : make_whole(machine, trie, state);
    if (r == 0)
        memcpy(ret_bits, machine->states[state].whole->bits, mask_words(trie->n_vocab) * sizeof *ret_bits);
    return r;
}
