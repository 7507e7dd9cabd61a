/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_JSON_REFUSAL_H
#define GATEWAY_JSON_REFUSAL_H

/* Why an exchange is not answered with what was asked for, and how each family of clients is told. */

#include <quern.h>
#include <stdint.h>

#include "gateway/json/json_out.h"

struct refusal {
    unsigned status;        /* of HTTP: 400 … 599 */
    const char *code;       /* OpenAI's word for it: "model_not_found"; NULL: none */
    char param[128];        /* the parameter that is wrong: "messages[2].role"; "": none in particular */
    char text[512];         /* one line for a person */
    uint32_t retry_after_s; /* 0: not said */
};

/* What a function that may refuse returns when it did; 0 when it did not. */
#define REFUSED 1

/* Fills it in (the text is cut to fit) and returns REFUSED. `code` and `param` may be NULL. */
int refuse(struct refusal *refusal, unsigned status, const char *code, const char *param, const char *format,
           ...) __attribute__((format(printf, 5, 6)));

/* A value that is wrong: 400, naming the parameter. */
#define refuse_value(refusal, param, ...) refuse(refusal, 400, NULL, param, __VA_ARGS__)

/* What the end of a request means, when it is none of those that an answer may have. */
void refusal_of_end(const struct quern_end *end, struct refusal *ret_refusal);

/* What quern_generate or a question failed with. */
void refusal_of_code(int code, const char *text, struct refusal *ret_refusal);

/* The families of clients. */
enum family { FAMILY_OPENAI, FAMILY_ANTHROPIC, FAMILY_OLLAMA };

/* The body of the answer, in the family's form. */
void refusal_write(const struct refusal *refusal, enum family family, struct json_out *out);

#endif
