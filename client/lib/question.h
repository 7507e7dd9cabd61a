/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_QUESTION_H
#define CLIENT_LIB_QUESTION_H

#include "client/lib/core/state.h"

/* Asks: a status, tokenize or detokenize, whose ref is set here. One answer will come to `fn`. -EINVAL,
 * -EMSGSIZE, -ENOMEM, or what broke the session. */
int question_ask(struct quern *client, struct message *message, int timeout_ms, quern_answer_fn *fn,
                 void *arg, struct error *err);

/* Takes status_ok, tokenize_ok, detokenize_ok, or an error about a question. What answers nothing that waits
 * is passed over. */
void question_answer(struct quern *client, const struct message *message);

/* Asks again, and gives up what waited for too long. */
void questions_timers(struct quern *client);

/* Each is answered with the code. */
void questions_fail_all(struct quern *client, int code, const char *text);

/* Forgets them without a call. */
void questions_drop_all(struct quern *client);

#endif
