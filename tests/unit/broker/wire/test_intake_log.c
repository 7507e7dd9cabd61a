/* SPDX-License-Identifier: MIT */
/* What the log says of connections that were closed for what they did, which the test sends. */

#include "broker/wire/intake_log.h"
#include "tests/unit/broker/logged.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "broker/wire/handshake.h"
#include "broker/wire/zmtp.h"
#include "common/clock.h"

#define SECOND CLOCK_NS_PER_S

static struct intake_log lines;

static void set_up(void)
{
    lines = (struct intake_log){0};
    intake_closed(lines.said); /* by the tests before, where all are one process */
}

/* As libzmq calls it. */
static ssize_t (*volatile receive)(int, void *, size_t, int) = recv;

static const char *said(uint64_t now)
{
    static struct logged logged;
    logged_begin(&logged);
    intake_log_turn(&lines, now);
    return logged_end(&logged);
}

/* A connection to a listener of this kind; the caller has its other end. */
struct connection {
    int listener, ours, other;
};

static struct connection connect_to(enum intake_kind kind)
{
    struct sockaddr_un anywhere = {.sun_family = AF_UNIX};
    struct connection connection = {.listener = socket(AF_UNIX, SOCK_STREAM, 0)};
    int pair[2];
    ck_assert_int_eq(bind(connection.listener, (struct sockaddr *)&anywhere, sizeof(sa_family_t)), 0);
    intake_listen_for(kind);
    ck_assert_int_eq(listen(connection.listener, 1), 0);
    intake_listen_for(INTAKE_ANYTHING);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    intake_accepted(pair[0], connection.listener);
    connection.ours = pair[0];
    connection.other = pair[1];
    return connection;
}

static void end(const struct connection *connection)
{
    close(connection->ours);
    close(connection->other);
    close(connection->listener);
    intake_caught_up();
}

/* The greeting, and what follows it. Whether the connection stays. */
static bool say(const struct connection *connection, const char *bytes, size_t n)
{
    static const char greeting[ZMTP_GREETING_BYTES] = {'\xff', [9] = 0x7f, 3};
    char into[256];
    ck_assert_int_eq(write(connection->other, greeting, sizeof greeting), sizeof greeting);
    ck_assert_int_eq(receive(connection->ours, into, sizeof greeting, 0), sizeof greeting);
    ck_assert_int_eq(write(connection->other, bytes, n), (ssize_t)n);
    ssize_t got = 1;
    for (size_t left = n; left > 0 && got > 0; left -= (size_t)got)
        got = receive(connection->ours, into, left < sizeof into ? left : sizeof into, 0);
    ck_assert(got > 0 || errno == ECONNRESET);
    return got > 0;
}

static bool stays(enum intake_kind kind, const char *bytes, size_t n)
{
    struct connection connection = connect_to(kind);
    bool does = say(&connection, bytes, n);
    end(&connection);
    return does;
}

/* So many parts of a message of which none is the last. */
static bool stays_with_parts(size_t n)
{
    char parts[2 * INTAKE_MAX_PARTS + 2];
    for (size_t i = 0; i < n; i++)
        memcpy(parts + 2 * i, "\1", 2);
    return stays(INTAKE_MESSAGES, parts, 2 * n);
}

START_TEST(each_reason_is_told_with_its_bound)
{
    static const char ping[] = "\4\7\4PING\0\36";
    ck_assert_str_eq(said(10 * SECOND), "");
    ck_assert(stays_with_parts(INTAKE_MAX_PARTS - 1));
    ck_assert_str_eq(said(10 * SECOND), "");
    ck_assert(!stays_with_parts(INTAKE_MAX_PARTS));
    ck_assert_ptr_nonnull(strstr(said(10 * SECOND),
                                 "warn closed 1 connection for violations (1 in all): 1 with a message "
                                 "of more than 16 parts\n"));
    ck_assert(!stays(INTAKE_SUBSCRIPTIONS, ping, sizeof ping - 1));
    ck_assert(!stays_with_parts(INTAKE_MAX_PARTS));
    ck_assert(!stays_with_parts(INTAKE_MAX_PARTS));
    ck_assert_str_eq(said(11 * SECOND - 1), ""); /* a line a second */
    ck_assert_ptr_nonnull(strstr(said(11 * SECOND),
                                 "warn closed 3 connections for violations (4 in all): 2 with a message "
                                 "of more than 16 parts; 1 with a PING that has a time to live\n"));
    ck_assert_str_eq(said(20 * SECOND), "");
}
END_TEST

START_TEST(what_listeners_may_subscribe_is_told)
{
    static char bytes[INTAKE_MAX_SUBSCRIBER_BYTES + 1000];
    ck_assert(!stays(INTAKE_SUBSCRIPTIONS_CURVE, bytes, sizeof bytes));
    ck_assert_ptr_nonnull(strstr(said(10 * SECOND),
                                 "1 with more subscriptions than 16384 bytes, or than 262144 of all and 4096 "
                                 "more a second\n"));
}
END_TEST

START_TEST(a_message_beyond_the_bound_of_a_connection_is_told)
{
    static const char head[] = {2, 0, 0, 0, 0, 7, 0, 0, 0}; /* a frame of 112 MiB */
    static char bytes[64 << 10];
    struct connection connection = connect_to(INTAKE_MESSAGES);
    size_t sent = 0;
    ck_assert(say(&connection, head, sizeof head));
    for (ssize_t n = 1; n > 0;) {
        ssize_t left = write(connection.other, bytes, sizeof bytes);
        ck_assert_int_gt(left, 0);
        for (; left > 0 && (n = receive(connection.ours, bytes, (size_t)left, 0)) > 0; left -= n)
            sent += (size_t)n;
    }
    ck_assert_int_eq(errno, ECONNRESET);
    ck_assert_uint_le(sent, INTAKE_MAX_CONNECTION_BYTES);
    ck_assert_uint_gt(sent, INTAKE_MAX_CONNECTION_BYTES - sizeof bytes);
    ck_assert_ptr_nonnull(strstr(said(10 * SECOND), "1 with messages of more than 48 MiB under way\n"));
    end(&connection);
}
END_TEST

START_TEST(who_does_not_speak_zmtp_is_told)
{
    static const enum intake_kind kinds[] = {INTAKE_MESSAGES, INTAKE_SUBSCRIPTIONS};
    char byte;
    for (int i = 0; i < 2; i++) {
        struct connection connection = connect_to(kinds[i]);
        ck_assert_int_eq(write(connection.other, "GET", 3), 3);
        ck_assert_int_eq(receive(connection.ours, &byte, 1, 0), -1);
        ck_assert_int_eq(errno, ECONNRESET);
        end(&connection);
    }
    ck_assert_ptr_nonnull(strstr(said(10 * SECOND), "2 that did not speak ZMTP 3\n"));
}
END_TEST

/* As libzmq calls it. */
static ssize_t (*volatile transmit)(int, const void *, size_t, int) = send;

/* What libzmq says to a client with a key, up to the command of this name, in pieces. */
static void shake_hands(const struct connection *connection, const char *command, size_t piece)
{
    char bytes[ZMTP_GREETING_BYTES + 2 + 168 + 10] = {0}, *at = bytes + ZMTP_GREETING_BYTES + 2 + 168;
    *at++ = ZMTP_COMMAND;
    *at++ = 50;
    *at++ = (char)strlen(command);
    memcpy(at, command, strlen(command));
    at += strlen(command);
    for (char *next = bytes; next < at; next += piece)
        ck_assert_int_gt(
            transmit(connection->ours, next, piece < (size_t)(at - next) ? piece : (size_t)(at - next), 0),
            0);
}

START_TEST(who_is_not_let_in_has_no_large_messages)
{
    static const char large[] = {2, 0, 0, 0, 0, 0, 0x40, 0, 0}, small[] = {0, 2, 'a', 'b'};
    static const struct {
        const char *command;
        bool stays;
    } cases[] = {{"", false}, {"ERROR", false}, {"READ", false}, {"READY", true}};
    uint64_t now = 10 * SECOND;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece < 300; piece += 37, now += SECOND) {
            struct connection connection = connect_to(INTAKE_MESSAGES_CURVE);
            shake_hands(&connection, cases[i].command, piece);
            ck_assert(say(&connection, small, sizeof small));
            ck_assert_int_eq(write(connection.other, large, sizeof large), sizeof large);
            ssize_t got = receive(connection.ours, (char[16]){0}, 16, 0);
            ck_assert_int_eq(got, cases[i].stays ? (ssize_t)sizeof large : -1);
            ck_assert(strstr(said(now), "1 with more than 4096 bytes before authentication\n") ||
                      cases[i].stays);
            end(&connection);
        }
}
END_TEST

/* Small ones without end neither. */
START_TEST(who_is_not_let_in_has_few_messages)
{
    static char frames[2 * HANDSHAKE_MAX_BYTES];
    for (size_t at = 0; at < sizeof frames; at += 64)
        memcpy(frames + at, "\0\76", 2);
    ck_assert(!stays(INTAKE_MESSAGES_CURVE, frames, sizeof frames));
    ck_assert(stays(INTAKE_MESSAGES_CURVE, frames, HANDSHAKE_MAX_BYTES));
    ck_assert(stays(INTAKE_MESSAGES, frames, sizeof frames));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, each_reason_is_told_with_its_bound);
    tcase_add_test(tests, what_listeners_may_subscribe_is_told);
    tcase_add_test(tests, a_message_beyond_the_bound_of_a_connection_is_told);
    tcase_add_test(tests, who_does_not_speak_zmtp_is_told);
    tcase_add_test(tests, who_is_not_let_in_has_no_large_messages);
    tcase_add_test(tests, who_is_not_let_in_has_few_messages);
}

int main(void)
{
    return run_tests("broker/intake_log", add);
}
