/* SPDX-License-Identifier: MIT */
#ifndef PROTO_PROMPTS_PIECES_H
#define PROTO_PROMPTS_PIECES_H

/* A prompt as a list of hashes, from which brokers know which worker, and gateways which pool, has processed
 * its beginning.
 *
 * Neither has a tokenizer, so a prompt is cut into pieces of equal bytes. A piece stands for itself and
 * everything before it: its hash includes the previous one, and each is keyed by the secret, the form of the
 * prompt, its space and its salt, so that the holder of one hash cannot test guesses of the next piece
 * without knowing them. Only hashes are compared. A collision would merely send a request to a worker without
 * its prefix: the worker's own cache compares ids. */

#include <stdint.h>

struct generation; /* proto/message.h */

#define PROMPT_PIECE_BYTES  256
#define PROMPT_PIECE_TOKENS 64   /* exact for a prompt of ids, an estimate for text */
#define PROMPT_PIECES_MOST  4096 /* of one prompt: only its first MiB is used */

/* The pieces of a prompt, one hash each; a single allocation, for free(). */
struct prompt_pieces {
    uint32_t n;
    uint64_t hashes[];
};

/* Cuts a prompt into pieces; an incomplete last piece is omitted. NULL: the prompt is shorter than a piece,
 * is not to be cached, or out of memory. The secret keeps clients from choosing prompts with equal hashes. */
struct prompt_pieces *prompt_pieces_cut(const struct generation *generation, uint64_t secret);

#endif
