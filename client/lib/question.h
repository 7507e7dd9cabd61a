/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_QUESTION_H
#define CLIENT_LIB_QUESTION_H

#include "client/lib/core/state.h"

/* Sends a question: a status, trace, profile, trim, prefixes, tenants, tokenize or detokenize, whose ref
 * is set here. `fn` gets one answer. 0; -EINVAL, -EMSGSIZE, -ENOMEM, or the code of a broken session. */
int question_ask(struct quern *client, struct message *message, int timeout_ms, quern_answer_fn *fn,
                 void *arg, struct error *err);

/* Handles status_ok, trace_ok, profile_ok, trim_ok, prefixes_ok, tenants_ok, tokenize_ok, detokenize_ok, or
 * an error about a question. Ignores answers to unknown questions. */
void question_answer(struct quern *client, const struct message *message);

/* The session is open, perhaps with a new broker: asks all questions again, and restarts the time until they
 * are repeated. */
void questions_opened(struct quern *client);

/* Repeats questions, and gives up on those that waited too long. */
void questions_timers(struct quern *client);

/* Answers all questions with this code. */
void questions_fail_all(struct quern *client, int code, const char *text);

/* Frees all questions without a callback. */
void questions_drop_all(struct quern *client);

#endif
