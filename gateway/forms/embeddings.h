/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_EMBEDDINGS_H
#define GATEWAY_FORMS_EMBEDDINGS_H

/* Answers a request for embeddings, or for the scores of pairs of texts: one request to the pool for each
 * input, a few at a time, and one answer when all have ended. The first failure becomes the answer and
 * cancels the others; if the client leaves, all are cancelled.
 *
 * Inputs are kept as texts and arrays of ids, and count in the gateway's budget of bodies until the last has
 * ended. The answer is written as the client reads it. Until then its numbers count as unread bytes, and the
 * request still counts for the key. */

#include "gateway/forms/body_reader.h"
#include "gateway/forms/embeddings_in.h"
#include "gateway/forms/ranking_in.h"
#include "gateway/http/exchange.h"

struct embeddings;

/* The form of an API's answer: the JSON around the vectors, or the whole body. */
struct embeddings_form {
    /* Completes what was read; uses only `in`, on any thread. 0 or REFUSED. NULL: nothing to complete. */
    int (*finish)(struct embeddings_in *in, struct refusal *refusal);
    /* Writes the whole body, instead of the members below, which are then unused; NULL: they are used. The
     * inputs still exist. */
    void (*write)(const struct embeddings *embeddings, struct json_out *out);
    void (*begin)(const struct embeddings *embeddings, struct json_out *out);
    void (*open)(const struct embeddings *embeddings, size_t i, struct json_out *out); /* before the i-th */
    const char *close;                                                                 /* after it */
    void (*end)(const struct embeddings *embeddings, struct json_out *out);
};

/* The state of such a request, for the writer of the answer. */
struct embeddings {
    struct exchange *exchange; /* NULL: the client has left, or the exchange was answered and owns this */
    struct gateway *gateway;
    struct key *key;
    bool admitted; /* a pool has accepted one of its requests */
    struct body_reading reading;
    union {
        struct embeddings_in in;
        struct ranking_in pairs; /* if in.ranks; begins with the same members */
    };
    const struct embeddings_form *form;
    char *model;
    uint64_t begun_ns, ended_ns;

    struct embeddings_item *items; /* [in.n] */
    size_t sent, running;
    bool failed;          /* no more are sent */
    float *numbers;       /* [in.n][n_embedding]; NULL until the first has arrived */
    uint32_t n_embedding; /* numbers of one */
    size_t row;           /* the vector being written */
    uint32_t column;      /* the next number of it */
    uint64_t prompt_tokens;
    double queue_ms, prefill_ms; /* the longest */
};

/* A complete handler: reads the body with the rows into a struct embeddings_in, and answers in the form,
 * which must outlive the exchange. */
void embeddings_answer(struct exchange *exchange, const struct json_row *rows,
                       const struct embeddings_form *form);

/* Writes `,"usage":{…}`, in OpenAI's form. */
void embeddings_write_usage(const struct embeddings *e, struct json_out *out);

/* POST /v1/embeddings. */
exchange_handler embeddings_handle;

/* The fields of its body, read into a struct embeddings_in. */
extern const struct json_row embeddings_rows[];

#endif
