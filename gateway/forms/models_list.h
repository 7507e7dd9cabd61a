/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_MODELS_LIST_H
#define GATEWAY_FORMS_MODELS_LIST_H

/* Lists of the models that the pool serves. */

#include "gateway/core/gateway.h"

typedef void model_writer(const struct gateway *gateway, const struct pool_model *model,
                          struct json_out *out);

/* Answers with `begin`, the output of `write` for each model, separated by commas, and `end`; or with an
 * error if there is no pool. */
void models_list(struct exchange *exchange, const char *begin, model_writer *write, const char *end);

#endif
