/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_WISH_H
#define GATEWAY_FLEET_WISH_H

/* What a request needs from a pool, for fleet_choose. The gateway has no tokenizer, so numbers of tokens are
 * estimated from bytes. */

#include <stdint.h>

#define WISH_DECODE_TOKENS 256 /* at most, for an answer: clients that allow more rarely need it */

struct prompt_pieces; /* proto/prompts/pieces.h */
struct quern_request;

struct fleet_wish {
    const char *model;                  /* NULL: any */
    const struct prompt_pieces *pieces; /* of its prompt; NULL: none */
    double tokens;                      /* of the prompt, estimated */
    double decode;                      /* to be generated, estimated */
    uint32_t context;                   /* the pool's must be at least this long; 0: any */
    const char *digest;                 /* of the model, which must match; NULL: any of that name */
    const char *arithmetic;             /* preferred; NULL: any */
};

/* The pieces of a request's prompt, hashed from this seed as by a pool that has reported this base of its
 * space ("": none has; see proto/prompts/space.h). NULL if the prompt is short, is not to be cached, or is
 * for an embedding, or if out of memory. Free them with free(). */
struct prompt_pieces *wish_pieces(const struct quern_request *request, uint64_t seed, const char *space);

/* About how many tokens the request's prompt has, and how many will be generated. */
double wish_prompt_tokens(const struct quern_request *request);
double wish_decode_tokens(const struct quern_request *request);

#endif
