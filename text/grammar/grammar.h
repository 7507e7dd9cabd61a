/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_GRAMMAR_H
#define TEXT_GRAMMAR_GRAMMAR_H

/* Constrained output: a grammar, read once, and the position of each answer in it.
 *
 *     grammar_make ──▶ struct grammar ──grammar_answer_new──▶ struct grammar_answer: take ids, ask for masks
 *
 * Requests share a grammar: grammar_ref and grammar_free count references, from any thread. Calls of
 * grammar_answer_* are for one thread at a time, across all answers of a grammar. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/grammar/expression.h"
#include "text/grammar/token_trie.h"

enum grammar_kind {
    GRAMMAR_GBNF,   /* gbnf.h */
    GRAMMAR_JSON,   /* any JSON object; takes no text */
    GRAMMAR_SCHEMA, /* json_schema.h */
    GRAMMAR_REGEX   /* regex.h */
};

#define GRAMMAR_MOST_BYTES (1u << 18) /* of a text */

struct grammar;

/* Reads a grammar. Hostile input takes up to a second. 0; GRAMMAR_E_INVALID with the reason; -ENOMEM. */
int grammar_make(enum grammar_kind kind, struct bytes text, struct grammar **ret_grammar, struct error *err);

struct grammar *grammar_ref(struct grammar *grammar);
/* Drops a reference; the last one frees. Takes NULL and returns NULL. */
struct grammar *grammar_free(struct grammar *grammar);

/* One answer in progress. */
struct grammar_answer;

/* At the beginning of an answer; holds a reference. 0, GRAMMAR_E_INVALID (too complex), -ENOMEM. */
int grammar_answer_new(struct grammar *grammar, struct grammar_answer **ret_answer, struct error *err);
struct grammar_answer *grammar_answer_free(struct grammar_answer *answer);

/* Extends the answer by text. 0; or GRAMMAR_E_INVALID with a reason if the grammar does not allow it or it
 * is too complex to decide; the answer is then unchanged. */
int grammar_answer_take(struct grammar_answer *answer, struct bytes text, struct error *err);

/* Whether that text could be taken; changes nothing. */
int grammar_answer_try(struct grammar_answer *answer, struct bytes text, struct error *err);

/* Whether the answer may end here; whether it must, because nothing else can follow. */
bool grammar_answer_may_end(const struct grammar_answer *answer);
bool grammar_answer_must_end(const struct grammar_answer *answer);

/* Writes ret_bits [(n_vocab + 31) / 32]: the ids of the trie that may come next (mask.h). Always pass the
 * same trie for one grammar. Returns as grammar_answer_take. */
int grammar_answer_mask(struct grammar_answer *answer, const struct token_trie *trie, uint32_t *ret_bits,
                        struct error *err);

#endif
