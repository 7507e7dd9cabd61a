/* SPDX-License-Identifier: MIT */
/* Requests and questions of libquern: what is refused, by whom, with what reason; cancel and attach. */

#include "common/clock.h"
#include "tests/unit/client/lib/fixture.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>

START_TEST(many_requests_share_a_connection)
{
    static const int script[] = {0, 2, 3, 1, 4, STEP_END, STEP_STOP};
    struct gathered g[20] = {0};
    struct quern_id ids[20];
    start((struct fake_config){.n_frames = 5, .script = script, .page_frames = 1});
    for (int i = 0; i < 20; i++)
        ids[i] = send_request(&g[i]);
    ck_assert_uint_eq(quern_active(client), 20);
    DISPATCH_UNTIL(quern_active(client) == 0);
    for (int i = 0; i < 20; i++) {
        check_whole(&g[i], 5);
        ck_assert_mem_eq(&g[i].id, &ids[i], sizeof ids[i]);
    }
    stop();
}
END_TEST

START_TEST(a_refusal_is_the_end_of_its_request)
{
    struct gathered g = {0};
    start((struct fake_config){.refusal = "64 requests are queued"});
    generate(&g);
    ck_assert_int_eq(g.ends, 1);
    ck_assert_int_eq(g.reason, QUERN_ERROR);
    ck_assert_str_eq(g.error, "overloaded");
    ck_assert_str_eq(g.error_text, "64 requests are queued");
    ck_assert_uint_eq(g.retry_after_ms, 70);
    stop();
}
END_TEST

START_TEST(what_a_broker_says_to_people_cannot_steer_a_terminal)
{
    struct gathered g = {0};
    start((struct fake_config){.refusal = "\x1b]0;owned\x07 full\nof \xc2\x9bthem"});
    generate(&g);
    ck_assert_str_eq(g.error_text, "?]0;owned? full?of ?them");
    stop();
}
END_TEST

static void expect_prompt(struct quern_request *request, const char *arrived)
{
    struct quern_error err = {0};
    int r = quern_generate_wait(client, request, NULL, NULL, &err);
    ck_assert_msg(r == 0, "%s", err.text);
    ck_assert_str_eq(fake_broker_prompt(broker), arrived);
    quern_request_init(request);
}

START_TEST(an_embedding_comes_whole_or_is_told_to_be_lost)
{
    static const int published[] = {0, STEP_END, STEP_STOP}, dropped[] = {STEP_END, STEP_STOP};
    const struct fake_config configs[] = {
        {.n_frames = 1, .embeds = true, .script = published},
        {.n_frames = 1, .embeds = true, .script = dropped},
        {.n_frames = 1, .embeds = true, .script = dropped, .no_frames = true},
        {.n_frames = 1, .embeds = true, .script = published, .no_vector = true},
    };
    for (int i = 0; i < 4; i++) {
        struct quern_error err = {.text = ""};
        struct quern_end end;
        const struct quern_request request = a_request();
        const float *numbers;
        size_t n;
        start(configs[i]);
        int r = quern_embed_wait(client, &request, &numbers, &n, &end, &err);
        if (i >= 2) {
            ck_assert_int_eq(r, -EREMOTEIO);
            ck_assert_ptr_nonnull(strstr(err.text, "worker_lost: the pool no longer has the embedding"));
        } else {
            ck_assert_msg(r == 0, "%s", err.text);
            ck_assert_ptr_nonnull(strstr(fake_broker_prompt(broker), ", needs embed"));
            ck_assert_uint_eq(n, 2);
            ck_assert_float_eq(numbers[0], 0.6f);
            ck_assert_float_eq(numbers[1], -0.8f);
            ck_assert_uint_eq(end.prompt_tokens, 3);
            ck_assert_int_eq(fake_broker_count(broker, "replay"), i);
        }
        stop();
    }
}
END_TEST

START_TEST(a_prompt_is_a_text_or_ids_or_messages)
{
    static const int script[] = {0, STEP_STOP};
    static const int32_t ids[] = {7, 0, 9};
    static const struct quern_message messages[] = {
        {.role = "system", .content = "Be brief."}, {.role = "user", .content = "Hi"}, {.role = "user"}};
    static const struct quern_message tools[] = {
        {.role = "assistant", .tool_calls = "[2]"},
        {.role = "tool", .content = "4", .name = "add", .tool_call_id = "7"}};
    struct quern_error err = {0};
    struct quern_request request = a_request();
    start((struct fake_config){.n_frames = 1, .script = script});
    expect_prompt(&request, "text Hi, cancel");
    request.text = "Hi there";
    request.text_len = 4;
    request.keep_s = 30;
    request.cache_salt = "mine";
    request.cache_prompt = false;
    request.tenant = "ann";
    expect_prompt(&request, "text Hi t, keep 30, salt mine, not cached, for ann");
    request.ids = ids;
    request.n_ids = 3;
    expect_prompt(&request, "ids 7 0 9, cancel");
    request.messages = messages;
    request.n_messages = 3;
    expect_prompt(&request, "chat system: Be brief. user: Hi user: , cancel");
    request.messages = tools;
    request.n_messages = 2;
    request.tools = "[1]";
    request.logprobs = 1;
    request.pieces = true;
    expect_prompt(&request, "chat assistant:  calls [2] tool add of 7: 4, cancel, tools [1], pieces");
    request.messages = messages;
    request.n_messages = 1;
    request.ids = ids;
    ck_assert_int_eq(quern_generate(client, &request, NULL, NULL, NULL, &err), -EINVAL);
    ck_assert_str_eq(err.text, "a request needs exactly one prompt: text, ids or messages; this one has 2");
    request.ids = NULL;
    request.text = "Hi";
    ck_assert_int_eq(quern_generate(client, &request, NULL, NULL, NULL, &err), -EINVAL);
    stop();
}
END_TEST

START_TEST(a_request_that_cannot_be_right_is_refused_before_it_is_sent)
{
    struct quern_request request;
    struct quern_error err = {0};
    char large[6000];
    start((struct fake_config){0});
    quern_request_init(&request);
    ck_assert_int_eq(quern_generate(client, &request, gather, NULL, NULL, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "one prompt"));
    request.text = "";
    ck_assert_int_eq(quern_generate(client, &request, gather, NULL, NULL, &err), -EINVAL);
    ck_assert_str_eq(err.text, "generate: prompt: is empty");
    request.text = "\xff";
    ck_assert_int_eq(quern_generate(client, &request, gather, NULL, NULL, &err), -EINVAL);
    ck_assert_str_eq(err.text, "generate: prompt: not UTF-8 at byte 0");
    request.text = "Hi";
    request.top_p = 3;
    ck_assert_int_eq(quern_generate(client, &request, gather, NULL, NULL, &err), -EINVAL);
    ck_assert_str_eq(err.text, "generate: top_p: 3 is out of range 0..1");
    request.top_p = 1;
    memset(large, 'a', sizeof large - 1);
    large[sizeof large - 1] = 0;
    request.text = large;
    ck_assert_int_eq(quern_generate(client, &request, gather, NULL, NULL, &err), -EMSGSIZE);
    ck_assert_ptr_nonnull(strstr(err.text, "accepts 4096"));
    ck_assert_uint_eq(quern_active(client), 0);
    ck_assert_int_eq(fake_broker_count(broker, "generate"), 0);
    ck_assert_int_eq(quern_cancel(client, (struct quern_id){{1}}, &err), -ENOENT);
    stop();
}
END_TEST

START_TEST(a_request_made_before_the_pool_said_what_it_takes_ends_if_it_takes_less)
{
    static const int script[] = {0, STEP_STOP};
    const struct fake_config config = {.n_frames = 1, .script = script, .page_frames = 100};
    char folder[RUNDIR_PATH_MAX + 1], large[6000];
    struct gathered too_large = {0}, small = {0};
    struct quern_request request = a_request();
    struct quern_error err = {0};
    memset(large, 'a', sizeof large - 1);
    large[sizeof large - 1] = 0;
    broker = fake_broker_new(&config, folder);
    ck_assert_int_eq(quern_connect_begin(folder, NULL, NULL, &client, &err), 0);
    request.text = large;
    ck_assert_int_eq(quern_generate(client, &request, gather, &too_large, NULL, &err), 0);
    send_request(&small);
    DISPATCH_UNTIL(quern_active(client) == 0);
    ck_assert_int_eq(too_large.ends, 1);
    ck_assert_int_eq(too_large.reason, QUERN_ERROR);
    ck_assert_str_eq(too_large.error, "too_long");
    ck_assert_ptr_nonnull(strstr(too_large.error_text, "the pool accepts 4096"));
    ck_assert_int_eq(small.reason, QUERN_LENGTH);
    ck_assert_int_eq(fake_broker_count(broker, "generate"), 1);
    stop();
}
END_TEST

static void expect_too_much(const struct quern_request *request, const char *reason)
{
    struct quern_error err = {0};
    ck_assert_int_eq(quern_generate(client, request, gather, NULL, NULL, &err), -EMSGSIZE);
    ck_assert_str_eq(err.text, reason);
}

START_TEST(what_the_pool_said_it_takes_is_held_before_anything_is_sent)
{
    static const char *const stops[] = {"a", "b", "c"}, *const long_stops[] = {"abcde"};
    static const int32_t ids[9] = {0};
    static const struct quern_logit_bias biases[2] = {{1, 1}, {2, 1}};
    struct quern_request request;
    start((struct fake_config){0});
    quern_request_init(&request);
    request.ids = ids;
    request.n_ids = 9;
    expect_too_much(&request, "the pool accepts 8 ids of a prompt; this request has 9");
    request.n_ids = 8;
    request.stop = stops;
    request.n_stop = 3;
    expect_too_much(&request, "the pool accepts 2 stop strings; this request has 3");
    request.stop = long_stops;
    request.n_stop = 1;
    expect_too_much(&request, "the pool accepts 4 bytes of a stop string; this request has 5");
    request.stop = stops;
    request.stop_ids = ids;
    request.n_stop_ids = 4;
    expect_too_much(&request, "the pool accepts 3 stop ids; this request has 4");
    request.n_stop_ids = 3;
    request.logprobs = 3; /* the limit counts alternatives, this the id's own too */
    expect_too_much(&request, "the pool accepts 2 log probabilities of an id; this request has 3");
    request.logprobs = 2;
    request.logit_bias = biases;
    request.n_logit_bias = 2;
    expect_too_much(&request, "the pool accepts 1 logit biases; this request has 2");
    request.n_logit_bias = 1;
    request.grammar = "root ::= \"a\"";
    expect_too_much(&request, "the pool accepts 8 bytes of a grammar; this request has 12");
    ck_assert_uint_eq(quern_active(client), 0);
    ck_assert_int_eq(fake_broker_count(broker, "generate"), 0);
    stop();
}
END_TEST

START_TEST(an_attached_request_comes_from_its_beginning)
{
    static const int script[] = {0, 1, STEP_AFTER_REPLAY, STEP_STOP};
    struct gathered g = {0};
    struct quern_error err = {0};
    struct quern_request request;
    struct quern_id id;
    start((struct fake_config){.n_frames = 5, .script = script, .page_frames = 2});
    request = a_request();
    request.keep_s = 30;
    ck_assert_int_eq(quern_generate(client, &request, NULL, NULL, &id, &err), 0);
    struct quern_id session = quern_session(client);
    DISPATCH_UNTIL(fake_broker_count(broker, "generate") == 1);
    quern_free(client);
    client = NULL;
    /* The fake broker has one session: the newest. */
    ck_assert_int_eq(quern_connect(fake_broker_folder(broker), 30000, &client, &err), 0);
    ck_assert_int_eq(quern_attach(client, session, id, gather, &g, &err), 0);
    ck_assert_int_eq(quern_attach(client, session, id, gather, &g, &err), -EEXIST);
    DISPATCH_UNTIL(g.ends > 0);
    check_whole(&g, 5);
    id.bytes[0] ^= 1;
    memset(&g, 0, sizeof g);
    ck_assert_int_eq(quern_attach(client, session, id, gather, &g, &err), 0);
    DISPATCH_UNTIL(g.ends > 0);
    ck_assert_str_eq(g.error, "unknown_request");
    stop();
}
END_TEST

static void wait_inside(void *arg, const struct quern_output *output)
{
    struct quern_error err = {0};
    const struct quern_status *status;
    const int32_t *ids;
    size_t n;
    int *calls = arg;
    struct quern_request request = a_request();
    ck_assert_int_eq(quern_dispatch(client, 0, &err), -EBUSY);
    ck_assert_int_eq(quern_status(client, 100, &status, &err), -EBUSY);
    ck_assert_int_eq(quern_tokenize(client, &(struct quern_text){.text = "a", .len = 1}, 100, &ids, &n, &err),
                     -EBUSY);
    ck_assert_int_eq(quern_generate_wait(client, &request, NULL, NULL, &err), -EBUSY);
    ck_assert_msg(strstr(err.text, "inside a callback"), "%s", err.text);
    *calls += 1;
}

START_TEST(nothing_waits_inside_a_callback)
{
    static const int script[] = {0, 1, STEP_STOP};
    struct quern_error err = {0};
    int calls = 0;
    start((struct fake_config){.n_frames = 2, .script = script});
    struct quern_request request = a_request();
    ck_assert_int_eq(quern_generate_wait(client, &request, wait_inside, &calls, &err), 0);
    ck_assert_int_eq(calls, 2);
    ck_assert_int_eq(fake_broker_count(broker, "generate"), 1);
    stop();
}
END_TEST

START_TEST(questions_are_answered)
{
    struct quern_error err = {0};
    const struct quern_status *status;
    const int32_t *ids;
    size_t n;
    start((struct fake_config){0});
    ck_assert_int_eq(quern_status(client, 20000, &status, &err), 0);
    ck_assert_str_eq(status->version, "1.2.3");
    ck_assert_uint_eq(status->n_workers, 1);
    ck_assert_str_eq(status->workers[0].name, "worker-0");
    ck_assert_str_eq(status->workers[0].state, "failed");
    ck_assert_str_eq(status->workers[0].reason, "no such file");
    ck_assert_str_eq(status->workers[0].aliases[0], "one");
    ck_assert_str_eq(status->workers[0].aliases[1], "t?wo");
    ck_assert_ptr_null(status->workers[0].aliases[2]);
    ck_assert_int_eq(
        quern_tokenize(client, &(struct quern_text){.text = "a", .len = 1}, 20000, &ids, &n, &err), 0);
    ck_assert_uint_eq(n, 3);
    ck_assert_int_eq(ids[2], 6);
    const struct quern_model *models = quern_models(client, &n);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(models[0].name, "fake");
    ck_assert(models[0].chat);
    stop();
}
END_TEST

START_TEST(a_question_that_is_refused_says_why)
{
    struct quern_error err = {0};
    const struct quern_status *status;
    const int32_t *ids;
    size_t n;
    char large[6000];
    memset(large, 'a', sizeof large);
    start((struct fake_config){.knows_no_ids = true});
    ck_assert_int_eq(
        quern_tokenize(client, &(struct quern_text){.text = "a", .len = 1}, 20000, &ids, &n, &err),
        -EREMOTEIO);
    ck_assert_str_eq(err.text, "no_worker: none is ready");
    uint64_t begun = clock_ns();
    ck_assert_int_eq(
        quern_tokenize(client, &(struct quern_text){.text = large, .len = 6000}, 9000, &ids, &n, &err),
        -EMSGSIZE);
    ck_assert_msg(strstr(err.text, "the pool accepts 4096"), "%s", err.text);
    ck_assert_uint_lt(clock_ns() - begun, 5 * CLOCK_NS_PER_S);
    ck_assert_int_eq(quern_status(client, 20000, &status, &err), 0);
    stop();
}
END_TEST

struct heard {
    int answers, code;
    size_t n_workers, n_ids;
    char text[128];
};

static void hear(void *arg, const struct quern_answer *answer)
{
    struct heard *heard = arg;
    heard->answers++;
    heard->code = answer->code;
    heard->n_workers = answer->status ? answer->status->n_workers : 0;
    heard->n_ids = answer->n_ids;
    snprintf(heard->text, sizeof heard->text, "%s", answer->text);
}

START_TEST(several_questions_are_open_at_once)
{
    struct heard status = {0}, tokens[2] = {{0}};
    start((struct fake_config){0});
    ck_assert_int_eq(quern_ask_tokenize(client, &(struct quern_text){.text = "a", .len = 1}, 30000, hear,
                                        &tokens[0], NULL),
                     0);
    ck_assert_int_eq(quern_ask_status(client, 30000, hear, &status, NULL), 0);
    ck_assert_int_eq(quern_ask_tokenize(client, &(struct quern_text){.text = "b", .len = 1}, 30000, hear,
                                        &tokens[1], NULL),
                     0);
    ck_assert_int_eq(status.answers, 0);
    DISPATCH_UNTIL(status.answers && tokens[0].answers && tokens[1].answers);
    ck_assert_uint_eq(status.n_workers, 1);
    ck_assert_uint_eq(tokens[0].n_ids, 3);
    ck_assert_uint_eq(tokens[1].n_ids, 3);
    ck_assert_str_eq(status.text, "");
    stop();
    start((struct fake_config){.knows_no_ids = true});
    ck_assert_int_eq(quern_ask_tokenize(client, &(struct quern_text){.text = "a", .len = 1}, 30000, hear,
                                        &tokens[0], NULL),
                     0);
    DISPATCH_UNTIL(tokens[0].answers == 2);
    ck_assert_int_eq(tokens[0].code, -EREMOTEIO);
    ck_assert_str_eq(tokens[0].text, "no_worker: none is ready");
    /* One that is open when the client goes is forgotten. */
    ck_assert_int_eq(quern_ask_status(client, 30000, hear, &status, NULL), 0);
    stop();
    ck_assert_int_eq(status.answers, 1);
}
END_TEST

START_TEST(a_cancel_that_comes_too_late_changes_nothing)
{
    static const int script[] = {0, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 3, .script = script, .cancels_unknown = true});
    struct quern_id id = send_request(&g);
    DISPATCH_UNTIL(g.n_ids > 0);
    ck_assert_int_eq(quern_cancel(client, id, NULL), 0);
    /* The pool says that it does not know the request; what is left of it comes all the same. */
    DISPATCH_UNTIL(g.ends > 0);
    ck_assert_int_eq(fake_broker_count(broker, "cancel"), 1);
    check_whole(&g, 3);
    ck_assert_int_eq(quern_cancel(client, id, NULL), -ENOENT);
    stop();
}
END_TEST

START_TEST(an_error_of_a_cancel_is_no_refusal_of_the_request)
{
    static const int script[] = {0, 1, 2, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){
        .n_frames = 3, .script = script, .says_of = true, .cancels_unknown = true, .accepts_late = true});
    struct quern_id id = send_request(&g);
    ck_assert_int_eq(quern_cancel(client, id, NULL), 0);
    /* The request is not known yet, and says so to the cancel; it is sent again, and taken then. */
    DISPATCH_UNTIL(g.ends > 0);
    check_whole(&g, 3);
    stop();
}
END_TEST

START_TEST(a_cancel_is_said_until_it_is_acknowledged_and_no_longer)
{
    static const int script[] = {0, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 2, .script = script, .cancels_lost = 1, .no_replays = true});
    struct quern_id id = send_request(&g);
    DISPATCH_UNTIL(g.n_ids > 0);
    ck_assert_int_eq(quern_cancel(client, id, NULL), 0);
    ck_assert_int_eq(quern_cancel(client, id, NULL), 0);
    DISPATCH_UNTIL(fake_broker_count(broker, "cancel") == 2);
    uint64_t acknowledged = clock_ns();
    DISPATCH_UNTIL(clock_ns() - acknowledged > 1500 * CLOCK_NS_PER_MS);
    ck_assert_int_eq(fake_broker_count(broker, "cancel"), 2);
    stop();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, many_requests_share_a_connection);
    tcase_add_test(tests, a_refusal_is_the_end_of_its_request);
    tcase_add_test(tests, what_a_broker_says_to_people_cannot_steer_a_terminal);
    tcase_add_test(tests, an_embedding_comes_whole_or_is_told_to_be_lost);
    tcase_add_test(tests, a_prompt_is_a_text_or_ids_or_messages);
    tcase_add_test(tests, a_request_that_cannot_be_right_is_refused_before_it_is_sent);
    tcase_add_test(tests, a_request_made_before_the_pool_said_what_it_takes_ends_if_it_takes_less);
    tcase_add_test(tests, what_the_pool_said_it_takes_is_held_before_anything_is_sent);
    tcase_add_test(tests, an_attached_request_comes_from_its_beginning);
    tcase_add_test(tests, nothing_waits_inside_a_callback);
    tcase_add_test(tests, questions_are_answered);
    tcase_add_test(tests, a_question_that_is_refused_says_why);
    tcase_add_test(tests, several_questions_are_open_at_once);
    tcase_add_test(tests, a_cancel_that_comes_too_late_changes_nothing);
    tcase_add_test(tests, an_error_of_a_cancel_is_no_refusal_of_the_request);
    tcase_add_test(tests, a_cancel_is_said_until_it_is_acknowledged_and_no_longer);
}

int main(void)
{
    return run_tests("client request", add);
}
