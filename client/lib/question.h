/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_QUESTION_H
#define CLIENT_LIB_QUESTION_H

#include "client/lib/state.h"

/* Takes status_ok, tokenize_ok, or an error about a question. What does not answer the question that is
 * waited for is passed over; of what does, client->question says so. */
void question_answer(struct quern *client, const struct message *message);

#endif
