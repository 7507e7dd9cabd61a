/* SPDX-License-Identifier: MIT */
/* The shipped demo model through a real pool: what it claims to know it answers, alone and among others, and
 * from files in other formats made of it. Skipped where the model is not there. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_CASES = 64, MOST_TURNS = 8, TOGETHER = 8, MOST_TOKENS = 96, EXIT_SKIP = 77 };

struct conversation {
    struct quern_message turns[MOST_TURNS];
    size_t n_turns;
    const char *answer;
};

static struct pool pool;
static json_t *file;
static struct conversation cases[MOST_CASES];
static size_t n_cases;

static void load_cases(void)
{
    json_error_t error;
    file = json_load_file(DEMO_CASES, 0, &error);
    ck_assert_msg(file != NULL, "%s: %s", DEMO_CASES, error.text);
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(file, "cases"), i, item)
    {
        ck_assert_uint_lt(n_cases, MOST_CASES);
        struct conversation *conversation = &cases[n_cases++];
        conversation->answer = json_string_value(json_object_get(item, "answer"));
        ck_assert_ptr_nonnull(conversation->answer);
        size_t t;
        json_t *turn;
        json_array_foreach(json_object_get(item, "messages"), t, turn)
        {
            ck_assert_uint_lt(t, MOST_TURNS);
            conversation->turns[conversation->n_turns++] =
                (struct quern_message){.role = json_string_value(json_object_get(turn, "role")),
                                       .content = json_string_value(json_object_get(turn, "content"))};
        }
    }
    ck_assert_uint_ge(n_cases, 12);
}

static void set_up(void)
{
    if (n_cases == 0)
        load_cases();
}

static void tear_down(void)
{
    pool_forget(&pool);
    json_decref(file);
    file = NULL;
    n_cases = 0;
    memset(cases, 0, sizeof cases);
}

static void send_case(struct quern *client, const struct conversation *conversation, struct answer *answer)
{
    struct quern_request request = endless(NULL, MOST_TOKENS);
    request.messages = conversation->turns;
    request.n_messages = conversation->n_turns;
    send_request(client, &request, answer);
}

static bool is_right(const struct conversation *conversation, const struct answer *answer)
{
    ck_assert_msg(answer->reason == QUERN_STOP, "the answer to \"%s\" did not end by itself: %.*s",
                  conversation->turns[conversation->n_turns - 1].content, (int)answer->text.len,
                  (const char *)answer->text.data);
    return bytes_equal((struct bytes){answer->text.data, answer->text.len},
                       bytes_of_string(conversation->answer));
}

START_TEST(it_answers_what_it_claims_to_know_alone_and_eight_at_once)
{
    pool_start(&pool, DEMO_MODEL, "--workers", "2", NULL);
    struct quern *client = connect_to(pool.frontend);
    for (size_t i = 0; i < n_cases; i++) {
        struct answer alone = {0}, together[TOGETHER] = {0};
        send_case(client, &cases[i], &alone);
        await_answers(client, &alone, 1, 60);
        ck_assert_msg(is_right(&cases[i], &alone), "asked \"%s\" it said \"%.*s\", not \"%s\"",
                      cases[i].turns[cases[i].n_turns - 1].content, (int)alone.text.len,
                      (const char *)alone.text.data, cases[i].answer);
        /* This question once more, among seven others. */
        for (size_t k = 0; k < TOGETHER; k++)
            send_case(client, &cases[(i + k) % n_cases], &together[k]);
        await_answers(client, together, TOGETHER, 60);
        for (size_t k = 0; k < TOGETHER; k++)
            ck_assert_msg(is_right(&cases[(i + k) % n_cases], &together[k]),
                          "among others it said \"%.*s\", not \"%s\"", (int)together[k].text.len,
                          (const char *)together[k].text.data, cases[(i + k) % n_cases].answer);
        ck_assert_uint_eq(alone.ids.len, together[0].ids.len);
        ck_assert_mem_eq(alone.ids.data, together[0].ids.data, alone.ids.len * sizeof(int32_t));
        answer_deinit(&alone);
        for (size_t k = 0; k < TOGETHER; k++)
            answer_deinit(&together[k]);
    }
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

/* All questions at once, on the CUDA backend. */
START_TEST(it_answers_the_same_on_an_emulated_gpu)
{
    pool_start(&pool, DEMO_MODEL, "--workers", "1", "--device", "emu", "--slots", "16", NULL);
    struct quern *client = connect_to(pool.frontend);
    struct answer answers[MOST_CASES] = {0};
    for (size_t i = 0; i < n_cases; i++)
        send_case(client, &cases[i], &answers[i]);
    await_answers(client, answers, n_cases, 200);
    for (size_t i = 0; i < n_cases; i++) {
        ck_assert_msg(is_right(&cases[i], &answers[i]), "asked \"%s\" it said \"%.*s\", not \"%s\"",
                      cases[i].turns[cases[i].n_turns - 1].content, (int)answers[i].text.len,
                      (const char *)answers[i].text.data, cases[i].answer);
        answer_deinit(&answers[i]);
    }
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

START_TEST(a_conversation_with_nothing_said_about_limits_remembers_a_name)
{
    /* The third line is no text: it is refused, and the conversation goes on. */
    char command[8192], said[4096];
    snprintf(command, sizeof command,
             "printf 'Hi, my name is Anna.\\nWhat is the opposite of up?\\n\\377\\nWhat is my name?\\n' | "
             "'%s' chat --model '%s' --temp 0",
             build_path("quern"), DEMO_MODEL);
    FILE *out = popen(command, "r");
    ck_assert_ptr_nonnull(out);
    size_t n = fread(said, 1, sizeof said - 1, out);
    said[n] = 0;
    ck_assert_int_eq(pclose(out), 0);
    ck_assert_msg(strstr(said, "The opposite of up is down.\n"), "%s", said);
    ck_assert_msg(strstr(said, "Your name is Anna.\n"), "%s", said);
}
END_TEST

START_TEST(other_formats_made_of_it_still_know_most)
{
    static const char *const types[] = {"F16", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0"};
    for (size_t f = 0; f < sizeof types / sizeof *types; f++) {
        char out[64], path[] = "/tmp/quern-demo-XXXXXX";
        int fd = mkstemp(path);
        ck_assert_int_ge(fd, 0);
        close(fd);
        ck_assert_int_eq(run_program(out, sizeof out, "quern", "quantize", "--requantize", DEMO_MODEL,
                                     types[f], path, NULL),
                         0);
        pool_start(&pool, path, "--workers", "1", NULL);
        struct quern *client = connect_to(pool.frontend);
        struct answer answers[MOST_CASES] = {0};
        size_t right = 0;
        for (size_t i = 0; i < n_cases; i++)
            send_case(client, &cases[i], &answers[i]);
        await_answers(client, answers, n_cases, 120);
        for (size_t i = 0; i < n_cases; i++) {
            right += bytes_equal((struct bytes){answers[i].text.data, answers[i].text.len},
                                 bytes_of_string(cases[i].answer));
            answer_deinit(&answers[i]);
        }
        printf("%s: %zu of %zu right\n", types[f], right, n_cases);
        ck_assert_msg(2 * right > n_cases, "%s: only %zu of %zu are right", types[f], right, n_cases);
        quern_free(client);
        ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
        pool_forget(&pool);
        unlink(path);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, it_answers_what_it_claims_to_know_alone_and_eight_at_once);
    if (EMULATED)
        tcase_add_test(tests, it_answers_the_same_on_an_emulated_gpu);
    tcase_add_test(tests, a_conversation_with_nothing_said_about_limits_remembers_a_name);
    tcase_add_test(tests, other_formats_made_of_it_still_know_most);
}

int main(void)
{
    if (access(DEMO_MODEL, R_OK) < 0) {
        printf("%s is not there: skipped\n", DEMO_MODEL);
        return EXIT_SKIP;
    }
    return run_tests("demo model", add);
}
