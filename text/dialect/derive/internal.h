/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_DERIVE_INTERNAL_H
#define TEXT_DIALECT_DERIVE_INTERNAL_H

/* What the parts of a derivation share. */

#include "text/dialect/derive/derive.h"
#include "text/dialect/derive/probe.h"

#define DERIVATION_MOST_TEXTS 192

struct derivation {
    struct probe probe;
    struct model_dialect *dialect;
    struct bytes source;
    struct dialect_stops stops;
    int fatal;                          /* -ENOMEM, or -EMSGSIZE: the template exceeds its bounds */
    char *texts[DERIVATION_MOST_TEXTS]; /* [n_texts] rendered; freed at the end */
    size_t n_texts;
    bool without_tools; /* the template is not told of tools when calls are rendered */
    /* What prompts add behind the question: by themselves, with thinking on, and off; empty if not known. */
    struct span prompt, prompt_on, prompt_off;
    /* Behind the text of an answer, to the end of its turn; what closes the text is not part of it. */
    struct span end_of_turn;
};

/* Renders a conversation (taken) and gives what stands behind the question, or an empty span at NULL. */
struct span derivation_render(struct derivation *derivation, json_t *messages, struct probe_manner manner);

/* Keeps a text in the dialect; "" and fatal without memory. */
const char *derivation_keep(struct derivation *derivation, struct span text);

/* derive_thoughts.c: the switches, and the prompts behind them; then the thoughts. */
void derive_switches(struct derivation *derivation);
void derive_thoughts(struct derivation *derivation);

/* Takes blanks, thoughts without words and their marks from the front. */
struct span derive_without_thought(const struct derivation *derivation, struct span text);

/* derive_content.c: what stands around an answer's text. */
void derive_content(struct derivation *derivation);

/* derive_calls.c */
void derive_calls(struct derivation *derivation);

/* derive_members.c: how a call's parameters are written that are not JSON. `call` is what stands behind the
 * question where a call of PROBE_FIRST has PROBE_ONE and PROBE_TWO. False, with the reason in the dialect: it
 * is not derivable. */
bool derive_members(struct derivation *derivation, struct span call, bool with_result);

/* verify.c: whether the calls of PROBE_FIRST, and PROBE_SECOND where there are two, come back from a text
 * that has them: what an answer would be. */
bool derive_reads_back(struct derivation *derivation, struct span answer, size_t n_calls);

/* derivation.c, for both: a question and this answer (taken), with a result behind it. */
struct span derive_render_answer(struct derivation *derivation, json_t *message, bool with_result);
/* The same with a call of PROBE_FIRST with these arguments (taken). */
struct span derive_render_call(struct derivation *derivation, json_t *arguments, bool with_result);

#endif
