/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_RANKING_IN_H
#define GATEWAY_FORMS_RANKING_IN_H

/* A request for the scores of pairs of texts: a query and documents, or two texts or lists of them. */

#include "gateway/forms/embeddings_in.h"

#define RANKING_MOST_PAIRS EMBEDDINGS_MOST_INPUTS

struct ranking_texts {
    const struct bytes *items; /* [n], each zero-terminated */
    size_t n;                  /* 0: not given */
    const char *name;          /* of the parameter, as the client wrote it */
    bool listed;               /* it was an array */
};

struct ranking_in {
    struct embeddings_in in; /* first; its inputs are the pairs, made by the functions below */
    struct ranking_texts queries, documents;
    size_t bytes; /* of all pairs; a query counts in each of its pairs */
    size_t top_n; /* results; 0: all */
    bool returns_documents;
    bool bare; /* the documents came as `texts`: the answer is a list, as in Text Embeddings Inference */
};

/* Makes a pair of the query and each document. 0 or REFUSED. */
int ranking_pair_all(struct ranking_in *in, struct refusal *refusal);

/* Makes a pair of each query and the document at the same index, or of a single query and each document. 0,
 * or REFUSED if the numbers differ and there is more than one query. */
int ranking_pair_each(struct ranking_in *in, struct refusal *refusal);

/* Makes an error of the pool about a pair name the pair's parameters: "prompt has …" becomes "query and
 * documents[3] have …". */
void ranking_name_pair(const struct ranking_in *in, size_t index, struct refusal *refusal);

/* ---- takers, whose `into` is a struct ranking_in ---- */

json_row_take ranking_query;                 /* a text, or an object with one */
json_row_take ranking_documents;             /* an array of these */
json_row_take ranking_bare_documents;        /* the same, for a bare answer */
json_row_take ranking_first, ranking_second; /* either: the queries, or the documents */
json_row_take ranking_top_n;

#endif
