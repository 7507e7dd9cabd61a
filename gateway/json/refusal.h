/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_JSON_REFUSAL_H
#define GATEWAY_JSON_REFUSAL_H

/* The error that answers an exchange, written in the form of the client's family. */

#include <quern.h>
#include <stdint.h>

#include "gateway/json/json_out.h"

struct refusal {
    unsigned status;        /* of HTTP: 400 … 599 */
    const char *code;       /* OpenAI's code: "model_not_found"; NULL: none */
    char param[128];        /* the wrong parameter: "messages[2].role"; "": none in particular */
    char text[512];         /* one line for people */
    uint32_t retry_after_s; /* 0: unknown */
};

/* The result of a function that has set a refusal; otherwise it returns 0. */
#define REFUSED 1

/* Sets the refusal (the text is cut to fit) and returns REFUSED. `code` and `param` may be NULL. */
int refuse(struct refusal *refusal, unsigned status, const char *code, const char *param, const char *format,
           ...) __attribute__((format(printf, 5, 6)));

/* An invalid value: 400, naming the parameter. */
#define refuse_value(refusal, param, ...) refuse(refusal, 400, NULL, param, __VA_ARGS__)

/* The gateway is out of memory: 500. */
#define refuse_memory(refusal) refuse(refusal, 500, "out_of_memory", NULL, "the gateway is out of memory")

/* The error for the end of a request that did not end normally. */
void refusal_of_end(const struct quern_end *end, struct refusal *ret_refusal);

/* The error for a failure of quern_generate or of a question. */
void refusal_of_code(int code, const char *text, struct refusal *ret_refusal);

/* The families of clients. */
enum family { FAMILY_OPENAI, FAMILY_ANTHROPIC, FAMILY_OLLAMA };

/* The body of the answer, in the family's form. */
void refusal_write(const struct refusal *refusal, enum family family, struct json_out *out);

#endif
