/* SPDX-License-Identifier: MIT */
/* libquern against a broker that loses, reorders, repeats and forgets. */

#include "client/lib/quern.h"
#include "common/clock.h"
#include "tests/unit/client/fake_broker.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a callback gathered of one request. */
struct gathered {
    int n_ids;
    int ends;
    char text[4096];
    size_t text_len;
    enum quern_reason reason;
    char error[32], error_text[256];
    uint32_t retry_after_ms, output_tokens;
};

static void gather(void *arg, const struct quern_output *output)
{
    struct gathered *g = arg;
    ck_assert_int_eq(g->ends, 0);
    ck_assert_uint_eq(output->index, (uint64_t)g->n_ids);
    for (size_t i = 0; i < output->n_ids; i++)
        ck_assert_int_eq(output->ids[i], g->n_ids++);
    ck_assert_uint_lt(g->text_len + output->text_len, sizeof g->text);
    memcpy(g->text + g->text_len, output->text, output->text_len);
    g->text_len += output->text_len;
    if (!output->end)
        return;
    g->ends++;
    g->reason = output->end->reason;
    snprintf(g->error, sizeof g->error, "%s", output->end->error);
    snprintf(g->error_text, sizeof g->error_text, "%s", output->end->text);
    g->retry_after_ms = output->end->retry_after_ms;
    g->output_tokens = output->end->output_tokens;
}

static struct fake_broker *broker;
static struct quern *client;

static void start(struct fake_config config)
{
    char folder[RUNDIR_PATH_MAX + 1];
    struct quern_error err = {0};
    if (config.page_frames == 0)
        config.page_frames = 100;
    broker = fake_broker_new(&config, folder);
    int r = quern_connect(folder, 5000, &client, &err);
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
}

static void stop(void)
{
    client = quern_free(client);
    fake_broker_free(broker);
}

static void generate(struct gathered *g)
{
    struct quern_request request;
    struct quern_error err = {0};
    quern_request_init(&request);
    request.text = "Hi";
    int r = quern_generate_wait(client, &request, gather, g, &err);
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
}

/* The output arrived whole, once, and ended once. */
static void check_whole(const struct gathered *g, int n_frames)
{
    char expected[4096] = "";
    for (int i = 0; i < n_frames; i++)
        sprintf(expected + strlen(expected), "<%d>", i);
    ck_assert_int_eq(g->n_ids, 2 * n_frames);
    ck_assert_uint_eq(g->text_len, strlen(expected));
    ck_assert_mem_eq(g->text, expected, g->text_len);
    ck_assert_int_eq(g->ends, 1);
    ck_assert_int_eq(g->reason, QUERN_LENGTH);
    ck_assert_uint_eq(quern_active(client), 0);
}

/* Plays a script of `n` frames and checks that all of it arrives. The replays that it took. */
static int play(int n, const int *script, int page_frames)
{
    struct gathered g = {0};
    start((struct fake_config){.n_frames = n, .script = script, .page_frames = page_frames});
    generate(&g);
    check_whole(&g, n);
    int replays = fake_broker_count(broker, "replay");
    stop();
    return replays;
}

START_TEST(frames_in_order_need_no_replay)
{
    static const int script[] = {0, 1, 2, 3, STEP_END, STEP_STOP};
    ck_assert_int_eq(play(4, script, 0), 0);
}
END_TEST

START_TEST(an_end_that_overtakes_its_frames_is_waited_for)
{
    static const int script[] = {0, 1, STEP_END, 2, 3, STEP_STOP};
    ck_assert_int_eq(play(4, script, 0), 0);
}
END_TEST

START_TEST(lost_frames_are_replayed_page_by_page)
{
    static const int script[] = {0, 1, 8, 9, STEP_STOP};
    ck_assert_int_eq(play(10, script, 3), 3);
}
END_TEST

START_TEST(reordered_and_repeated_frames_come_once_and_in_order)
{
    static const int script[] = {1, 0, 3, 2, 2, 0, 4, 4, 5, STEP_STOP};
    ck_assert_int_gt(play(6, script, 2), 0);
}
END_TEST

START_TEST(live_frames_during_a_replay_wait_for_their_turn)
{
    static const int script[] = {0, 3, STEP_AFTER_REPLAY, 4, 6, 5, 7, 5, 6, 7, STEP_STOP};
    ck_assert_int_gt(play(8, script, 2), 1);
}
END_TEST

START_TEST(a_stream_that_lost_everything_is_made_good_after_the_end)
{
    static const int script[] = {STEP_END, STEP_STOP};
    uint64_t begun = clock_ns();
    ck_assert_int_eq(play(5, script, 2), 3);
    /* The DEALER's end shortens the wait: well below the second of silence. */
    ck_assert_uint_lt(clock_ns() - begun, 900 * CLOCK_NS_PER_MS);
}
END_TEST

START_TEST(silence_is_asked_about)
{
    static const int script[] = {0, STEP_STOP};
    ck_assert_int_ge(play(5, script, 100), 1);
}
END_TEST

START_TEST(the_last_frame_alone_can_be_lost)
{
    static const int script[] = {0, 1, 2, STEP_END, STEP_STOP};
    ck_assert_int_eq(play(4, script, 100), 1);
}
END_TEST

START_TEST(frames_of_an_older_epoch_are_not_seen)
{
    static const int script[] = {STEP_STALE, 0, STEP_STALE, STEP_MOVE, 1, STEP_STALE, 2, 3, STEP_STOP};
    ck_assert_int_eq(play(4, script, 0), 0);
}
END_TEST

START_TEST(a_welcome_that_is_lost_is_asked_for_again)
{
    static const int script[] = {0, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 1, .script = script, .welcomes_lost = 3});
    ck_assert_int_eq(fake_broker_count(broker, "join"), 4);
    generate(&g);
    check_whole(&g, 1);
    stop();
}
END_TEST

START_TEST(many_requests_share_a_connection)
{
    static const int script[] = {0, 2, 3, 1, 4, STEP_END, STEP_STOP};
    struct gathered g[20] = {0};
    struct quern_error err = {0};
    struct quern_request request;
    start((struct fake_config){.n_frames = 5, .script = script, .page_frames = 1});
    quern_request_init(&request);
    request.text = "Hi";
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(quern_generate(client, &request, gather, &g[i], NULL, &err), 0);
    ck_assert_uint_eq(quern_active(client), 20);
    while (quern_active(client) > 0)
        ck_assert_int_ge(quern_dispatch(client, 5000, &err), 0);
    for (int i = 0; i < 20; i++)
        check_whole(&g[i], 5);
    stop();
}
END_TEST

START_TEST(a_restarted_broker_is_met_again_and_the_request_goes_on)
{
    static const int script[] = {0, 1, STEP_FORGET, 4, 5, STEP_END, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 6, .script = script});
    generate(&g);
    check_whole(&g, 6);
    ck_assert_int_eq(fake_broker_count(broker, "hello"), 2);
    ck_assert_int_ge(fake_broker_count(broker, "attach"), 1);
    stop();
}
END_TEST

START_TEST(a_cancel_that_a_restart_swallowed_is_said_again)
{
    static const int script[] = {0, STEP_FORGET, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 6, .script = script});
    struct quern_request request;
    struct quern_error err = {0};
    struct quern_id id;
    quern_request_init(&request);
    request.text = "Hi";
    ck_assert_int_eq(quern_generate(client, &request, gather, &g, &id, &err), 0);
    while (g.n_ids == 0)
        ck_assert_int_ge(quern_dispatch(client, 50, &err), 0);
    ck_assert_int_eq(quern_cancel(client, id, &err), 0);
    for (uint64_t begun = clock_ns();
         fake_broker_count(broker, "cancel") < 2 && clock_ns() - begun < 10 * CLOCK_NS_PER_S;)
        ck_assert_int_ge(quern_dispatch(client, 50, &err), 0);
    ck_assert_int_ge(fake_broker_count(broker, "cancel"), 2);
    stop();
}
END_TEST

START_TEST(what_was_only_queued_is_sent_again_to_a_restarted_broker)
{
    static const int script[] = {STEP_FORGET, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 2, .script = script, .forgets_requests = true});
    struct quern_request request;
    struct quern_error err = {0};
    quern_request_init(&request);
    request.text = "Hi";
    ck_assert_int_eq(quern_generate(client, &request, gather, &g, NULL, &err), 0);
    /* Until it was forgotten, refused and sent again; from then on silence brings the frames by replay,
     * unless the broker forgets again, which its script does each time it is sent: twice is enough. */
    for (uint64_t begun = clock_ns();
         fake_broker_count(broker, "generate") < 2 && clock_ns() - begun < 10 * CLOCK_NS_PER_S;)
        ck_assert_int_ge(quern_dispatch(client, 50, &err), 0);
    ck_assert_int_ge(fake_broker_count(broker, "generate"), 2);
    ck_assert_int_eq(g.ends, 0);
    stop();
}
END_TEST

START_TEST(tokens_that_a_restart_lost_end_the_request_with_a_reason)
{
    static const int script[] = {0, 1, STEP_FORGET, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 6, .script = script, .forgets_requests = true});
    generate(&g);
    ck_assert_int_eq(g.ends, 1);
    ck_assert_int_eq(g.n_ids, 4);
    ck_assert_int_eq(g.reason, QUERN_ERROR);
    ck_assert_str_eq(g.error, "worker_lost");
    ck_assert_ptr_nonnull(strstr(g.error_text, "4 tokens"));
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
    ck_assert_str_eq(err.text, "generate: top_p: 3 is outside above 0 … 1");
    request.top_p = 1;
    memset(large, 'a', sizeof large - 1);
    large[sizeof large - 1] = 0;
    request.text = large;
    ck_assert_int_eq(quern_generate(client, &request, gather, NULL, NULL, &err), -EMSGSIZE);
    ck_assert_ptr_nonnull(strstr(err.text, "takes 4096"));
    ck_assert_uint_eq(quern_active(client), 0);
    ck_assert_int_eq(fake_broker_count(broker, "generate"), 0);
    ck_assert_int_eq(quern_cancel(client, (struct quern_id){{1}}, &err), -ENOENT);
    stop();
}
END_TEST

START_TEST(a_broker_that_falls_silent_ends_everything_with_a_reason)
{
    struct gathered g = {0};
    struct quern_error err = {0};
    struct quern_request request;
    start((struct fake_config){.silent = true});
    quern_set_patience(client, 300);
    quern_request_init(&request);
    request.text = "Hi";
    ck_assert_int_eq(quern_generate(client, &request, gather, &g, NULL, &err), 0);
    int r = 0;
    while (r >= 0)
        r = quern_dispatch(client, 1000, &err);
    ck_assert_int_eq(r, -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(err.text, "has not answered"));
    ck_assert_int_eq(g.ends, 1);
    ck_assert_int_eq(g.reason, QUERN_ERROR);
    ck_assert_int_eq(quern_generate(client, &request, gather, &g, NULL, &err), -ETIMEDOUT);
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
    ck_assert_int_eq(quern_status(client, 2000, &status, &err), 0);
    ck_assert_str_eq(status->version, "1.2.3");
    ck_assert_uint_eq(status->n_workers, 1);
    ck_assert_str_eq(status->workers[0].name, "worker-0");
    ck_assert_str_eq(status->workers[0].state, "failed");
    ck_assert_str_eq(status->workers[0].reason, "no such file");
    ck_assert_int_eq(quern_tokenize(client, NULL, "a", 1, false, 2000, &ids, &n, &err), 0);
    ck_assert_uint_eq(n, 3);
    ck_assert_int_eq(ids[2], 6);
    const struct quern_model *models = quern_models(client, &n);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(models[0].name, "fake");
    ck_assert(models[0].chat);
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
    quern_request_init(&request);
    request.text = "Hi";
    request.keep_s = 30;
    ck_assert_int_eq(quern_generate(client, &request, NULL, NULL, &id, &err), 0);
    struct quern_id session = quern_session(client);
    while (fake_broker_count(broker, "generate") == 0)
        ck_assert_int_ge(quern_dispatch(client, 20, &err), 0);
    quern_free(client);
    client = NULL;
    /* The fake broker has one session: the newest. */
    ck_assert_int_eq(quern_connect(fake_broker_folder(broker), 5000, &client, &err), 0);
    ck_assert_int_eq(quern_attach(client, session, id, gather, &g, &err), 0);
    ck_assert_int_eq(quern_attach(client, session, id, gather, &g, &err), -EEXIST);
    while (g.ends == 0)
        ck_assert_int_ge(quern_dispatch(client, 1000, &err), 0);
    check_whole(&g, 5);
    id.bytes[0] ^= 1;
    memset(&g, 0, sizeof g);
    ck_assert_int_eq(quern_attach(client, session, id, gather, &g, &err), 0);
    while (g.ends == 0)
        ck_assert_int_ge(quern_dispatch(client, 1000, &err), 0);
    ck_assert_str_eq(g.error, "unknown_request");
    stop();
}
END_TEST

START_TEST(a_pool_that_is_not_there_is_named)
{
    struct quern_error err = {0};
    struct quern *none = NULL;
    ck_assert_int_eq(quern_connect("/nowhere", 100, &none, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/nowhere/frontend"));
    ck_assert_int_eq(quern_connect("ipc:///tmp/quern-test-nobody", 100, &none, &err), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(err.text, "ipc:///tmp/quern-test-nobody"));
    ck_assert_int_eq(quern_connect("nonsense", 100, &none, &err), -EINVAL);
    ck_assert_int_lt(quern_connect("tcp://nonsense", 100, &none, &err), 0);
    ck_assert_ptr_null(none);
    ck_assert_ptr_null(quern_free(NULL));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, frames_in_order_need_no_replay);
    tcase_add_test(tests, an_end_that_overtakes_its_frames_is_waited_for);
    tcase_add_test(tests, lost_frames_are_replayed_page_by_page);
    tcase_add_test(tests, reordered_and_repeated_frames_come_once_and_in_order);
    tcase_add_test(tests, live_frames_during_a_replay_wait_for_their_turn);
    tcase_add_test(tests, a_stream_that_lost_everything_is_made_good_after_the_end);
    tcase_add_test(tests, silence_is_asked_about);
    tcase_add_test(tests, the_last_frame_alone_can_be_lost);
    tcase_add_test(tests, frames_of_an_older_epoch_are_not_seen);
    tcase_add_test(tests, a_welcome_that_is_lost_is_asked_for_again);
    tcase_add_test(tests, many_requests_share_a_connection);
    tcase_add_test(tests, a_restarted_broker_is_met_again_and_the_request_goes_on);
    tcase_add_test(tests, a_cancel_that_a_restart_swallowed_is_said_again);
    tcase_add_test(tests, what_was_only_queued_is_sent_again_to_a_restarted_broker);
    tcase_add_test(tests, tokens_that_a_restart_lost_end_the_request_with_a_reason);
    tcase_add_test(tests, a_refusal_is_the_end_of_its_request);
    tcase_add_test(tests, a_request_that_cannot_be_right_is_refused_before_it_is_sent);
    tcase_add_test(tests, a_broker_that_falls_silent_ends_everything_with_a_reason);
    tcase_add_test(tests, questions_are_answered);
    tcase_add_test(tests, an_attached_request_comes_from_its_beginning);
    tcase_add_test(tests, a_pool_that_is_not_there_is_named);
}

int main(void)
{
    return run_tests("client", add);
}
