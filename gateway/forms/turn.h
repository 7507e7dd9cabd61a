/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_TURN_H
#define GATEWAY_FORMS_TURN_H

/* An answer that is a turn of a conversation: applies the dialect of its model to the request and to the
 * answer's text. */

#include "gateway/answers/choice.h"

/* Reads the dialect of the request's model into `dialect`, which is initialized, and sets what depends on it:
 * variables of the template and marks. 0 or REFUSED. */
int turn_apply(const struct gateway *gateway, struct parameters *parameters, struct model_dialect *dialect,
               struct refusal *refusal);

/* Sets the grammar that calls, or the text after a thought, must match. 0 or REFUSED. */
int turn_constrain(struct parameters *parameters, const struct model_dialect *dialect,
                   struct refusal *refusal);

/* Sets what to find in the answers, and keeps the tools for that. Takes over the dialect, and leaves an
 * initialized one. 0 or -ENOMEM. */
int turn_expect(struct generation *generation, const struct parameters *parameters,
                struct model_dialect *dialect);

#endif
