/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_ANSWERS_OUTPUTS_H
#define GATEWAY_ANSWERS_OUTPUTS_H

/* From the pool's outputs to the client's answer: sends the requests of a generation, takes their outputs,
 * and counts them. */

#include "gateway/answers/choice.h"

/* Sends as many of its requests as may run at once; the others follow as these end. 0, or the code of a
 * failure: then some may be running, and the caller must call generation_fail. */
int generation_send(struct generation *generation, struct quern_error *err);

/* Refuses the exchange, or ends its stream with the error, and cancels running requests. The generation is
 * freed with the last of its requests, or by the caller if none is running. */
void generation_fail(struct generation *generation, const struct refusal *refusal);

/* The client is gone (exchange_when_gone; `arg` is the generation): cancels running requests. */
void generation_gone(void *arg);

/* Frees the generation, and releases what it holds of its key. None of its requests may be running. */
void generation_free(struct generation *generation);

#endif
