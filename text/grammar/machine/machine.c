/* SPDX-License-Identifier: MIT */
/* States and frames, each kept once.
 *
 * What a byte makes of a state is the closure of where its ways go on: calls are entered, ends of rules
 * return, until every way stands before a node that takes a byte. A call whose rule would return to nothing
 * but a return gets no frame, so lists written as right recursion grow no stack. No rule begins with itself
 * (program_make.c), so the closure ends; how many ways it finds, how deep and how many steps it takes is
 * bounded, and beyond that the grammar is refused in the middle of the answer, with the bound's name. A way
 * that is deeper than MACHINE_MOST_DEPTH is left out: the grammar then is one that nests no deeper.
 *
 * All that is remembered is forgotten when there is too much of it: states of matchers are taken over. */

#include "text/grammar/machine/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define HEADS           (1u << 14)
#define SEEN            (1u << 14) /* places of the closure's table; a power of two above twice the ways */
#define MOST_CLOSURE    (SEEN / 2)
#define MANY_BYTES      ((size_t)8 << 20)  /* when a turn begins: beyond, all is forgotten */
#define MOST_BYTES      ((size_t)48 << 20) /* in the middle of one */
#define MANY_MASK_BYTES ((size_t)8 << 20)
#define MANY_FRAMES     (1u << 17)
#define MOST_FRAMES     (1u << 19)

static int limit(struct machine *machine, const char *what)
{
    return error_set(&machine->failure, MACHINE_E_LIMIT, "the grammar is too complex: %s", what);
}

int machine_charge(struct machine *machine, uint64_t steps)
{
    machine->work += steps;
    return machine->work > machine->work_end ? limit(machine, "one step takes too long") : 0;
}

/* ---- frames ---- */

static uint32_t frame_hash(uint32_t node, uint32_t below, uint32_t set)
{
    const uint32_t key[3] = {node, below, set};
    return (uint32_t)hash64(key, sizeof key, 1) % HEADS;
}

static int grow(void **items, uint32_t *cap, uint32_t n, size_t size)
{
    if (n < *cap)
        return 0;
    uint32_t wanted = *cap ? *cap * 2 : 64;
    void *grown = realloc(*items, (size_t)wanted * size);
    if (!grown)
        return -ENOMEM;
    *items = grown;
    *cap = wanted;
    return 0;
}

static int frame_of(struct machine *machine, uint32_t node, uint32_t below, uint32_t set, uint32_t *ret_frame)
{
    uint32_t *head = &machine->frame_heads[frame_hash(node, below, set)];
    for (uint32_t i = *head; i; i = machine->frames[i].chain) {
        const struct machine_frame *frame = &machine->frames[i];
        if (frame->node == node && frame->below == below && frame->set == set) {
            *ret_frame = i;
            return 0;
        }
    }
    if (machine->n_frames == MOST_FRAMES)
        return limit(machine, "more than 524288 frames of rules");
    int r = grow((void **)&machine->frames, &machine->frames_cap, machine->n_frames, sizeof *machine->frames);
    if (r < 0)
        return r;
    machine->frames[machine->n_frames] =
        (struct machine_frame){node, below, set, machine->frames[below].depth + 1, *head};
    *head = machine->n_frames++;
    *ret_frame = *head;
    return 0;
}

int machine_end_of(struct machine *machine, uint32_t frame, uint32_t *ret_frame)
{
    uint32_t set = machine->frames[frame].set;
    if (set != MEMBER_SETS_EMPTY)
        return frame_of(machine, MACHINE_ENDS, MACHINE_BOTTOM, set, ret_frame);
    *ret_frame = MACHINE_BOTTOM;
    return 0;
}

/* The frame with one member more. */
static int mark(struct machine *machine, uint32_t member, uint32_t frame, uint32_t *ret_frame)
{
    const struct machine_frame own = machine->frames[frame];
    uint32_t set;
    int r = member_sets_add(&machine->sets, own.set, member, machine->program->most_count, &set);
    if (r > 0)
        return limit(machine, "too many orders of members");
    return r < 0 ? r : frame_of(machine, own.node, own.below, set, ret_frame);
}

/* ---- states ---- */

static int compare_ways(const void *a, const void *b)
{
    const struct machine_way *x = a, *y = b;
    if (x->frame != y->frame)
        return x->frame < y->frame ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static int add_state(struct machine *machine, const struct machine_way *ways, uint32_t n, bool accepting,
                     uint32_t *head)
{
    const size_t n_classes = machine->program->n_classes;
    size_t bytes = n * sizeof *ways + n_classes * sizeof(uint32_t);
    if (machine->bytes + bytes > MOST_BYTES)
        return limit(machine, "its states take more than 48 MiB");
    int r = grow((void **)&machine->states, &machine->states_cap, machine->n_states, sizeof *machine->states);
    uint8_t *memory = r == 0 ? malloc(bytes) : NULL;
    if (!memory)
        return -ENOMEM;
    struct machine_state *state = &machine->states[machine->n_states];
    *state =
        (struct machine_state){.ways = (void *)memory, .n_ways = n, .accepting = accepting, .chain = *head};
    if (n > 0)
        memcpy(state->ways, ways, n * sizeof *ways);
    state->next = (uint32_t *)(void *)(memory + n * sizeof *ways);
    memset(state->next, 0xff, n_classes * sizeof *state->next);
    machine->bytes += bytes + sizeof *state;
    *head = machine->n_states++;
    return 0;
}

int machine_intern(struct machine *machine, struct machine_way *ways, uint32_t n, bool accepting,
                   uint32_t *ret_state)
{
    if (n == 0 && !accepting) {
        *ret_state = MACHINE_DEAD;
        return 0;
    }
    qsort(ways, n, sizeof *ways, compare_ways);
    uint32_t *head = &machine->state_heads[hash64(ways, n * sizeof *ways, accepting) % HEADS];
    for (uint32_t i = *head; i; i = machine->states[i].chain) {
        const struct machine_state *state = &machine->states[i];
        if (state->accepting == accepting && state->n_ways == n &&
            memcmp(state->ways, ways, n * sizeof *ways) == 0) {
            *ret_state = i;
            return 0;
        }
    }
    int r = add_state(machine, ways, n, accepting, head);
    if (r == 0)
        *ret_state = *head;
    return r;
}

/* ---- closures ---- */

static void begin_closure(struct machine *machine)
{
    machine->n_ways = machine->n_stack = 0;
    if (++machine->round == 0) {
        memset(machine->seen_rounds, 0, SEEN * sizeof *machine->seen_rounds);
        machine->round = 1;
    }
}

/* Puts a place on the stack, unless the closure was there. MACHINE_E_LIMIT: it has too many. */
static int visit(struct machine *machine, uint32_t node, uint32_t frame)
{
    uint64_t key = (uint64_t)frame << 32 | node;
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 32) % SEEN, tries = 0;
    while (machine->seen_rounds[at] == machine->round) {
        if (machine->seen[at] == key)
            return 0;
        at = (at + 1) % SEEN;
        if (++tries > MOST_CLOSURE)
            return limit(machine, "too many ways to read one text");
    }
    if (machine->n_stack == machine->scratch_cap)
        return limit(machine, "too many ways to read one text");
    machine->seen_rounds[at] = machine->round;
    machine->seen[at] = key;
    machine->stack[machine->n_stack++] = (struct machine_way){frame, node};
    return 0;
}

/* Enters a rule. A tail call leaves no frame; one that is too deep is left out. */
static int enter(struct machine *machine, const struct node *call, uint32_t frame)
{
    uint32_t inner = frame;
    int r = 0;
    if (call->kind == NODE_ENTER || machine->program->nodes[call->next].kind != NODE_RETURN) {
        if (machine->frames[frame].depth >= MACHINE_MOST_DEPTH)
            return 0;
        r = frame_of(machine, call->next, frame, MEMBER_SETS_EMPTY, &inner);
    }
    return r == 0 ? visit(machine, call->what, inner) : r;
}

/* Goes on at each member that may come. */
static int pick(struct machine *machine, const struct program_members *members, uint32_t frame)
{
    const struct program *program = machine->program;
    const uint32_t set = machine->frames[frame].set;
    int r = machine_charge(machine, members->n_named);
    for (uint32_t i = 0; i < members->n_named && r == 0; i++)
        if (member_sets_may(&machine->sets, set, program, members, i))
            r = visit(machine, program->entries[members->first + i], frame);
    for (uint32_t i = 0; i < members->n_others && r == 0; i++)
        if (member_sets_may(&machine->sets, set, program, members, PROGRAM_OTHER))
            r = visit(machine, program->entries[members->first + members->n_named + i], frame);
    return r;
}

/* Of a node that stands for members: goes on where it leads to. */
static int step_members(struct machine *machine, const struct node *node, uint32_t frame)
{
    const struct program *program = machine->program;
    const uint32_t set = machine->frames[frame].set;
    if (node->kind == NODE_PICK)
        return pick(machine, &program->lists[node->what], frame);
    if (node->kind == NODE_MARK) {
        uint32_t marked;
        int r = mark(machine, node->what, frame, &marked);
        return r == 0 ? visit(machine, node->next, marked) : r;
    }
    bool on = node->kind == NODE_MORE
                  ? member_sets_more(&machine->sets, set, program, &program->lists[node->what])
                  : member_sets_done(&machine->sets, set, program, &program->lists[node->what]);
    return on ? visit(machine, node->next, frame) : 0;
}

/* Goes on from what is on the stack until every way stands before a byte. */
static int close_over(struct machine *machine, bool *ret_accepting)
{
    int r = 0;
    while (machine->n_stack > 0 && r == 0) {
        struct machine_way at = machine->stack[--machine->n_stack];
        const struct node *node = &machine->program->nodes[at.node];
        machine->work++;
        switch ((enum node_kind)node->kind) {
        case NODE_MATCH:
            if (machine->n_ways == MACHINE_MOST_WAYS)
                return limit(machine, "more than 4096 ways to read one text");
            machine->ways[machine->n_ways++] = at;
            break;
        case NODE_SPLIT:
            r = visit(machine, node->what, at.frame);
            if (r == 0)
                r = visit(machine, node->next, at.frame);
            break;
        case NODE_CALL:
        case NODE_ENTER:
            r = enter(machine, node, at.frame);
            break;
        case NODE_PICK:
        case NODE_MARK:
        case NODE_MORE:
        case NODE_DONE:
            r = step_members(machine, node, at.frame);
            break;
        case NODE_RETURN:
            if (at.frame == MACHINE_BOTTOM || machine->frames[at.frame].node == MACHINE_ENDS)
                *ret_accepting = true;
            else
                r = visit(machine, machine->frames[at.frame].node, machine->frames[at.frame].below);
            break;
        }
    }
    return r;
}

static int finish_closure(struct machine *machine, uint32_t *ret_state)
{
    bool accepting = false;
    int r = close_over(machine, &accepting);
    if (r == 0)
        r = machine_charge(machine, 0);
    return r == 0 ? machine_intern(machine, machine->ways, machine->n_ways, accepting, ret_state) : r;
}

int machine_state_at(struct machine *machine, uint32_t node, uint32_t frame, uint32_t *ret_state)
{
    begin_closure(machine);
    int r = visit(machine, node, frame);
    return r == 0 ? finish_closure(machine, ret_state) : r;
}

int machine_step(struct machine *machine, uint32_t state, uint8_t class, uint32_t *ret_state)
{
    const struct program *program = machine->program;
    const uint8_t byte = program->members[class];
    uint32_t next;
    int r = 0;
    begin_closure(machine);
    for (uint32_t i = 0; i < machine->states[state].n_ways && r == 0; i++) {
        const struct machine_way *way = &machine->states[state].ways[i];
        const struct node *node = &program->nodes[way->node];
        machine->work++;
        if (byte_set_has(&program->sets[node->what], byte))
            r = visit(machine, node->next, way->frame);
    }
    if (r == 0)
        r = finish_closure(machine, &next);
    if (r != 0)
        return r;
    machine->states[state].next[class] = *ret_state = next;
    return 0;
}

/* ---- life ---- */

static void forget(struct machine *machine)
{
    for (uint32_t i = 0; i < machine->n_states; i++) {
        free(machine->states[i].within);
        free(machine->states[i].whole);
        free(machine->states[i].ways);
    }
    free(machine->states);
    free(machine->frames);
    free(machine->state_heads);
    free(machine->frame_heads);
    member_sets_deinit(&machine->sets);
    machine->states = NULL;
    machine->frames = NULL;
    machine->state_heads = machine->frame_heads = NULL;
}

/* The books of a machine that knows nothing but the dead state and the bottom. */
static int make_books(struct machine *machine)
{
    static const struct machine_frame bottom;
    uint32_t head = 0;
    machine->n_states = machine->states_cap = machine->n_frames = machine->frames_cap = 0;
    machine->bytes = machine->mask_bytes = 0;
    machine->state_heads = calloc(HEADS, sizeof *machine->state_heads);
    machine->frame_heads = calloc(HEADS, sizeof *machine->frame_heads);
    int r = machine->state_heads && machine->frame_heads ? member_sets_init(&machine->sets) : -ENOMEM;
    if (r == 0)
        r = grow((void **)&machine->frames, &machine->frames_cap, 0, sizeof *machine->frames);
    if (r == 0) {
        machine->frames[machine->n_frames++] = bottom;
        r = add_state(machine, NULL, 0, false, &head);
    }
    if (r == 0)
        memset(machine->states[0].next, 0, machine->program->n_classes * sizeof(uint32_t));
    return r;
}

int machine_init(struct machine *machine, const struct program *program)
{
    *machine = (struct machine){.program = program, .scratch_cap = MOST_CLOSURE};
    machine->ways = calloc(MACHINE_MOST_WAYS, sizeof *machine->ways);
    machine->stack = calloc(machine->scratch_cap, sizeof *machine->stack);
    machine->seen = calloc(SEEN, sizeof *machine->seen);
    machine->seen_rounds = calloc(SEEN, sizeof *machine->seen_rounds);
    int r = machine->ways && machine->stack && machine->seen && machine->seen_rounds ? make_books(machine)
                                                                                     : -ENOMEM;
    if (r < 0)
        machine_deinit(machine);
    return r;
}

void machine_deinit(struct machine *machine)
{
    forget(machine);
    free(machine->ways);
    free(machine->stack);
    free(machine->seen);
    free(machine->seen_rounds);
    *machine = (struct machine){0};
}

/* The frame of another machine in this one, from the bottom up. `map`: [n_frames of the other], 0: not yet.
 */
static int take_frame(struct machine *machine, const struct machine *old, uint32_t *map, uint32_t frame,
                      uint32_t *ret_frame)
{
    uint32_t path[MACHINE_MOST_DEPTH + 1], n = 0, below = MACHINE_BOTTOM;
    int r = 0;
    for (; frame != MACHINE_BOTTOM && map[frame] == 0; frame = old->frames[frame].below)
        path[n++] = frame;
    if (frame != MACHINE_BOTTOM)
        below = map[frame];
    while (n > 0 && r == 0) {
        uint32_t set = MEMBER_SETS_EMPTY;
        frame = path[--n];
        r = member_sets_take(&machine->sets, &old->sets, old->frames[frame].set, &set);
        if (r == 0)
            r = frame_of(machine, old->frames[frame].node, below, set, &below);
        map[frame] = below;
    }
    *ret_frame = below;
    return r;
}

static int take_state(struct machine *machine, const struct machine *old, uint32_t *map, uint32_t *state)
{
    const struct machine_state *from = &old->states[*state];
    int r = 0;
    for (uint32_t i = 0; i < from->n_ways && r == 0; i++) {
        machine->ways[i].node = from->ways[i].node;
        r = take_frame(machine, old, map, from->ways[i].frame, &machine->ways[i].frame);
    }
    return r == 0 ? machine_intern(machine, machine->ways, from->n_ways, from->accepting, state) : r;
}

/* Forgets all but where the matchers stand. Out of memory it stays as it was. */
static int start_afresh(struct machine *machine)
{
    struct machine old = *machine;
    uint32_t *map = calloc(old.n_frames, sizeof *map);
    uint32_t n = 0, at = 0;
    for (struct matcher *m = machine->matchers; m; m = m->after)
        n++;
    uint32_t *states = calloc(n + 1, sizeof *states);
    machine->states = NULL;
    machine->frames = NULL;
    machine->state_heads = machine->frame_heads = NULL;
    machine->sets = (struct member_sets){0};
    machine->n_states = 0;
    int r = map && states ? make_books(machine) : -ENOMEM;
    for (struct matcher *m = machine->matchers; m && r == 0; m = m->after, at++) {
        states[at] = m->state;
        r = take_state(machine, &old, map, &states[at]);
    }
    at = 0;
    for (struct matcher *m = machine->matchers; m && r == 0; m = m->after)
        m->state = states[at++];
    free(map);
    free(states);
    if (r == 0) {
        forget(&old);
        return 0;
    }
    forget(machine);
    *machine = old;
    return r < 0 ? r : 0;
}

int machine_begin(struct machine *machine, uint64_t most_work)
{
    machine->work = 0;
    machine->work_end = most_work;
    for (uint32_t i = 0; i < machine->n_states && machine->mask_bytes > MANY_MASK_BYTES; i++) {
        free(machine->states[i].within);
        free(machine->states[i].whole);
        machine->states[i].within = machine->states[i].whole = NULL;
    }
    if (machine->mask_bytes > MANY_MASK_BYTES)
        machine->mask_bytes = 0;
    bool much = machine->bytes > MANY_BYTES || machine->n_frames > MANY_FRAMES;
    return much ? start_afresh(machine) : 0;
}

int matcher_init(struct matcher *matcher, struct machine *machine)
{
    uint32_t state;
    int r = machine_state_at(machine, machine->program->start, MACHINE_BOTTOM, &state);
    if (r != 0)
        return r;
    *matcher = (struct matcher){.state = state, .after = machine->matchers};
    if (machine->matchers)
        machine->matchers->before = matcher;
    machine->matchers = matcher;
    return 0;
}

void matcher_deinit(struct matcher *matcher, struct machine *machine)
{
    if (matcher->before)
        matcher->before->after = matcher->after;
    else if (machine->matchers == matcher)
        machine->matchers = matcher->after;
    if (matcher->after)
        matcher->after->before = matcher->before;
    *matcher = (struct matcher){0};
}
