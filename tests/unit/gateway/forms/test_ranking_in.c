/* SPDX-License-Identifier: MIT */
/* Bodies of /v1/rerank and /v1/score: which pairs they come to, and what is refused by name. */

#include "gateway/forms/ranking.h"
#include "gateway/forms/ranking_in.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ranking_in in;
static struct refusal refusal;

static int take(const struct json_row *rows, const char *body)
{
    parameters_deinit(&in.in.parameters);
    in = (struct ranking_in){0};
    parameters_init(&in.in.parameters);
    refusal = (struct refusal){0};
    int r = parameters_read(&in.in.parameters, rows, (struct bytes){body, strlen(body)}, &refusal);
    if (r != 0)
        return r;
    return rows == ranking_rerank_rows ? ranking_pair_all(&in, &refusal) : ranking_pair_each(&in, &refusal);
}

static void check_pair(size_t i, const char *query, const char *document)
{
    const struct embeddings_input *pair = &in.in.inputs[i];
    ck_assert_msg(strcmp(pair->text.data, query) == 0 && pair->text.len == strlen(query), "pair %zu", i);
    ck_assert_str_eq(pair->document, document);
    ck_assert(in.in.ranks && !pair->ids);
}

START_TEST(texts_are_documents_of_a_bare_answer)
{
    ck_assert_int_eq(take(ranking_rerank_rows,
                          "{\"query\": \"q\", \"texts\": [\"a\", \"b\"], \"return_text\": true, "
                          "\"truncate\": false, \"truncation_direction\": \"Right\", "
                          "\"raw_scores\": false}"),
                     0);
    ck_assert_uint_eq(in.in.n, 2);
    check_pair(1, "q", "b");
    ck_assert(in.bare && in.returns_documents);
    ck_assert_int_eq(take(ranking_rerank_rows, "{\"query\": \"q\", \"documents\": [\"a\"]}"), 0);
    ck_assert(!in.bare && !in.returns_documents);
    static const char *const refused[][2] = {
        {"{\"query\": \"q\", \"texts\": [\"a\"], \"truncate\": true}", "truncate"},
        {"{\"query\": \"q\", \"texts\": [\"a\"], \"raw_scores\": true}", "raw_scores"},
        {"{\"query\": \"q\", \"texts\": [\"a\"], \"truncation_direction\": \"up\"}", "truncation_direction"},
        {"{\"query\": \"q\", \"texts\": \"a\"}", "texts"},
        {"{\"query\": \"q\", \"texts\": []}", "texts"},
        {"{\"query\": \"q\", \"texts\": [\"a\", \"\"]}", "texts[1]"},
        {"{\"query\": \"q\", \"documents\": [\"a\"], \"texts\": [\"a\"]}", "texts"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ck_assert_msg(take(ranking_rerank_rows, refused[i][0]) != 0, "%s", refused[i][0]);
        ck_assert_uint_eq(refusal.status, 400);
        ck_assert_str_eq(refusal.param, refused[i][1]);
    }
}
END_TEST

static void tear_down(void)
{
    parameters_deinit(&in.in.parameters);
}

START_TEST(a_query_goes_with_each_document)
{
    ck_assert_msg(take(ranking_rerank_rows,
                       "{\"model\": \"m\", \"query\": \"q\", \"documents\": [\"a\", {\"text\": "
                       "\"größe\", \"title\": \"t\"}, \"a\"], \"top_n\": 2, "
                       "\"return_documents\": true, \"priority\": -1}") == 0,
                  "%s", refusal.text);
    ck_assert_uint_eq(in.in.n, 3);
    check_pair(0, "q", "a");
    check_pair(1, "q", "größe");
    check_pair(2, "q", "a");
    ck_assert(in.top_n == 2 && in.returns_documents && in.in.parameters.request.priority == 1);
    ck_assert_int_eq(take(ranking_rerank_rows,
                          "{\"query\": {\"text\": \"q\"}, \"documents\": [\"a\"], \"top_n\": "
                          "null, \"rank_fields\": [\"text\"], \"max_tokens_per_doc\": null, "
                          "\"user\": \"u\"}"),
                     0);
    ck_assert(in.top_n == 0 && !in.returns_documents);
}
END_TEST

START_TEST(a_text_goes_with_one_or_each_with_its_own)
{
    ck_assert_int_eq(take(ranking_score_rows, "{\"text_1\": \"q\", \"text_2\": \"a\"}"), 0);
    ck_assert_uint_eq(in.in.n, 1);
    check_pair(0, "q", "a");
    ck_assert_int_eq(take(ranking_score_rows, "{\"queries\": [\"q\"], \"documents\": [\"a\", \"b\"]}"), 0);
    check_pair(1, "q", "b");
    ck_assert_int_eq(take(ranking_score_rows, "{\"data_1\": [\"p\", \"q\"], \"data_2\": [\"a\", \"b\"]}"), 0);
    ck_assert_uint_eq(in.in.n, 2);
    check_pair(0, "p", "a");
    check_pair(1, "q", "b");
}
END_TEST

START_TEST(what_makes_no_pairs_is_refused_by_name)
{
    static const struct {
        bool scores;
        const char *body, *param, *says;
    } refused[] = {
        {false, "{\"documents\": [\"a\"]}", "query", "query is missing"},
        {false, "{\"query\": \"q\"}", "documents", "documents is missing"},
        {false, "{\"query\": \"\", \"documents\": [\"a\"]}", "query", "query is empty"},
        {false, "{\"query\": [\"q\"], \"documents\": [\"a\"]}", "query", "query is an array"},
        {false, "{\"query\": \"q\", \"documents\": []}", "documents", "documents is empty"},
        {false, "{\"query\": \"q\", \"documents\": \"a\"}", "documents", "is a string, not an array"},
        {false, "{\"query\": \"q\", \"documents\": [\"a\", \"\"]}", "documents[1]", "documents[1] is empty"},
        {false, "{\"query\": \"q\", \"documents\": [5]}", "documents[0]",
         "a number, not a string or an object"},
        {false, "{\"query\": \"q\", \"documents\": [{\"title\": \"t\"}]}", "documents[0]", "without text"},
        {false, "{\"query\": \"q\", \"documents\": [\"a\"], \"top_n\": -1}", "top_n", "out of range 0.."},
        {false, "{\"query\": \"q\", \"documents\": [\"a\"], \"return_documents\": 1}", "return_documents",
         "not a boolean"},
        {false, "{\"query\": \"q\", \"documents\": [\"a\"], \"max_tokens_per_doc\": 4096}",
         "max_tokens_per_doc", "is not supported"},
        {false, "{\"query\": \"q\", \"documents\": [\"a\"], \"rank_fields\": [\"title\"]}", "rank_fields",
         "only text"},
        {false, "{\"query\": \"q\", \"passages\": [\"a\"]}", "passages", "passages"},
        {true, "{\"text_2\": \"a\"}", "text_1", "text_1 is missing"},
        {true, "{\"text_1\": \"a\"}", "text_2", "text_2 is missing"},
        {true, "{\"text_1\": [\"a\", \"b\"], \"text_2\": [\"a\", \"b\", \"c\"]}", "text_2",
         "text_2 has 3 texts and text_1 has 2; give one query, or as many"},
        {true, "{\"text_1\": [\"a\", \"b\"], \"text_2\": \"a\"}", "text_2",
         "text_2 has 1 text and text_1 has 2; give one query, or as many"},
        {true, "{\"text_1\": \"a\", \"queries\": \"a\", \"text_2\": \"a\"}", "queries",
         "queries: text_1 has already been given"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ck_assert_msg(take(refused[i].scores ? ranking_score_rows : ranking_rerank_rows, refused[i].body) ==
                          REFUSED,
                      "%s was taken", refused[i].body);
        ck_assert_uint_eq(refusal.status, 400);
        ck_assert_msg(strcmp(refusal.param, refused[i].param) == 0, "%s: %s", refused[i].body, refusal.param);
        ck_assert_msg(strstr(refusal.text, refused[i].says), "%s: %s", refused[i].body, refusal.text);
    }
}
END_TEST

START_TEST(so_many_documents_and_no_more)
{
    static char body[40 + 4 * (RANKING_MOST_PAIRS + 2)];
    for (size_t more = 0; more < 2; more++) {
        strcpy(body, "{\"query\": \"q\", \"documents\": [\"a\"");
        for (size_t i = 1; i < RANKING_MOST_PAIRS + more; i++)
            strcat(body, ",\"a\"");
        strcat(body, "]}");
        ck_assert_int_eq(take(ranking_rerank_rows, body), more ? REFUSED : 0);
    }
    ck_assert_str_eq(refusal.text, "documents has 2049 texts; at most 2048 are allowed");
}
END_TEST

START_TEST(a_query_counts_in_each_of_its_pairs)
{
    ck_assert_int_eq(take(ranking_rerank_rows, "{\"query\": \"four\", \"documents\": [\"a\", \"bc\"]}"), 0);
    ck_assert_uint_eq(in.bytes, 2 * 4 + 3);
    ck_assert_int_eq(take(ranking_score_rows, "{\"text_1\": [\"four\", \"p\"], \"text_2\": [\"a\", \"bc\"]}"),
                     0);
    ck_assert_uint_eq(in.bytes, 5 + 3);
}
END_TEST

START_TEST(an_error_of_the_pool_names_the_document)
{
    ck_assert_int_eq(take(ranking_rerank_rows, "{\"query\": \"q\", \"documents\": [\"a\", \"b\"]}"), 0);
    refuse(&refusal, 400, "context_length_exceeded", NULL, "the document has 5 KiB and the query 1 byte");
    ranking_name_pair(&in, 1, &refusal);
    ck_assert_str_eq(refusal.text, "documents[1] has 5 KiB and the query 1 byte");
    ck_assert_str_eq(refusal.param, "documents[1]");
    refuse(&refusal, 400, "context_length_exceeded", NULL, "prompt has 500 tokens; the context holds 9");
    ranking_name_pair(&in, 0, &refusal);
    ck_assert_str_eq(refusal.text, "query and documents[0] have 500 tokens together; the context holds 9");
    ck_assert_str_eq(refusal.param, "documents[0]");
    ck_assert_int_eq(take(ranking_score_rows, "{\"data_1\": [\"q\", \"p\"], \"data_2\": [\"a\", \"b\"]}"), 0);
    refuse(&refusal, 400, "context_length_exceeded", NULL, "prompt has 500 tokens; the KV cache holds 9");
    ranking_name_pair(&in, 1, &refusal);
    ck_assert_str_eq(refusal.text, "data_1[1] and data_2[1] have 500 tokens together; the KV cache holds 9");
    for (int listed = 0; listed < 2; listed++) {
        ck_assert_int_eq(take(ranking_score_rows, listed ? "{\"text_1\": \"q\", \"text_2\": [\"a\"]}"
                                                         : "{\"text_1\": \"q\", \"text_2\": \"a\"}"),
                         0);
        refuse(&refusal, 400, "context_length_exceeded", NULL, "prompt has 500 tokens; the context holds 9");
        ranking_name_pair(&in, 0, &refusal);
        ck_assert_str_eq(refusal.param, listed ? "text_2[0]" : "text_2");
        refuse(&refusal, 503, "worker_lost", NULL, "prompt has gone");
        ranking_name_pair(&in, 0, &refusal);
        ck_assert(strcmp(refusal.text, "prompt has gone") == 0 && !refusal.param[0]);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, texts_are_documents_of_a_bare_answer);
    tcase_add_test(tests, a_query_goes_with_each_document);
    tcase_add_test(tests, a_text_goes_with_one_or_each_with_its_own);
    tcase_add_test(tests, what_makes_no_pairs_is_refused_by_name);
    tcase_add_test(tests, so_many_documents_and_no_more);
    tcase_add_test(tests, a_query_counts_in_each_of_its_pairs);
    tcase_add_test(tests, an_error_of_the_pool_names_the_document);
}

int main(void)
{
    return run_tests("ranking_in", add);
}
