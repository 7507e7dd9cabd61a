/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_DERIVE_INTERNAL_H
#define TEXT_DIALECT_DERIVE_INTERNAL_H

/* Private to the parts of a derivation. */

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
    bool without_tools; /* calls are rendered without passing tools to the template */
    /* The text that prompts add after the question: by default, with thinking on, and off; empty if unknown.
     */
    struct span prompt, prompt_on, prompt_off;
    /* From the text of an answer to the end of its turn, without the mark that closes the text. */
    struct span end_of_turn;
};

/* Renders a conversation (taken) and returns the text after the question; on failure an empty span at NULL.
 */
struct span derivation_render(struct derivation *derivation, json_t *messages, struct probe_manner manner);

/* Keeps a text in the dialect; "" and `fatal` if out of memory. */
const char *derivation_keep(struct derivation *derivation, struct span text);

/* derive_thoughts.c: the switches, and their prompts; then the thoughts. */
void derive_switches(struct derivation *derivation);
void derive_thoughts(struct derivation *derivation);

/* Strips blanks and empty thoughts with their marks from the front. */
struct span derive_without_thought(const struct derivation *derivation, struct span text);

/* derive_content.c: the marks around an answer's text. */
void derive_content(struct derivation *derivation);

/* derive_calls.c */
void derive_calls(struct derivation *derivation);

/* derive_members.c: how parameters are written that are not JSON. `call` is the text after the question for a
 * call of PROBE_FIRST with PROBE_ONE and PROBE_TWO. False, with the reason in the dialect: it cannot be
 * derived. */
bool derive_members(struct derivation *derivation, struct span call, bool with_result);

/* verify.c: whether parsing `answer` returns its n_calls calls, of PROBE_FIRST and then PROBE_SECOND. */
bool derive_reads_back(struct derivation *derivation, struct span answer, size_t n_calls);

/* derivation.c, for both: renders a question and this answer (taken), optionally followed by a result. */
struct span derive_render_answer(struct derivation *derivation, json_t *message, bool with_result);
/* The same with a call of PROBE_FIRST with these arguments (taken). */
struct span derive_render_call(struct derivation *derivation, json_t *arguments, bool with_result);

#endif
