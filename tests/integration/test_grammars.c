/* SPDX-License-Identifier: MIT */
/* Grammars through a whole pool: every kind from the command and from libquern, refusals by their reason, and
 * an answer that goes on elsewhere when its worker is killed. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <jansson.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct pool pool;
static char out[1 << 16];

static void set_up(void)
{
    pool_start(&pool, tiny_model(), "--workers", "2", "--ctx", "4096", NULL);
}

static void tear_down(void)
{
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
}

static bool matches(const char *text, const char *expression)
{
    regex_t regex;
    ck_assert_int_eq(regcomp(&regex, expression, REG_EXTENDED | REG_NOSUB), 0);
    bool is = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return is;
}

/* A file with this text in the pool's directory; its path lives until the next call. */
static const char *file_of(const char *text)
{
    static char path[RUNDIR_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/grammar", pool.rundir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    return path;
}

#define RUN(...)                                                                                             \
    run_program(out, sizeof out, "quern", "run", "--connect", pool.rundir, "--raw", "--temp", "1.5",         \
                "--seed", "3", __VA_ARGS__, "Once", NULL)

static const char schema[] =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":9},\"age\":{"
    "\"type\":\"integer\",\"minimum\":0,\"maximum\":130}},\"required\":[\"name\",\"age\"],"
    "\"additionalProperties\":false}";

START_TEST(the_command_takes_every_kind)
{
    ck_assert_int_eq(RUN("--regex", "[a-f]{3}-[0-9]{2,4}"), 0);
    ck_assert_msg(matches(out, "^[a-f]{3}-[0-9]{2,4}\n$"), "%s", out);
    ck_assert_int_eq(RUN("--grammar", file_of("root ::= pair{3}\npair ::= [a-c] \"=\" [0-9] \";\"\n")), 0);
    ck_assert_msg(matches(out, "^([a-c]=[0-9];){3}\n$"), "%s", out);
    ck_assert_int_eq(RUN("--json-schema", file_of(schema)), 0);
    json_t *value = json_loads(out, 0, NULL);
    ck_assert_msg(json_is_string(json_object_get(value, "name")) &&
                      json_is_integer(json_object_get(value, "age")),
                  "%s", out);
    json_decref(value);
    ck_assert_int_eq(RUN("--json-object", "-n", "8"), 0);
    ck_assert_msg(out[0] == '{', "%s", out);
}
END_TEST

START_TEST(what_is_no_grammar_is_refused_with_the_reason)
{
    char errors[4096];
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--connect", pool.rundir, "--regex", "a",
                                 "--json-object", "x", NULL),
                     2);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--connect", pool.rundir, "--grammar",
                                 "/nowhere", "x", NULL),
                     1);
    static const struct {
        enum quern_grammar kind;
        const char *text, *reason;
    } cases[] = {
        {QUERN_GBNF, "root ::= root \"a\" | \"b\"", "left-recursive"},
        {QUERN_REGEX, "(?=a)", "assertions"},
        {QUERN_SCHEMA, "{\"type\":\"array\",\"uniqueItems\":true}",
         "uniqueItems is supported where items have listed values"},
        {QUERN_SCHEMA, "", "schema: line"},
    };
    struct quern *client = connect_to(pool.frontend);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct answer answer = {0};
        struct quern_request request = seeded("Once", 20);
        request.grammar = cases[i].text;
        request.grammar_kind = cases[i].kind;
        send_request(client, &request, &answer);
        await_answers(client, &answer, 1, 60);
        snprintf(errors, sizeof errors, "%s: %s", answer.error, answer.error_text);
        ck_assert_int_eq(answer.reason, QUERN_ERROR);
        ck_assert_msg(strcmp(answer.error, "bad_request") == 0 && strstr(errors, cases[i].reason), "%s",
                      errors);
        answer_deinit(&answer);
    }
    quern_free(client);
}
END_TEST

START_TEST(a_prompt_of_ids_takes_a_grammar_too)
{
    static const int32_t ids[] = {5, 9, 300};
    struct quern *client = connect_to(pool.frontend);
    struct answer answer = {0};
    struct quern_request request = seeded(NULL, 40);
    request.ids = ids;
    request.n_ids = 3;
    request.grammar = "(yes|no){2}";
    request.grammar_kind = QUERN_REGEX;
    send_request(client, &request, &answer);
    await_answers(client, &answer, 1, 60);
    buffer_append(&answer.text, "", 1);
    ck_assert_int_eq(answer.reason, QUERN_STOP);
    ck_assert_msg(matches((const char *)answer.text.data, "^(yes|no){2}$"), "%s", answer.text.data);
    answer_deinit(&answer);
    quern_free(client);
}
END_TEST

START_TEST(an_answer_of_a_killed_worker_goes_on_elsewhere_within_its_grammar)
{
    enum { N = 6 };
    static const char long_list[] =
        "root ::= \"[\" item (\", \" item){400,} \"]\"\nitem ::= [a-z]{1,12} | \"(\" item \")\"";
    struct quern *client = connect_to(pool.frontend);
    struct answer answers[N] = {0};
    struct quern_request requests[N];
    pid_t pids[2];
    const uint32_t most = test_is_scaled() ? 250 : 1500;
    for (int i = 0; i < N; i++) {
        requests[i] = seeded("a long way to go", most);
        requests[i].seed = (uint64_t)i + 1;
        requests[i].grammar = long_list;
        send_request(client, &requests[i], &answers[i]);
    }
    for (int i = 0; i < N; i++)
        await_ids(client, &answers[i], 30, 60);
    ck_assert_int_eq(pool_worker_pids(&pool, pids, 2), 2);
    ck_assert_int_eq(kill(pids[0], SIGKILL), 0);
    await_answers(client, answers, N, 120);
    for (int i = 0; i < N; i++) {
        struct answer undisturbed = {0};
        send_request(client, &requests[i], &undisturbed);
        await_answers(client, &undisturbed, 1, 120);
        ck_assert_msg(answers[i].reason != QUERN_ERROR, "%s: %s", answers[i].error, answers[i].error_text);
        ck_assert_int_eq(answers[i].reason, undisturbed.reason);
        ck_assert_uint_eq(answers[i].ids.len, undisturbed.ids.len);
        ck_assert_mem_eq(answers[i].ids.data, undisturbed.ids.data, undisturbed.ids.len * sizeof(int32_t));
        ck_assert_uint_eq(answers[i].text.len, undisturbed.text.len);
        ck_assert_mem_eq(answers[i].text.data, undisturbed.text.data, undisturbed.text.len);
        ck_assert(answers[i].text.len > 30 && answers[i].text.data[0] == '[');
        answer_deinit(&undisturbed);
        answer_deinit(&answers[i]);
    }
    const struct quern_status *status;
    ck_assert_int_eq(quern_status(client, 60000, &status, NULL), 0);
    ck_assert_uint_gt(status->moved, 0);
    quern_free(client);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_unchecked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_command_takes_every_kind);
    tcase_add_test(tests, what_is_no_grammar_is_refused_with_the_reason);
    tcase_add_test(tests, a_prompt_of_ids_takes_a_grammar_too);
    tcase_add_test(tests, an_answer_of_a_killed_worker_goes_on_elsewhere_within_its_grammar);
}

int main(void)
{
    return run_tests("grammars in a pool", add);
}
