/* SPDX-License-Identifier: MIT */
/* A request that is stopped in one pool and goes on in another: ids, text, log probabilities, reason and
 * counters are those of the undisturbed one, wherever it was cut.
 *
 * Two pools of the tiny model with one seed. A request is cancelled in the first one at a random token; what
 * its outputs had brought until then, and nothing of what comes behind the cancel, is all that the second
 * one gets. */

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quern.h>

#include "common/clock.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#define WAIT_S    120
#define TOKENS    72
#define CUTS      6 /* of each request */
#define MOST_TOP  3
#define BIN_BYTES 16

static struct pool pools[2];
static struct quern *clients[2];
static void set_up(void)
{
    srandom(1234);
    for (int i = 0; i < 2; i++) {
        pool_start(&pools[i], tiny_model(), "--device", "cpu", "--threads", "1", "--ctx", "1024",
                   "--frame-us", "0", NULL);
    }
}

static void connect(void)
{
    for (int i = 0; i < 2; i++) {
        struct quern_error err = {0};
        ck_assert_msg(quern_connect(pools[i].rundir, WAIT_S * 1000, &clients[i], &err) == 0, "%s", err.text);
    }
}

static void disconnect(void)
{
    for (int i = 0; i < 2; i++)
        clients[i] = quern_free(clients[i]);
}

static void tear_down(void)
{
    for (int i = 0; i < 2; i++) {
        pool_stop(&pools[i], SIGTERM, WAIT_S);
        pool_forget(&pools[i]);
    }
}

/* ---- what came of a request ---- */

struct heard {
    int32_t ids[TOKENS + 1];
    size_t n_ids;
    struct quern_logprob logprobs[(TOKENS + 1) * MOST_TOP];
    size_t n_logprobs; /* in all */
    char text[16384];
    size_t text_len;
    uint8_t digest[BIN_BYTES];
    bool has_digest;
    bool deaf; /* nothing more of it counts */
    size_t cut_at;
    int ends;
    struct quern_end end;
    char error[32], error_text[512], stop[300], limit[32];
};

static void listen(void *arg, const struct quern_output *output)
{
    struct heard *heard = arg;
    ck_assert_int_eq(heard->ends, 0);
    if (!heard->deaf) {
        ck_assert_uint_eq(output->index, heard->n_ids);
        ck_assert_uint_le(heard->n_ids + output->n_ids, TOKENS + 1);
        ck_assert_uint_le(heard->text_len + output->text_len, sizeof heard->text);
        memcpy(heard->ids + heard->n_ids, output->ids, output->n_ids * sizeof *output->ids);
        memcpy(heard->text + heard->text_len, output->text, output->text_len);
        memcpy(heard->logprobs + heard->n_logprobs, output->logprobs,
               output->n_ids * output->n_logprobs * sizeof *output->logprobs);
        heard->n_logprobs += output->n_ids * output->n_logprobs;
        heard->n_ids += output->n_ids;
        heard->text_len += output->text_len;
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

/* Until `n` ids have come, or its end, which is no cut then: false. */
static bool run_part(int pool, const struct quern_request *request, size_t n, struct heard *ret_heard)
{
    struct quern_error err = {0};
    *ret_heard = (struct heard){.cut_at = n};
    const struct quern_id id = begin(pool, request, ret_heard);
    while (!ret_heard->deaf && ret_heard->ends == 0)
        ck_assert_msg(quern_dispatch(clients[pool], 100, &err) >= 0, "%s", err.text);
    if (ret_heard->ends > 0)
        return false;
    quern_cancel(clients[pool], id, NULL);
    await_end(pool, ret_heard);
    ret_heard->ends = 0;
    return true;
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

static void expect_same(const struct heard *heard, const struct heard *whole, const char *what)
{
    ck_assert_msg(heard->error[0] == 0, "%s: %s", what, heard->error_text);
    ck_assert_msg(heard->n_ids == whole->n_ids, "%s: %zu ids, not %zu", what, heard->n_ids, whole->n_ids);
    for (size_t i = 0; i < whole->n_ids; i++)
        ck_assert_msg(heard->ids[i] == whole->ids[i], "%s: id %zu", what, i);
    ck_assert_msg(heard->text_len == whole->text_len &&
                      memcmp(heard->text, whole->text, whole->text_len) == 0,
                  "%s: \"%.*s\", not \"%.*s\"", what, (int)heard->text_len, heard->text, (int)whole->text_len,
                  whole->text);
    ck_assert_msg(heard->n_logprobs == whole->n_logprobs &&
                      memcmp(heard->logprobs, whole->logprobs, whole->n_logprobs * sizeof *whole->logprobs) ==
                          0,
                  "%s: log probabilities", what);
    ck_assert_mem_eq(heard->digest, whole->digest, BIN_BYTES);
    ck_assert_str_eq(quern_reason_name(heard->end.reason), quern_reason_name(whole->end.reason));
    ck_assert_str_eq(heard->stop, whole->stop);
    ck_assert_str_eq(heard->limit, whole->limit);
    ck_assert_uint_eq(heard->end.prompt_tokens, whole->end.prompt_tokens);
    ck_assert_uint_eq(heard->end.output_tokens, whole->end.output_tokens);
    ck_assert_uint_eq(heard->end.seed, whole->end.seed);
}

/* Cuts the request in CUTS places, each time goes on in the other pool, and once more in the first. Returns
 * how often text was withheld at a cut. */
static int check_cuts(const char *what, const struct quern_request *request)
{
    struct heard *whole = calloc(1, sizeof *whole), *part = calloc(1, sizeof *part);
    int cuts = 0, withheld = 0;
    run(0, request, whole);
    ck_assert_msg(whole->error[0] == 0, "%s: %s", what, whole->error_text);
    for (int i = 0; i < CUTS && whole->n_ids > 1; i++) {
        const int pool = i % 2;
        if (!run_part(pool, request, 1 + (size_t)random() % (whole->n_ids - 1), part))
            continue;
        withheld += part->text_len < whole->text_len && part->text_len == 0;
        cuts++;
        struct quern_request rest = rest_of(request, part);
        part->deaf = false;
        part->cut_at = 0;
        begin(1 - pool, &rest, part);
        await_end(1 - pool, part);
        expect_same(part, whole, what);
    }
    ck_assert_msg(cuts > 0 || whole->n_ids < 3, "%s was never cut", what);
    free(whole);
    free(part);
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

START_TEST(a_stream_goes_on_in_another_pool_as_if_nothing_had_happened)
{
    struct quern_request request = a_request();
    check_cuts("temperature 0.8", &request);
    request.temperature = 0;
    check_cuts("greedy", &request);
    request.frequency_penalty = 1.5;
    request.presence_penalty = 0.5;
    check_cuts("greedy with penalties for the output", &request);
    request.temperature = 0.8;
    request.repetition_penalty = 1.3;
    request.repeat_last_n = 20;
    check_cuts("penalties", &request);
    request = a_request();
    request.dry_multiplier = 0.8;
    request.dry_allowed_length = 1;
    request.temperature = 0.3;
    check_cuts("DRY", &request);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 600);
    tcase_add_unchecked_fixture(tests, set_up, tear_down);
    tcase_add_checked_fixture(tests, connect, disconnect);
    tcase_add_test(tests, a_stream_goes_on_in_another_pool_as_if_nothing_had_happened);
}

int main(void)
{
    return run_tests("resume", add);
}
