/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_GENERATION_H
#define GATEWAY_FORMS_GENERATION_H

/* Answers a request for text: one request to the pool for each choice, written in the client's API.
 *
 * A generation lives until all its requests have ended, which may be after the exchange: if the client
 * leaves, they are cancelled. A rejection by the pool becomes an HTTP error if nothing was sent yet, and
 * otherwise an error in the stream. */

#include "gateway/answers/choice.h"

/* A complete handler: reads the body with the rows, and answers the exchange. `missing` names the required
 * parameter. `chat`: an API whose prompts are a user's messages, and which streams by default. */
void generation_handle(struct exchange *exchange, const struct json_row *rows, const char *missing, bool chat,
                       const struct dialect *dialect);

#endif
