/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_GENERATION_H
#define GATEWAY_FORMS_GENERATION_H

/* What answers an exchange that asks for text: one request of the pool for each choice, told in the form of
 * the client's family.
 *
 * It lives until all its requests have ended, which may be after the exchange: a client that goes away ends
 * them, and their ends are waited for. A refusal by the pool is an HTTP error as long as nothing was said,
 * and an error in the stream afterwards. */

#include "gateway/forms/choice.h"

/* A handler's whole work: has the body read by the rows, and answers the exchange with what it asks for.
 * `missing` names the parameter without which there is nothing to do. `chat`: a family whose prompts are what
 * a user says, and which streams unless it is told not to. */
void generation_handle(struct exchange *exchange, const struct json_row *rows, const char *missing, bool chat,
                       const struct dialect *dialect);

#endif
