/* SPDX-License-Identifier: MIT */
/* The rules are read, made a program, and forgotten. The first state of an answer is found at once: a grammar
 * that is too much from the beginning is refused before anybody waits for an answer of it. */

#include "text/grammar/grammar.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "text/grammar/gbnf.h"
#include "text/grammar/json_schema/json_schema.h"
#include "text/grammar/machine/machine.h"
#include "text/grammar/machine/mask.h"
#include "text/grammar/regex.h"

#define RULES_BYTES ((size_t)64 << 20)
#define MOST_WORK   (1u << 22) /* of a machine in one call: some 40 ms */

struct grammar {
    atomic_uint references;
    struct program program;
    struct machine machine; /* of the thread that has answers */
};

struct grammar_answer {
    struct grammar *grammar;
    struct matcher matcher;
};

static int read_rules(enum grammar_kind kind, struct bytes text, struct rules *rules, struct error *err)
{
    switch (kind) {
    case GRAMMAR_GBNF:
        return gbnf_read(text, rules, err);
    case GRAMMAR_JSON:
        return json_schema_any_object(rules, err);
    case GRAMMAR_SCHEMA:
        return json_schema_read(text, rules, err);
    case GRAMMAR_REGEX:
        return regex_read(text, rules, err);
    }
    return error_set(err, GRAMMAR_E_INVALID, "grammar: unknown kind");
}

/* What the machine says, in the words of grammar.h. */
static int result(const struct grammar *grammar, int r, struct error *err)
{
    return r == MACHINE_E_LIMIT ? error_set(err, GRAMMAR_E_INVALID, "%s", grammar->machine.failure.text) : r;
}

static int try_beginning(struct grammar *grammar, struct error *err)
{
    struct matcher matcher;
    int r = machine_init(&grammar->machine, &grammar->program);
    if (r == 0)
        r = machine_begin(&grammar->machine, MOST_WORK);
    if (r == 0)
        r = matcher_init(&matcher, &grammar->machine);
    if (r == 0)
        matcher_deinit(&matcher, &grammar->machine);
    return result(grammar, r, err);
}

int grammar_make(enum grammar_kind kind, struct bytes text, struct grammar **ret_grammar, struct error *err)
{
    struct rules rules;
    if (text.len > GRAMMAR_MOST_BYTES)
        return error_set(err, GRAMMAR_E_INVALID, "grammar: %zu bytes; at most %u are allowed", text.len,
                         GRAMMAR_MOST_BYTES);
    struct grammar *grammar = calloc(1, sizeof *grammar);
    if (!grammar)
        return -ENOMEM;
    atomic_init(&grammar->references, 1);
    rules_init(&rules, RULES_BYTES);
    int r = read_rules(kind, text, &rules, err);
    /* Readers go on without what they did not get, and may find another reason, or none. */
    if (rules.arena.starved)
        r = -ENOMEM;
    else if (r == 0 && rules.arena.limited)
        r = error_set(err, GRAMMAR_E_INVALID, "grammar: too large");
    if (r == 0)
        r = program_make(&rules, &grammar->program, err);
    rules_deinit(&rules);
    if (r != 0) {
        free(grammar);
        return r;
    }
    r = try_beginning(grammar, err);
    if (r == 0)
        *ret_grammar = grammar;
    else
        grammar_free(grammar);
    return r;
}

struct grammar *grammar_ref(struct grammar *grammar)
{
    atomic_fetch_add_explicit(&grammar->references, 1, memory_order_relaxed);
    return grammar;
}

struct grammar *grammar_free(struct grammar *grammar)
{
    if (!grammar || atomic_fetch_sub_explicit(&grammar->references, 1, memory_order_acq_rel) > 1)
        return NULL;
    machine_deinit(&grammar->machine);
    program_deinit(&grammar->program);
    free(grammar);
    return NULL;
}

int grammar_answer_new(struct grammar *grammar, struct grammar_answer **ret_answer, struct error *err)
{
    struct grammar_answer *answer = calloc(1, sizeof *answer);
    int r = answer ? 0 : -ENOMEM;
    if (r == 0)
        r = machine_begin(&grammar->machine, MOST_WORK);
    if (r == 0)
        r = matcher_init(&answer->matcher, &grammar->machine);
    if (r != 0) {
        free(answer);
        return result(grammar, r, err);
    }
    answer->grammar = grammar_ref(grammar);
    *ret_answer = answer;
    return 0;
}

struct grammar_answer *grammar_answer_free(struct grammar_answer *answer)
{
    if (answer) {
        matcher_deinit(&answer->matcher, &answer->grammar->machine);
        grammar_free(answer->grammar);
    }
    free(answer);
    return NULL;
}

static int follow(struct grammar_answer *answer, struct bytes text, uint32_t *ret_state, struct error *err)
{
    struct machine *machine = &answer->grammar->machine;
    int r = machine_begin(machine, MOST_WORK);
    uint32_t state = answer->matcher.state;
    for (size_t i = 0; i < text.len && r == 0; i++) {
        uint8_t byte = ((const uint8_t *)text.data)[i];
        r = machine_next(machine, state, machine->program->classes[byte], &state);
        if (r == 0 && state == MACHINE_DEAD)
            return error_set(err, GRAMMAR_E_INVALID, "the grammar does not allow the byte 0x%02x here", byte);
    }
    if (r == 0)
        *ret_state = state;
    return result(answer->grammar, r, err);
}

int grammar_answer_take(struct grammar_answer *answer, struct bytes text, struct error *err)
{
    uint32_t state;
    int r = follow(answer, text, &state, err);
    if (r == 0)
        answer->matcher.state = state;
    return r;
}

int grammar_answer_try(struct grammar_answer *answer, struct bytes text, struct error *err)
{
    uint32_t state;
    return follow(answer, text, &state, err);
}

bool grammar_answer_may_end(const struct grammar_answer *answer)
{
    return answer->grammar->machine.states[answer->matcher.state].accepting;
}

bool grammar_answer_must_end(const struct grammar_answer *answer)
{
    const struct machine_state *state = &answer->grammar->machine.states[answer->matcher.state];
    return state->accepting && state->n_ways == 0;
}

int grammar_answer_mask(struct grammar_answer *answer, const struct token_trie *trie, uint32_t *ret_bits,
                        struct error *err)
{
    struct machine *machine = &answer->grammar->machine;
    int r = machine_begin(machine, MOST_WORK);
    if (r == 0)
        r = mask_of(machine, trie, answer->matcher.state, ret_bits);
    r = result(answer->grammar, r, err);
    /* What took much memory for once leaves it at once: there may be many grammars. */
    int trimmed = machine_begin(machine, MOST_WORK);
    return r != 0 ? r : trimmed;
}
