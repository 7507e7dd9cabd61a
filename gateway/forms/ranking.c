/* SPDX-License-Identifier: MIT */
/* See ranking.h. The score is the first of those that the model gives a pair, as it is. */

#include "gateway/forms/ranking.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gateway/forms/embeddings.h"
#include "gateway/forms/neutral.h"
#include "gateway/forms/ranking_in.h"

static float score_of(const struct embeddings *e, size_t i)
{
    return e->numbers[i * e->n_embedding];
}

static void write_head(const struct embeddings *e, const char *kind, struct json_out *out)
{
    char id[16 + REQUEST_ID_BYTES]; /* which may have quotes in it */
    snprintf(id, sizeof id, "%s%s", kind, e->exchange->request_id);
    json_out_text(out, "{\"id\":");
    json_out_name(out, id);
    json_out_text(out, ",\"object\":\"list\",\"model\":");
    json_out_name(out, e->model);
}

static void write_end(const struct embeddings *e, struct json_out *out)
{
    json_out_text(out, "]");
    embeddings_write_usage(e, out);
    json_out_text(out, "}");
}

/* ---- rerank ---- */

struct ranked {
    float score;
    size_t index;
};

/* The best first; of equal ones, the one that was named first. */
static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->score < y->score || x->score > y->score)
        return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* A score between 0 and 1: of several labels it is the share of the first, of a single one the logistic
 * function of its number, as Text Embeddings Inference computes both. */
static double share_of(const struct embeddings *e, float score)
{
    return e->n_embedding > 1 ? (double)score : 1 / (1 + exp(-(double)score));
}

static void write_bare_result(const struct embeddings *e, const struct ranked *result, struct json_out *out)
{
    const struct ranking_in *in = &e->pairs;
    json_out_text(out, "{\"index\":");
    json_out_number(out, (int64_t)result->index);
    json_out_text(out, ",\"score\":");
    json_out_real(out, share_of(e, result->score));
    if (in->returns_documents) {
        json_out_text(out, ",\"text\":");
        json_out_string(out, in->documents.items[result->index]);
    }
    json_out_text(out, "}");
}

static void write_result(const struct embeddings *e, const struct ranked *result, struct json_out *out)
{
    const struct ranking_in *in = &e->pairs;
    json_out_text(out, "{\"index\":");
    json_out_number(out, (int64_t)result->index);
    json_out_text(out, ",\"relevance_score\":");
    json_out_real(out, (double)result->score);
    if (in->returns_documents) {
        json_out_text(out, ",\"document\":{\"text\":");
        json_out_string(out, in->documents.items[result->index]);
        json_out_text(out, "}");
    }
    json_out_text(out, "}");
}

static void write_rerank(const struct embeddings *e, struct json_out *out)
{
    const struct ranking_in *in = &e->pairs;
    const size_t n = e->in.n, most = in->top_n > 0 && in->top_n < n ? in->top_n : n;
    struct ranked ranked[RANKING_MOST_PAIRS];
    for (size_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){score_of(e, i), i};
    qsort(ranked, n, sizeof *ranked, compare);
    if (!in->bare)
        write_head(e, "rerank-", out);
    json_out_text(out, in->bare ? "[" : ",\"results\":[");
    for (size_t i = 0; i < most; i++) {
        json_out_text(out, i ? "," : "");
        (in->bare ? write_bare_result : write_result)(e, &ranked[i], out);
    }
    if (in->bare)
        json_out_text(out, "]");
    else
        write_end(e, out);
}

static int finish_rerank(struct embeddings_in *in, struct refusal *refusal)
{
    return ranking_pair_all((struct ranking_in *)(void *)in, refusal);
}

static const struct embeddings_form rerank_form = {.finish = finish_rerank, .write = write_rerank};

const struct json_row ranking_rerank_rows[] = {
    {"query", ranking_query, NULL, 0},
    {"documents", ranking_documents, NULL, 0},
    {"texts", ranking_bare_documents, NULL, 0},
    {"model", parameters_model, NULL, 0},
    {"top_n", ranking_top_n, NULL, 0},
    {"return_documents", json_in_bool, NULL, offsetof(struct ranking_in, returns_documents)},
    {"priority", parameters_priority, NULL, 0},
    {"user", json_in_ignore, NULL, 0},
    {"return_text", json_in_bool, NULL, offsetof(struct ranking_in, returns_documents)},
    {"truncate", neutral_only, "false", 0},
    {"truncation_direction", neutral_only, "right Right left Left", 0}, /* of what is not truncated */
    {"raw_scores", neutral_only, "false", 0},
    {"rank_fields", neutral_only, "text", 0},
    {"max_chunks_per_doc", neutral_only, "", 0},
    {"max_tokens_per_doc", neutral_only, "", 0},
    {"truncate_prompt_tokens", neutral_only, "", 0},
    {"return_embeddings", neutral_only, "false", 0},
    {0},
};

void ranking_handle_rerank(struct exchange *exchange)
{
    embeddings_answer(exchange, ranking_rerank_rows, &rerank_form);
}

/* ---- score ---- */

static void write_scores(const struct embeddings *e, struct json_out *out)
{
    write_head(e, "score-", out);
    json_out_text(out, ",\"created\":");
    json_out_number(out, (int64_t)time(NULL));
    json_out_text(out, ",\"data\":[");
    for (size_t i = 0; i < e->in.n; i++) {
        json_out_text(out, i ? ",{\"index\":" : "{\"index\":");
        json_out_number(out, (int64_t)i);
        json_out_text(out, ",\"object\":\"score\",\"score\":");
        json_out_real(out, (double)score_of(e, i));
        json_out_text(out, "}");
    }
    write_end(e, out);
}

static int finish_score(struct embeddings_in *in, struct refusal *refusal)
{
    return ranking_pair_each((struct ranking_in *)(void *)in, refusal);
}

static const struct embeddings_form score_form = {.finish = finish_score, .write = write_scores};

const struct json_row ranking_score_rows[] = {
    {"text_1", ranking_first, NULL, 0},
    {"text_2", ranking_second, NULL, 0},
    {"queries", ranking_first, NULL, 0},
    {"documents", ranking_second, NULL, 0},
    {"data_1", ranking_first, NULL, 0},
    {"data_2", ranking_second, NULL, 0},
    {"model", parameters_model, NULL, 0},
    {"priority", parameters_priority, NULL, 0},
    {"user", json_in_ignore, NULL, 0},
    {"encoding_format", neutral_only, "float", 0},
    {"truncate_prompt_tokens", neutral_only, "", 0},
    {0},
};

void ranking_handle_score(struct exchange *exchange)
{
    embeddings_answer(exchange, ranking_score_rows, &score_form);
}
