/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_OPENAI_COMPLETIONS_H
#define GATEWAY_FORMS_OPENAI_COMPLETIONS_H

#include "gateway/http/exchange.h"
#include "gateway/json/json_in.h"

/* POST /v1/completions. */
exchange_handler completions_handle;

/* The fields of its body, read into a struct parameters. */
extern const struct json_row completions_rows[];

#endif
