/* SPDX-License-Identifier: MIT */
/* quern rank, on a pool whose model ranks; and what it says where nothing can be ranked. */

#include "tests/integration/support/pool.h"
#include "tests/integration/support/shell.h"
#include "tests/unit/run.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 5

static const char *const documents[N] = {"hi", "it is a bear", "The giant panda is a bear.",
                                         "gr\xc3\xb6\xc3\x9f"
                                         "e",
                                         "hi"};

static struct pool pool;

static void set_up(void)
{
    char line[1024];
    shell_open();
    snprintf(line, sizeof line, "%s synth tiny-rank Q8_0 %s/ranks.gguf 2>/dev/null", build_path("quern"),
             dir);
    ck_assert_int_eq(system(line), 0);
    snprintf(line, sizeof line, "%s/ranks.gguf", dir);
    pool_start(&pool, line, "--workers", "2", "--device", "cpu", NULL);
    setenv("POOL", pool.frontend, 1);
}

static void tear_down(void)
{
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
    unsetenv("POOL");
    shell_close();
}

/* The score of a document that is asked for alone. */
static double alone(const char *document)
{
    char line[512];
    snprintf(line, sizeof line, "$Q/quern rank --connect $POOL --json 'What is a panda?' '%s'", document);
    ck_assert_int_eq(shell(line), 0);
    json_t *said = json_loads(out, 0, NULL), *result = json_array_get(json_object_get(said, "results"), 0);
    ck_assert_msg(said != NULL, "%s", out);
    const double score = json_real_value(json_object_get(result, "relevance_score"));
    ck_assert_str_eq(json_string_value(json_object_get(result, "document")), document);
    ck_assert_int_gt(json_integer_value(json_object_get(said, "prompt_tokens")), 0);
    json_decref(said);
    ck_assert_double_gt(score, 0);
    return score;
}

START_TEST(the_best_comes_first_with_the_score_it_has_alone)
{
    double scores[N], before = 1e9;
    bool seen[N] = {false};
    for (size_t i = 0; i < N; i++)
        scores[i] = alone(documents[i]);
    ck_assert_int_eq(
        shell("printf '%s\\n' 'The giant panda is a bear.' gr\xc3\xb6\xc3\x9f"
              "e hi >$XDG_RUNTIME_DIR/docs; "
              "$Q/quern rank --connect $POOL 'What is a panda?' hi 'it is a bear' -f $XDG_RUNTIME_DIR/docs"),
        0);
    char *lines = strdup(out), *rest = lines;
    for (size_t i = 0; i < N; i++) {
        char *line = strsep(&rest, "\n"), *at = NULL;
        const double score = strtod(line, &at);
        const size_t index = strtoul(at + 1, &at, 10);
        ck_assert_uint_lt(index, N);
        ck_assert(!seen[index]);
        seen[index] = true;
        ck_assert_str_eq(at + 1, documents[index]);
        ck_assert_double_eq_tol(score, scores[index], 1e-6);
        ck_assert_double_le(score, before);
        before = score;
    }
    ck_assert_str_eq(rest, "");
    ck_assert(strstr(out, "\t0\thi\n") < strstr(out, "\t4\thi\n")); /* equal ones in their order */
    ck_assert_int_eq(
        shell("$Q/quern rank --connect $POOL --top-n 2 'What is a panda?' -f - <$XDG_RUNTIME_DIR/docs"), 0);
    ck_assert_uint_eq(strlen(out) > 0 ? (size_t)(strchr(strchr(out, '\n') + 1, '\n') - out) + 1 : 0,
                      strlen(out));
    free(lines);
}
END_TEST

START_TEST(a_long_list_is_ranked_whole)
{
    ck_assert_int_eq(
        shell(
            "seq 1 500 | $Q/quern rank --connect $POOL 'A number' -f - | cut -f 3 | sort -n | tr '\\n' ' '"),
        0);
    ck_assert(strncmp(out, "1 2 3 4 5 ", 10) == 0 && strstr(out, " 499 500 "));
}
END_TEST

START_TEST(what_cannot_be_ranked_is_named)
{
    static const struct {
        const char *line;
        int status;
        const char *said;
    } cases[] = {
        {"$Q/quern rank", 2, "no query"},
        {"$Q/quern rank query", 2, "no documents"},
        {"$Q/quern rank --top-n 0 query d", 2, "--top-n"},
        {"$Q/quern rank --connect $POOL query ok ''", 1, "quern: document 1 is empty\n"},
        {"printf 'a\\n\\nb' | $Q/quern rank --connect $POOL query -f -", 1,
         "quern: stdin: line 2 is empty\n"},
        {"printf 'a\\n\\0b\\n' | $Q/quern rank --connect $POOL query -f -", 1,
         "quern: stdin: line 2 contains a zero byte\n"},
        {"$Q/quern rank --connect $POOL query -f /dev/null", 1, "quern: /dev/null has no documents\n"},
        {"$Q/quern rank --connect $POOL query -f /nowhere", 1,
         "quern: /nowhere: No such file or directory\n"},
        {"$Q/quern rank --connect $POOL query ok \"$(seq 1 9999)\"", 1, "quern: document 1: too_long: "},
        {"$Q/quern rank --connect $POOL query ok \"$(printf '\\377')\"", 1, "quern: document 1: "},
        {"$Q/quern rank --model \"$MODEL\" query ok", 1, "quern: document 0: unsupported: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
        snprintf(line, sizeof line, "{ %s; } 2>&1", cases[i].line);
        ck_assert_msg(shell(line) == cases[i].status, "%s: %s", cases[i].line, out);
        ck_assert_msg(strstr(out, cases[i].said) != NULL, "%s: %s", cases[i].line, out);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_unchecked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_best_comes_first_with_the_score_it_has_alone);
    tcase_add_test(tests, a_long_list_is_ranked_whole);
    tcase_add_test(tests, what_cannot_be_ranked_is_named);
}

int main(void)
{
    return run_tests("rank", add);
}
