/* SPDX-License-Identifier: MIT */
/* A request that is stopped in one pool and goes on in another: ids, text, log probabilities, reason and
 * counters are those of the undisturbed one, wherever it was cut.
 *
 * Two pools of the tiny model with one seed. A request is cancelled in the first one at a random token; what
 * its outputs had brought until then, and nothing of what comes behind the cancel, is all that the second
 * one gets. */

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <quern.h>

#include "common/clock.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#define WAIT_S    120
#define TOKENS    72
#define LONG      900 /* tokens that take a while */
#define CUTS      6   /* of each request */
#define MOST_TOP  3
#define BIN_BYTES 16

static struct pool pools[2];
static struct quern *clients[2];
static char template_file[RUNDIR_PATH_MAX + 32];

/* Answers begin inside a thought, which ends with a text. */
static const char template[] =
    "{% for message in messages %}{{ '[' + message['role'] + ']\\n' }}{% if message.reasoning_content %}"
    "{{ '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}"
    "{{ message['content'] + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '[assistant]\\n<think>\\n' }}{% endif %}";
/* ---- what came of a request ---- */

struct heard {
    int32_t ids[LONG + 1];
    size_t n_ids;
    struct quern_logprob logprobs[(LONG + 1) * MOST_TOP];
    size_t n_logprobs; /* in all */
    char text[65536];
    size_t text_len;
    size_t text_at[LONG + 1]; /* bytes of text that had come with so many ids */
    uint8_t digest[BIN_BYTES];
    bool has_digest;
    bool deaf; /* nothing more of it counts */
    size_t cut_at;
    int ends;
    struct quern_end end;
    char error[32], error_text[512], stop[300], limit[32];
};

static struct heard *whole, *part; /* of the test that runs */

static void set_up(void)
{
    srandom(1234);
    snprintf(template_file, sizeof template_file, "/tmp/quern-resume-%d", (int)getpid());
    FILE *file = fopen(template_file, "w");
    ck_assert_ptr_nonnull(file);
    fputs(template, file);
    fclose(file);
    for (int i = 0; i < 2; i++) {
        pool_start(&pools[i], tiny_model(), "--device", "cpu", "--threads", "1", "--ctx", "1024",
                   "--frame-us", "0", "--chat-template", template_file, NULL);
    }
}

static void open_sessions(void)
{
    whole = calloc(1, sizeof *whole);
    part = calloc(1, sizeof *part);
    ck_assert(whole && part);
    for (int i = 0; i < 2; i++) {
        struct quern_error err = {0};
        ck_assert_msg(quern_connect(pools[i].rundir, WAIT_S * 1000, &clients[i], &err) == 0, "%s", err.text);
    }
}

static void close_sessions(void)
{
    for (int i = 0; i < 2; i++)
        clients[i] = quern_free(clients[i]);
    free(whole);
    free(part);
}

static void tear_down(void)
{
    for (int i = 0; i < 2; i++) {
        pool_stop(&pools[i], SIGTERM, WAIT_S);
        pool_forget(&pools[i]);
    }
    unlink(template_file);
}

/* Outputs without text, ids or log probabilities have null pointers. */
static void copy(void *to, const void *from, size_t len)
{
    if (len > 0)
        memcpy(to, from, len);
}

static void listen(void *arg, const struct quern_output *output)
{
    struct heard *heard = arg;
    ck_assert_int_eq(heard->ends, 0);
    if (!heard->deaf) {
        ck_assert_uint_eq(output->index, heard->n_ids);
        ck_assert_uint_le(heard->n_ids + output->n_ids, LONG);
        ck_assert_uint_le(heard->text_len + output->text_len, sizeof heard->text);
        copy(heard->ids + heard->n_ids, output->ids, output->n_ids * sizeof *output->ids);
        copy(heard->text + heard->text_len, output->text, output->text_len);
        copy(heard->logprobs + heard->n_logprobs, output->logprobs,
             output->n_ids * output->n_logprobs * sizeof *output->logprobs);
        heard->n_logprobs += output->n_ids * output->n_logprobs;
        heard->n_ids += output->n_ids;
        heard->text_len += output->text_len;
        heard->text_at[heard->n_ids] = heard->text_len;
        if (output->prompt_digest) {
            ck_assert(!heard->has_digest || memcmp(heard->digest, output->prompt_digest, BIN_BYTES) == 0);
            memcpy(heard->digest, output->prompt_digest, BIN_BYTES);
            heard->has_digest = true;
        }
    }
    if (output->end) {
        heard->ends++;
        heard->end = *output->end;
        snprintf(heard->error, sizeof heard->error, "%s", output->end->error);
        snprintf(heard->error_text, sizeof heard->error_text, "%s", output->end->text);
        snprintf(heard->stop, sizeof heard->stop, "%s", output->end->stop);
        snprintf(heard->limit, sizeof heard->limit, "%s", output->end->limit);
    }
    if (heard->cut_at > 0 && heard->n_ids >= heard->cut_at)
        heard->deaf = true;
}

static struct quern_id begin(int pool, const struct quern_request *request, struct heard *heard)
{
    struct quern_error err = {0};
    struct quern_id id;
    ck_assert_msg(quern_generate(clients[pool], request, listen, heard, &id, &err) == 0, "%s", err.text);
    return id;
}

static void await_end(int pool, struct heard *heard)
{
    const uint64_t until = clock_ns() + WAIT_S * CLOCK_NS_PER_S;
    struct quern_error err = {0};
    while (heard->ends == 0) {
        ck_assert_uint_lt(clock_ns(), until);
        ck_assert_msg(quern_dispatch(clients[pool], 100, &err) >= 0, "%s", err.text);
    }
}

/* As the pool answers without any disturbance. */
static void run(int pool, const struct quern_request *request, struct heard *ret_heard)
{
    *ret_heard = (struct heard){0};
    begin(pool, request, ret_heard);
    await_end(pool, ret_heard);
}

/* What came with the first `n` ids and no later; the rest is cancelled, or comes to deaf ears. */
static void run_part(int pool, const struct quern_request *request, size_t n, struct heard *ret_heard)
{
    struct quern_error err = {0};
    *ret_heard = (struct heard){.cut_at = n};
    const struct quern_id id = begin(pool, request, ret_heard);
    while (!ret_heard->deaf)
        ck_assert_msg(quern_dispatch(clients[pool], 100, &err) >= 0, "%s", err.text);
    quern_cancel(clients[pool], id, NULL);
    await_end(pool, ret_heard);
    ret_heard->ends = 0;
}

/* The request that goes on behind what was heard. */
static struct quern_request rest_of(const struct quern_request *request, const struct heard *heard)
{
    struct quern_request rest = *request;
    rest.output = heard->ids;
    rest.n_output = heard->n_ids;
    rest.off = heard->text_len;
    rest.prompt_digest = heard->digest;
    return rest;
}

/* What came in two parts is what came at once. */
static void expect_same(const char *what)
{
    ck_assert_msg(part->error[0] == 0, "%s: %s", what, part->error_text);
    ck_assert_msg(part->n_ids == whole->n_ids, "%s: %zu ids, not %zu", what, part->n_ids, whole->n_ids);
    for (size_t i = 0; i < whole->n_ids; i++)
        ck_assert_msg(part->ids[i] == whole->ids[i], "%s: id %zu", what, i);
    ck_assert_msg(part->text_len == whole->text_len && memcmp(part->text, whole->text, whole->text_len) == 0,
                  "%s: \"%.*s\", not \"%.*s\"", what, (int)part->text_len, part->text, (int)whole->text_len,
                  whole->text);
    ck_assert_msg(part->n_logprobs == whole->n_logprobs &&
                      memcmp(part->logprobs, whole->logprobs, whole->n_logprobs * sizeof *whole->logprobs) ==
                          0,
                  "%s: log probabilities", what);
    ck_assert_mem_eq(part->digest, whole->digest, BIN_BYTES);
    ck_assert_str_eq(quern_reason_name(part->end.reason), quern_reason_name(whole->end.reason));
    ck_assert_str_eq(part->stop, whole->stop);
    ck_assert_str_eq(part->limit, whole->limit);
    ck_assert_uint_eq(part->end.prompt_tokens, whole->end.prompt_tokens);
    ck_assert_uint_eq(part->end.output_tokens, whole->end.output_tokens);
    ck_assert_uint_eq(part->end.seed, whole->end.seed);
}

/* What was heard goes on in another pool. */
static void go_on(int pool, const struct quern_request *request, struct heard *heard)
{
    const struct quern_request rest = rest_of(request, heard);
    heard->deaf = false;
    heard->cut_at = 0;
    begin(pool, &rest, heard);
    await_end(pool, heard);
}

/* Cuts the request in CUTS places, and goes on in the other pool each time. Returns at how many of them the
 * text was behind that of `plain`, which has the same ids, because it was withheld; NULL: is not asked. */
static int check_cuts(const char *what, const struct quern_request *request, const struct heard *plain)
{
    int withheld = 0;
    run(0, request, whole);
    ck_assert_msg(whole->error[0] == 0, "%s: %s", what, whole->error_text);
    for (int i = 0; i < CUTS; i++) {
        const int pool = i % 2;
        run_part(pool, request, 1 + (size_t)random() % whole->n_ids, part);
        withheld += plain && part->text_len < plain->text_at[part->n_ids];
        go_on(1 - pool, request, part);
        expect_same(what);
    }
    return withheld;
}

static struct quern_request a_request(void)
{
    struct quern_request request;
    quern_request_init(&request);
    request.text = "The quick brown fox";
    request.max_tokens = TOKENS;
    request.has_seed = true;
    request.seed = 11;
    request.temperature = 0.8;
    request.ignore_eos = true;
    return request;
}

START_TEST(samplers_and_penalties_go_on)
{
    struct quern_request request = a_request();
    check_cuts("temperature 0.8", &request, NULL);
    request.temperature = 0;
    check_cuts("greedy", &request, NULL);
    request.frequency_penalty = 1.5;
    request.presence_penalty = 0.5;
    check_cuts("greedy with penalties for the output", &request, NULL);
    request.temperature = 0.8;
    request.repetition_penalty = 1.3;
    request.repeat_last_n = 20;
    check_cuts("penalties", &request, NULL);
    request = a_request();
    request.dry_multiplier = 0.8;
    request.dry_allowed_length = 1;
    request.temperature = 0.3;
    check_cuts("DRY", &request, NULL);
    request.logprobs = MOST_TOP;
    check_cuts("log probabilities", &request, NULL);
    request = a_request();
    request.ignore_eos = false;
    request.temperature = 1.5;
    for (request.seed = 1; request.seed < 6; request.seed++)
        check_cuts("the model's own end", &request, NULL);
    request.min_tokens = 40;
    check_cuts("an end that comes late", &request, NULL);
}
END_TEST

static bool begins_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

/* Copies a few characters of the text, from this place or a little behind it, that the model wrote as they
 * are.
 */
static void take_some(const struct heard *heard, size_t from, char ret_text[32])
{
    const size_t most = 6;
    while (from < heard->text_len &&
           (!begins_character(heard->text[from]) || memmem(heard->text + from, most, "\xef\xbf\xbd", 3)))
        from++;
    size_t to = from + most;
    ck_assert_uint_lt(to + 4, heard->text_len);
    while (!begins_character(heard->text[to]))
        to++;
    snprintf(ret_text, 32, "%.*s", (int)(to - from), heard->text + from);
}

/* Stop strings out of the answer itself, one of which never comes whole. */
START_TEST(stop_strings_are_found_across_the_cut)
{
    struct heard *plain = calloc(1, sizeof *plain);
    struct quern_request request = a_request();
    int withheld = 0, ended = 0;
    for (request.seed = 1; request.seed <= 12; request.seed++) {
        char stop[32], miss[40];
        const char *const stops[] = {miss, stop};
        request.n_stop = 0;
        run(0, &request, plain);
        take_some(plain, plain->text_len / 2, stop);
        take_some(plain, plain->text_len / 4, miss);
        strcat(miss, "~|~");
        request.stop = stops;
        request.n_stop = 2;
        withheld += check_cuts("stop strings", &request, plain);
        ended += whole->end.reason == QUERN_STOP && strcmp(whole->stop, stop) == 0;
    }
    ck_assert_int_gt(withheld, 3);
    ck_assert_int_gt(ended, 6);
    free(plain);
}
END_TEST

START_TEST(grammars_go_on)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"größe\":{\"enum\":[\"漢字\",\"klein\",1]},\"l\":{\"type\":"
        "\"array\",\"items\":{\"type\":\"string\",\"maxLength\":4},\"minItems\":3,\"maxItems\":5}},"
        "\"required\":[\"größe\",\"l\"],\"additionalProperties\":false}";
    struct quern_request request = a_request();
    request.ignore_eos = false;
    request.grammar = schema;
    request.grammar_kind = QUERN_SCHEMA;
    int whole_ones = 0;
    for (request.seed = 1; request.seed <= 4; request.seed++) {
        check_cuts("a schema", &request, NULL);
        whole_ones += whole->end.reason == QUERN_STOP;
    }
    ck_assert_int_gt(whole_ones, 0);
    request.grammar = "([a-f]{2,5}(é|漢|😀)){4,9}";
    request.grammar_kind = QUERN_REGEX;
    check_cuts("a regular expression", &request, NULL);
    request.grammar = NULL;
    request.grammar_kind = QUERN_JSON;
    request.frequency_penalty = 0.5;
    check_cuts("any JSON", &request, NULL);
}
END_TEST

START_TEST(budgets_of_thoughts_go_on)
{
    static const struct quern_message question = {.role = "user", .content = "Why?"};
    struct quern_request request = a_request();
    request.text = NULL;
    request.messages = &question;
    request.n_messages = 1;
    request.has_thinking_budget = true;
    for (request.thinking_budget = 0; request.thinking_budget <= 45; request.thinking_budget += 15) {
        check_cuts("a thought", &request, NULL);
        char text[sizeof whole->text + 1];
        snprintf(text, sizeof text, "%.*s", (int)whole->text_len, whole->text);
        ck_assert_msg(request.thinking_budget == 0 || strstr(text, "</think>"), "%s", text);
    }
}
END_TEST

/* Bytes of characters are ids of their own in this model: some cuts are inside one. */
START_TEST(characters_that_were_cut_in_two_come_whole)
{
    struct quern_request request = a_request();
    int inside = 0;
    for (request.seed = 20; request.seed < 24; request.seed++) {
        run(0, &request, whole);
        for (size_t n = 1; n < whole->n_ids; n += 1) {
            if (whole->text_at[n] > whole->text_at[n - 1] || n % 9 == 0)
                continue; /* its text had come */
            *part = *whole;
            part->ends = 0;
            part->n_ids = n;
            part->text_len = whole->text_at[n];
            go_on(1, &request, part);
            expect_same("a character");
            inside++;
        }
    }
    ck_assert_int_gt(inside, 3);
}
END_TEST

START_TEST(an_output_that_is_complete_gets_its_end_and_the_text_that_is_missing)
{
    struct quern_request request = a_request();
    int32_t stop_id;
    for (int i = 0; i < 2; i++) {
        run(0, &request, whole);
        ck_assert_int_eq(whole->end.reason, i == 0 ? QUERN_LENGTH : QUERN_STOP);
        for (int times = 0; times < 2; times++) {
            *part = *whole;
            part->ends = 0;
            part->text_len = times == 0 ? whole->text_len : 0;
            go_on(1, &request, part);
            expect_same("a complete output");
        }
        stop_id = whole->ids[30];
        request.stop_ids = &stop_id;
        request.n_stop_ids = 1;
    }
}
END_TEST

/* ---- what a pool refuses ---- */

/* The end of a request with this of an output. */
static void expect_refusal(const struct quern_request *request, const int32_t *ids, size_t n, uint64_t off,
                           const char *error, const char *text)
{
    struct quern_request rest = *request;
    *part = (struct heard){.deaf = true};
    rest.output = ids;
    rest.n_output = n;
    rest.off = off;
    begin(1, &rest, part);
    await_end(1, part);
    ck_assert_str_eq(part->error, error);
    ck_assert_msg(strstr(part->error_text, text), "%s", part->error_text);
    ck_assert_uint_eq(part->end.lost, 0);
}

START_TEST(an_output_that_cannot_be_is_refused_by_name)
{
    struct quern_request request = a_request();
    char text[128];
    run(0, &request, whole);
    int32_t ids[LONG];
    memcpy(ids, whole->ids, sizeof ids);
    ids[3] = 1000000;
    expect_refusal(&request, ids, 5, 0, "bad_request", "output[3]: id 1000000 is outside the vocabulary of ");
    snprintf(text, sizeof text, "off is 9999; the text of 5 ids has %zu bytes so far", whole->text_at[5]);
    expect_refusal(&request, whole->ids, 5, 9999, "bad_request", text);
    size_t inside = 0;
    while (inside < whole->text_len && begins_character(whole->text[inside]))
        inside++;
    ck_assert_uint_lt(inside, whole->text_len);
    snprintf(text, sizeof text, "off is %zu, inside a character of the output's text", inside);
    expect_refusal(&request, whole->ids, whole->n_ids - 1, inside, "bad_request", text);

    static int32_t many[3000];
    request.max_tokens = 0;
    expect_refusal(&request, many, 3000, 0, "too_long", " + output (3000) = ");
    request.max_tokens = TOKENS;

    request.prompt_digest = whole->digest;
    request.text = "The quick brown cat";
    expect_refusal(&request, whole->ids, 5, 0, "conflict", "the output continues another prompt");
    request.prompt_digest = NULL;
    request.grammar = "root ::= \"a\"+";
    request.ignore_eos = false;
    expect_refusal(&request, whole->ids, 5, 0, "bad_request",
                   "output: the grammar does not allow the byte 0x");
    request = a_request();
    const int32_t stop_id = whole->ids[30];
    request.stop_ids = &stop_id;
    request.n_stop_ids = 1;
    run(0, &request, whole);
    ck_assert_int_eq(whole->end.reason, QUERN_STOP);
    memcpy(ids, whole->ids, sizeof ids);
    ids[whole->n_ids] = 5;
    snprintf(text, sizeof text, "output[%zu] is after the end of the answer", whole->n_ids);
    expect_refusal(&request, ids, whole->n_ids + 1, 0, "bad_request", text);
}
END_TEST

START_TEST(a_prompt_and_an_output_that_are_too_long_together_are_refused_with_the_limit)
{
    enum { MANY = 500000 };
    int32_t *ids = calloc(MANY + 30000, sizeof *ids);
    for (int i = 0; i < MANY + 30000; i++)
        ids[i] = 70000; /* five bytes */
    struct quern_request request = a_request();
    struct quern_error err = {0};
    request.max_tokens = 0;
    request.text = NULL;
    request.ids = ids;
    request.n_ids = MANY;
    request.output = ids;
    request.n_output = MANY;
    ck_assert_int_eq(quern_generate(clients[0], &request, NULL, NULL, NULL, &err), -EMSGSIZE);
    ck_assert_msg(strstr(err.text, "the pool accepts 4 MiB"), "%s", err.text);
    request.n_output = MANY + 30000;
    ck_assert_int_eq(quern_generate(clients[0], &request, NULL, NULL, NULL, &err), -EMSGSIZE);
    ck_assert_msg(strstr(err.text, "ids of an output"), "%s", err.text);
    free(ids);
}
END_TEST

/* ---- what dies in the second pool ---- */

static void check_killed(pid_t (*whom)(void), const char *what)
{
    struct quern_request request = a_request();
    request.max_tokens = LONG;
    request.frequency_penalty = 0.2;
    run(0, &request, whole);
    int killed = 0;
    for (int i = 0; i < 20 && killed < 3; i++) {
        run_part(0, &request, 100 + 20 * (size_t)i, part);
        const struct quern_request rest = rest_of(&request, part);
        const size_t before = part->n_ids;
        part->deaf = false;
        part->cut_at = 0;
        begin(1, &rest, part);
        while (part->n_ids < before + 20 && part->ends == 0)
            ck_assert_int_ge(quern_dispatch(clients[1], 100, NULL), 0);
        if (part->ends == 0) { /* else all of it came at once */
            kill(whom(), SIGKILL);
            killed++;
        }
        await_end(1, part);
        expect_same(what);
    }
    ck_assert_int_gt(killed, 0);
}

static pid_t worker_of_second(void)
{
    pid_t pid = 0;
    while (pool_worker_pids(&pools[1], &pid, 1) < 1 || pid == 0)
        usleep(10000);
    return pid;
}

static pid_t broker_of_second(void)
{
    return pool_broker_pid(&pools[1]);
}

START_TEST(a_worker_that_dies_with_a_resumed_request_is_followed_by_another)
{
    check_killed(worker_of_second, "a worker's death");
}
END_TEST

START_TEST(a_broker_that_dies_with_a_resumed_request_is_followed_by_another)
{
    check_killed(broker_of_second, "a broker's death");
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 600);
    tcase_add_unchecked_fixture(tests, set_up, tear_down);
    tcase_add_checked_fixture(tests, open_sessions, close_sessions);
    tcase_add_test(tests, samplers_and_penalties_go_on);
    tcase_add_test(tests, stop_strings_are_found_across_the_cut);
    tcase_add_test(tests, grammars_go_on);
    tcase_add_test(tests, budgets_of_thoughts_go_on);
    tcase_add_test(tests, characters_that_were_cut_in_two_come_whole);
    tcase_add_test(tests, an_output_that_is_complete_gets_its_end_and_the_text_that_is_missing);
    tcase_add_test(tests, an_output_that_cannot_be_is_refused_by_name);
    tcase_add_test(tests, a_prompt_and_an_output_that_are_too_long_together_are_refused_with_the_limit);
    tcase_add_test(tests, a_worker_that_dies_with_a_resumed_request_is_followed_by_another);
    tcase_add_test(tests, a_broker_that_dies_with_a_resumed_request_is_followed_by_another);
}

int main(void)
{
    return run_tests("resume", add);
}
