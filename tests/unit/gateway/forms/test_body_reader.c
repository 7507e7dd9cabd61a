/* SPDX-License-Identifier: MIT */
/* Bodies that are read on the loop or beside it: what arrives, in which bounds, and who is told. */

#include "gateway/forms/body_reader.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/forms/openai/completions.h"
#include "gateway/core/gateway.h"
#include "gateway/json/json_memory.h"
#include "tests/unit/run.h"

#define MB      (1u << 20)
#define WAIT_MS 60000

static struct gateway gateway;

/* One body, and what became of it. */
struct one {
    struct body_reading reading;
    struct parameters parameters;
    struct exchange *exchange;
    unsigned ended; /* times that `then` was called */
    bool answered;  /* somebody was there then */
    unsigned order;
};

static unsigned ends;

static void then(struct body_reading *reading)
{
    struct one *asked = (struct one *)reading;
    asked->ended++;
    asked->answered = reading->exchange != NULL;
    asked->order = ++ends;
}

static void set_up(void)
{
    struct error err;
    gateway = (struct gateway){.bodies.most = 64 * MB};
    gateway.streams.unread.budget.most = MB;
    ends = 0;
    ck_assert_int_eq(body_reader_start(16 * MB, &gateway.body_reader, &err), 0);
}

static void tear_down(void)
{
    gateway.body_reader = body_reader_stop(gateway.body_reader);
    ck_assert_uint_eq(gateway.bodies.used, 0);
    ck_assert_uint_eq(gateway.streams.unread.budget.used, 0);
}

static void submit(struct one *asked, const char *body, size_t len)
{
    *asked = (struct one){.exchange = exchange_new(NULL, &gateway.streams)};
    asked->exchange->gateway = &gateway;
    asked->exchange->state = EXCHANGE_WORKING;
    ck_assert_int_eq(buffer_append(&asked->exchange->body, body, len), 0);
    ck_assert(budget_take(&gateway.bodies, len));
    asked->exchange->body_counted = len;
    parameters_init(&asked->parameters);
    asked->reading =
        (struct body_reading){.rows = completions_rows, .into = &asked->parameters, .then = then};
    body_read(asked->exchange, &asked->reading);
}

static void await(const struct one *asked)
{
    struct pollfd wakes = {.fd = body_reader_fd(gateway.body_reader), .events = POLLIN};
    while (asked->ended == 0) {
        ck_assert_int_eq(poll(&wakes, 1, WAIT_MS), 1);
        body_reader_deliver(gateway.body_reader);
    }
    ck_assert_uint_eq(asked->ended, 1);
}

static void end(struct one *asked)
{
    parameters_deinit(&asked->parameters);
    exchange_free(asked->exchange);
}

/* {"prompt": "aaa…"}, of `len` bytes in all. */
static char *prompt_of(size_t len)
{
    static const char head[] = "{\"prompt\": \"";
    char *body = malloc(len);
    ck_assert_ptr_nonnull(body);
    memset(body, 'a', len);
    memcpy(body, head, sizeof head - 1);
    memcpy(body + len - 2, "\"}", 2);
    return body;
}

/* {"prompt": [item, item, …]} of n items. */
static char *list_of(const char *item, size_t n)
{
    size_t each = strlen(item);
    char *body = malloc(n * (each + 1) + 32), *at = body;
    ck_assert_ptr_nonnull(body);
    at = stpcpy(at, "{\"prompt\": [");
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            *at++ = ',';
        at = stpcpy(at, item);
    }
    strcpy(at, "]}");
    return body;
}

START_TEST(a_small_body_is_read_at_once)
{
    struct one asked;
    submit(&asked, "{\"prompt\": \"Hi\"}", 16);
    ck_assert_uint_eq(asked.ended, 1);
    ck_assert(asked.answered);
    ck_assert_str_eq(asked.parameters.request.text, "Hi");
    ck_assert_uint_eq(gateway.bodies.used, asked.parameters.counted);
    ck_assert_uint_gt(asked.parameters.counted, 0);
    end(&asked);
}
END_TEST

START_TEST(many_small_bodies_of_one_turn_go_to_the_thread)
{
    struct one asked[8];
    char *body = prompt_of(16u << 10);
    unsigned at_once = 0;
    for (size_t i = 0; i < 8; i++) {
        submit(&asked[i], body, 16u << 10);
        at_once += asked[i].ended;
    }
    ck_assert_uint_eq(at_once, 4);
    for (size_t i = 0; i < 8; i++) {
        await(&asked[i]);
        ck_assert(asked[i].answered);
        end(&asked[i]);
    }
    submit(&asked[0], body, 16u << 10); /* another turn */
    ck_assert_uint_eq(asked[0].ended, 1);
    end(&asked[0]);
    free(body);
}
END_TEST

START_TEST(a_large_body_is_read_beside_the_loop_and_is_gone_then)
{
    struct one asked;
    char *body = prompt_of(MB);
    submit(&asked, body, MB);
    ck_assert_uint_eq(asked.ended, 0);
    await(&asked);
    ck_assert(asked.answered);
    ck_assert_uint_eq(asked.parameters.request.text_len, MB - 14);
    ck_assert_ptr_null(asked.reading.body.data);
    ck_assert_uint_lt(gateway.bodies.used, MB + (64u << 10));
    end(&asked);
    free(body);
}
END_TEST

START_TEST(a_small_body_does_not_wait_for_all_large_ones)
{
    struct one large[6], small[5];
    char *body = prompt_of(4 * MB);
    char *little = prompt_of(16u << 10);
    for (size_t i = 0; i < 6; i++)
        submit(&large[i], body, 4 * MB);
    for (size_t i = 0; i < 5; i++)
        submit(&small[i], little, 16u << 10);
    await(&small[4]);
    ck_assert_uint_eq(large[5].ended, 0);
    for (size_t i = 0; i < 6; i++) {
        await(&large[i]);
        end(&large[i]);
    }
    for (size_t i = 0; i < 5; i++)
        end(&small[i]);
    free(body);
    free(little);
}
END_TEST

static void is_refused(struct one *asked, unsigned status, const char *what)
{
    await(asked);
    ck_assert(!asked->answered);
    ck_assert_uint_eq(asked->exchange->status, status);
    char *text = strndup((const char *)asked->exchange->out.data, asked->exchange->out.len);
    ck_assert_msg(strstr(text, what) != NULL, "%s", text);
    free(text);
    end(asked);
}

START_TEST(a_tree_that_is_too_large_is_refused)
{
    struct one asked;
    char *body = list_of("{}", 1000000);
    submit(&asked, body, strlen(body));
    is_refused(&asked, 413, "too many values");
    free(body);
    body = list_of("1", 300000); /* the next one finds all of the memory again */
    submit(&asked, body, strlen(body));
    await(&asked);
    ck_assert_uint_eq(asked.parameters.request.n_ids, 300000);
    end(&asked);
    free(body);
}
END_TEST

START_TEST(a_large_body_that_is_wrong_is_refused_by_what_is_wrong)
{
    struct one asked;
    char *body = prompt_of(MB);
    body[MB - 1] = ' ';
    submit(&asked, body, MB);
    is_refused(&asked, 400, "not JSON");
    free(body);
}
END_TEST

START_TEST(what_was_read_has_to_fit_into_the_budget)
{
    struct one asked;
    char *body = list_of("1", 100000); /* 200 kB that become 400 */
    gateway.bodies.most = strlen(body);
    submit(&asked, body, strlen(body));
    is_refused(&asked, 429, "receiving too much data");
    ck_assert_uint_eq(gateway.bodies.used, 0);
    free(body);
}
END_TEST

START_TEST(a_client_that_leaves_is_not_answered_and_all_is_given_back)
{
    struct one asked;
    char *body = prompt_of(MB);
    submit(&asked, body, MB);
    exchange_lost(asked.exchange);
    asked.exchange = exchange_free(asked.exchange);
    await(&asked);
    ck_assert(!asked.answered);
    parameters_deinit(&asked.parameters);
    free(body);
}
END_TEST

START_TEST(a_gateway_that_ends_reads_no_more)
{
    struct one asked;
    char *body = prompt_of(MB);
    gateway.draining = true;
    submit(&asked, body, MB);
    ck_assert_uint_eq(asked.ended, 1);
    ck_assert_uint_eq(gateway.bodies.used, 0);
    is_refused(&asked, 503, "shutting down");
    free(body);
}
END_TEST

START_TEST(what_is_under_way_at_the_end_is_handed_over)
{
    struct one asked[3];
    struct error err;
    char *body = prompt_of(MB);
    for (size_t i = 0; i < 3; i++) {
        submit(&asked[i], body, MB);
        exchange_lost(asked[i].exchange);
    }
    gateway.body_reader = body_reader_stop(gateway.body_reader);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(asked[i].ended, 1);
        end(&asked[i]);
    }
    ck_assert_int_eq(body_reader_start(MB, &gateway.body_reader, &err), 0);
    free(body);
}
END_TEST

START_TEST(memory_of_trees_is_used_again)
{
    struct json_memory memory;
    ck_assert_int_eq(json_memory_init(&memory, MB), 0);
    for (int round = 0; round < 100; round++) {
        json_memory_begin(&memory);
        json_t *json = json_loads("[1, \"two\", {\"three\": [3.5]}]", 0, NULL);
        ck_assert_uint_eq(json_array_size(json), 3);
        ck_assert((char *)json >= memory.base && (char *)json < memory.base + memory.size);
        json_decref(json);
        json_memory_end(&memory);
    }
    json_t *json = json_loads("[1]", 0, NULL); /* the allocator's again */
    ck_assert((char *)json < memory.base || (char *)json >= memory.base + memory.size);
    json_decref(json);
    json_memory_deinit(&memory);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_small_body_is_read_at_once);
    tcase_add_test(tests, many_small_bodies_of_one_turn_go_to_the_thread);
    tcase_add_test(tests, a_large_body_is_read_beside_the_loop_and_is_gone_then);
    tcase_add_test(tests, a_small_body_does_not_wait_for_all_large_ones);
    tcase_add_test(tests, a_tree_that_is_too_large_is_refused);
    tcase_add_test(tests, a_large_body_that_is_wrong_is_refused_by_what_is_wrong);
    tcase_add_test(tests, what_was_read_has_to_fit_into_the_budget);
    tcase_add_test(tests, a_client_that_leaves_is_not_answered_and_all_is_given_back);
    tcase_add_test(tests, a_gateway_that_ends_reads_no_more);
    tcase_add_test(tests, what_is_under_way_at_the_end_is_handed_over);
    tcase_add_test(tests, memory_of_trees_is_used_again);
}

int main(void)
{
    return run_tests("gateway body reader", add);
}
