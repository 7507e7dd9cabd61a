/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_EMBEDDINGS_H
#define GATEWAY_EMBEDDINGS_H

/* What answers an exchange that asks for embeddings: one request of the pool for each input, a few of them at
 * a time, and one answer when all have ended. The first that fails is the answer, and the others are
 * cancelled; so they are when the client goes away. */

#include "gateway/embeddings_in.h"
#include "gateway/exchange.h"

/* What has been computed, for who writes the answer. */
struct embeddings {
    struct exchange *exchange; /* NULL: gone, or answered */
    struct gateway *gateway;
    struct quern *client;
    struct key *key;
    struct embeddings_in in;
    void (*write)(const struct embeddings *embeddings, struct json_out *out);
    char *model;
    uint64_t begun_ns;

    struct embeddings_item *items; /* [in.n] */
    size_t sent, running;
    bool failed;          /* no more are sent */
    float *numbers;       /* [in.n][n_embedding]; NULL until the first is here */
    uint32_t n_embedding; /* numbers of one */
    uint64_t prompt_tokens;
    double queue_ms, prefill_ms; /* the longest */
};

/* The i-th vector. */
static inline const float *embeddings_at(const struct embeddings *embeddings, size_t i)
{
    return embeddings->numbers + i * embeddings->n_embedding;
}

/* A vector as a JSON array. */
void embeddings_write_numbers(const struct embeddings *embeddings, size_t i, struct json_out *out);

/* A handler's whole work: reads the body by the rows, into a struct embeddings_in, and answers with what
 * `write` makes of the vectors. */
void embeddings_answer(struct exchange *exchange, const struct json_row *rows,
                       void (*write)(const struct embeddings *embeddings, struct json_out *out));

/* POST /v1/embeddings. */
exchange_handler embeddings_handle;

/* What its body may have; read into a struct embeddings_in. */
extern const struct json_row embeddings_rows[];

#endif
