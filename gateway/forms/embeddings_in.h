/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_EMBEDDINGS_IN_H
#define GATEWAY_FORMS_EMBEDDINGS_IN_H

/* A request for embeddings: one input or several, each a text or token ids; or for the scores of pairs of
 * texts, where each pair is an input (ranking_in.h). */

#include "gateway/core/parameters.h"

#define EMBEDDINGS_MOST_INPUTS 2048 /* of one request, as in OpenAI's API */

struct embeddings_input { /* text or ids, in the parameters' memory */
    struct bytes text;    /* data NULL: it is ids */
    const int32_t *ids;   /* [n_ids] */
    size_t n_ids;
    const char *document; /* of a pair, with `text` as the query; NULL: the input is not a pair */
};

struct embeddings_in {
    struct parameters parameters;    /* first, so that takers for a struct parameters work too */
    struct embeddings_input *inputs; /* [n] */
    size_t n;                        /* 0: not given */
    const char *name;                /* of the parameter that has the inputs; NULL: "input" */
    bool ranks;                      /* they are pairs */
    bool base64;
    uint32_t dimensions; /* requested ones; 0: not given */
};

/* Changes the parameter that an error of the pool names: "prompt" becomes "input[3]". */
void embeddings_name_input(const struct embeddings_in *in, size_t index, struct refusal *refusal);

/* ---- takers, whose `into` is a struct embeddings_in ---- */

json_row_take embeddings_input;      /* a text, ids, or an array of either */
json_row_take embeddings_format;     /* "float" or "base64" */
json_row_take embeddings_dimensions; /* a number */

#endif
