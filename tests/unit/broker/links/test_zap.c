/* SPDX-License-Identifier: MIT */
/* Who may connect: the questions that libzmq asks, put by the test, and the answers. */

#include "broker/links/zap.h"
#include "common/clock.h"
#include "tests/unit/broker/logged.h"
#include "tests/unit/run.h"

#include <string.h>
#include <unistd.h>

#define KEY    "0123456789abcdef0123456789abcdef"
#define SECOND CLOCK_NS_PER_S

static void *context, *asker;
static struct zap zap;
static struct client_keys keys;
static struct client_key known = {.bytes = KEY, .number = 4294967295u};

static void set_up(void)
{
    int none = 0;
    context = zmq_ctx_new();
    keys = (struct client_keys){.folder = "the-folder"};
    HASH_ADD(by_bytes, keys.by_bytes, bytes, CLIENT_KEY_BYTES, &known);
    HASH_ADD(by_number, keys.by_number, number, sizeof known.number, &known);
    ck_assert_int_eq(zap_init(&zap, context, &keys, NULL), 0);
    asker = zmq_socket(context, ZMQ_DEALER);
    zmq_setsockopt(asker, ZMQ_LINGER, &none, sizeof none);
    ck_assert_int_eq(zmq_connect(asker, "inproc://zeromq.zap.01"), 0);
}

static void tear_down(void)
{
    zmq_close(asker);
    zap_deinit(&zap);
    ck_assert_ptr_null(zap.socket);
    HASH_CLEAR(by_bytes, keys.by_bytes);
    HASH_CLEAR(by_number, keys.by_number);
    zmq_ctx_term(context);
}

/* The parts of a question, after the delimiter. */
enum { VERSION, NUMBER, DOMAIN, ADDRESS, ROUTING_ID, MECHANISM, CLIENT, PARTS };
static const char *const good[PARTS + 1] = {"1.0", "the 7th", "quern", "10.0.0.1",
                                            "",    "CURVE",   KEY,     "beyond"};

static void ask(const char *const parts[], int n)
{
    zmq_send(asker, "", 0, ZMQ_SNDMORE);
    for (int i = 0; i < n; i++)
        zmq_send(asker, parts[i], strlen(parts[i]), i + 1 < n ? ZMQ_SNDMORE : 0);
}

/* Whether the next part of the answer is this text, and more follow. */
static void expect(const char *text, bool more)
{
    char part[64] = "";
    int n = zmq_recv(asker, part, sizeof part - 1, ZMQ_DONTWAIT), follows = 0;
    size_t size = sizeof follows;
    ck_assert_int_ge(n, 0);
    ck_assert_str_eq(part, text);
    zmq_getsockopt(asker, ZMQ_RCVMORE, &follows, &size);
    ck_assert_int_eq(follows, more);
}

static void expect_answer(const char *code, const char *text, const char *user)
{
    expect("", true);
    expect("1.0", true);
    expect("the 7th", true);
    expect(code, true);
    expect(text, true);
    expect(user, true);
    expect("", false);
}

static void answer_all(void)
{
    ck_assert(!zap_answer(&zap));
}

START_TEST(who_owns_a_known_key_comes_in_under_its_number)
{
    ask(good, PARTS);
    answer_all();
    expect_answer("200", "OK", "4294967295");
    ck_assert_uint_eq(zap.refused, 0);
}
END_TEST

START_TEST(whatever_is_not_as_it_should_be_is_refused)
{
    static const struct {
        int part;
        const char *text;
    } wrong[] = {{VERSION, "2.0"},
                 {VERSION, "1.0.0"},
                 {VERSION, ""},
                 {DOMAIN, "other"},
                 {DOMAIN, "quernn"},
                 {MECHANISM, "PLAIN"},
                 {MECHANISM, "NULL"},
                 {CLIENT, "0123456789abcdef0123456789abcdeF"},
                 {CLIENT, "0123456789abcdef0123456789abcde"},
                 {CLIENT, KEY "0"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *parts[PARTS];
        memcpy(parts, good, sizeof parts);
        parts[wrong[i].part] = wrong[i].text;
        ask(parts, PARTS);
        answer_all();
        expect_answer("400", "no such client", "");
        ck_assert_uint_eq(zap.refused, i + 1);
    }
    ck_assert_str_eq(zap.from, "10.0.0.1");
}
END_TEST

START_TEST(a_question_of_another_length_is_none)
{
    char byte;
    ask(good, PARTS - 1);
    ask(good, PARTS + 1);
    ask(good, PARTS);
    answer_all();
    expect_answer("200", "OK", "4294967295");
    ck_assert_int_lt(zmq_recv(asker, &byte, 1, ZMQ_DONTWAIT), 0);
}
END_TEST

START_TEST(so_many_are_answered_at_once_and_then_the_others)
{
    for (int i = 0; i < 256; i++)
        ask(good, PARTS);
    ck_assert(zap_answer(&zap)); /* there may be more */
    ck_assert(!zap_answer(&zap));
    for (int i = 0; i < 256; i++)
        expect_answer("200", "OK", "4294967295");
    for (int i = 0; i < 255; i++)
        ask(good, PARTS);
    ck_assert(!zap_answer(&zap));
}
END_TEST

START_TEST(without_a_folder_of_keys_nothing_is_asked)
{
    struct zap nothing = {0};
    ck_assert(!zap_answer(&nothing));
    zap_deinit(&nothing);
}
END_TEST

static const char *report(uint64_t now)
{
    static struct logged logged;
    logged_begin(&logged);
    zap_report(&zap, now);
    return logged_end(&logged);
}

static void refuse(int n, const char *address)
{
    const char *const parts[] = {"1.0", "the 7th", "quern", address, "", "CURVE", "nobody's"};
    for (int i = 0; i < n; i++)
        ask(parts, PARTS);
    answer_all();
}

START_TEST(the_log_says_once_a_second_who_was_refused)
{
    ck_assert_str_eq(report(10 * SECOND), "");
    refuse(2, "10.0.0.1");
    refuse(1, "10.0.0.2");
    ck_assert_ptr_nonnull(strstr(report(10 * SECOND),
                                 "warn rejected 3 connections of clients whose keys are not in the-folder, "
                                 "the last from 10.0.0.2\n"));
    refuse(1, "10.0.0.3");
    ck_assert_str_eq(report(11 * SECOND - 1), "");
    ck_assert_ptr_nonnull(strstr(report(11 * SECOND), "warn rejected 1 connection of clients"));
    ck_assert_str_eq(report(20 * SECOND), "");
}
END_TEST

START_TEST(a_long_address_is_cut)
{
    char address[200] = "";
    memset(address, 'a', sizeof zap.from - 1);
    refuse(1, address);
    ck_assert_str_eq(zap.from, address);
    memset(address, 'b', sizeof address - 1);
    refuse(1, address);
    ck_assert_uint_eq(strlen(zap.from), sizeof zap.from - 1);
    ck_assert_mem_eq(zap.from, address, sizeof zap.from - 1);
}
END_TEST

START_TEST(two_cannot_be_asked_in_one_context)
{
    struct zap second;
    struct error err;
    ck_assert_int_eq(zap_init(&second, context, &keys, &err), -EADDRINUSE);
    ck_assert_str_eq(err.text, "inproc://zeromq.zap.01: Address already in use");
    zap_deinit(&second);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, who_owns_a_known_key_comes_in_under_its_number);
    tcase_add_test(tests, whatever_is_not_as_it_should_be_is_refused);
    tcase_add_test(tests, a_question_of_another_length_is_none);
    tcase_add_test(tests, so_many_are_answered_at_once_and_then_the_others);
    tcase_add_test(tests, without_a_folder_of_keys_nothing_is_asked);
    tcase_add_test(tests, the_log_says_once_a_second_who_was_refused);
    tcase_add_test(tests, a_long_address_is_cut);
    tcase_add_test(tests, two_cannot_be_asked_in_one_context);
}

int main(void)
{
    return run_tests("broker/zap", add);
}
