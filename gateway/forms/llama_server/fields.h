/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_LLAMA_SERVER_FIELDS_H
#define GATEWAY_FORMS_LLAMA_SERVER_FIELDS_H

/* llama-server's `response_fields`: which members an answer has. `timings/prompt_n` names a member of a
 * member, which appears under that name in the answer. */

#include "gateway/core/parameters.h"
#include "gateway/json/json_out.h"

/* An array of names. */
json_row_take fields_take;

/* Writes the members of the object `all` that `fields` names (an array of names, as JSON); names without a
 * member are left out. */
void fields_write(const char *fields, const struct json_out *all, struct json_out *out);

#endif
