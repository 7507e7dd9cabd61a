/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_WISH_H
#define GATEWAY_FLEET_WISH_H

/* What a request needs of a pool, by which fleet_choose compares pools. The gateway has no tokenizer, so
 * numbers of tokens are estimates from bytes. */

#include <stdint.h>

#define WISH_DECODE_TOKENS 256 /* of an answer, at most: who says more rarely means it */

struct prompt_pieces; /* proto/prompts/pieces.h */
struct quern_request;

struct fleet_wish {
    const char *model;                  /* NULL: any */
    const struct prompt_pieces *pieces; /* of its prompt; NULL: none */
    double tokens;                      /* of the prompt, estimated */
    double decode;                      /* to be generated, estimated */
    uint32_t context;                   /* the pool's has to be that long; 0: any */
    const char *digest;                 /* of the model: no other; NULL: any of that name */
    const char *arithmetic;             /* preferred; NULL: any */
};

/* The pieces of a request's prompt, as hashed from this seed by a pool that has told this base of its space
 * ("": none has; see proto/prompts/space.h). NULL if the prompt is short, not to be cached or of an
 * embedding, or out of memory. free() frees them. */
struct prompt_pieces *wish_pieces(const struct quern_request *request, uint64_t seed, const char *space);

/* About how many tokens the request's prompt has, and how many will be generated. */
double wish_prompt_tokens(const struct quern_request *request);
double wish_decode_tokens(const struct quern_request *request);

#endif
