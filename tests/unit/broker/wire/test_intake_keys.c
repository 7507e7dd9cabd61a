/* SPDX-License-Identifier: MIT */
/* Connections to the stream of clients with keys, as they are read: what those of one key have together. */

#include "broker/wire/intake.h"
#include "broker/wire/intake_log.h"
#include "tests/unit/broker/logged.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/wire/subscriber.h"
#include "common/clock.h"

enum { ALICE = 3, BOB = 4 };

#define SOME                                                                                                 \
    (3 *                                                                                                     \
     (size_t)INTAKE_SUBSCRIBER_CURVE_BYTES) /* the tests have one burst of all where they are one process */

static int listener;
static struct intake_log lines;

struct connection {
    int ours, other;
    uint32_t key; /* which its first subscription tells; 0: it tells none */
};

/* As libzmq calls it. */
static ssize_t (*volatile receive)(int, void *, size_t, int) = recv;

static void set_up(void)
{
    struct sockaddr_un anywhere = {.sun_family = AF_UNIX};
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&anywhere, sizeof(sa_family_t)), 0);
    intake_listen_for(INTAKE_SUBSCRIPTIONS_KEYS);
    ck_assert_int_eq(listen(listener, 1), 0);
    intake_listen_for(INTAKE_ANYTHING);
    lines = (struct intake_log){0};
    intake_closed(lines.said); /* by the tests before, where all are one process */
}

static void tear_down(void)
{
    close(listener);
    intake_caught_up();
    intake_close_unused(clock_ns() + 3600 * CLOCK_NS_PER_S); /* no key has spent anything */
}

static struct connection connect_as(uint32_t key)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    intake_accepted(pair[0], listener);
    return (struct connection){pair[0], pair[1], key};
}

static void end(const struct connection *connection)
{
    close(connection->ours);
    close(connection->other);
    intake_caught_up();
}

/* How many of so many bytes are read, before the connection is closed or waits (errno); the loop hears of its
 * key once its share was read. */
static size_t take(const struct connection *connection, size_t n)
{
    static char bytes[1024];
    size_t taken = 0;
    ssize_t got = 1;
    for (size_t sent; taken < n && got > 0; taken += got > 0 ? (size_t)got : 0) {
        sent = n - taken < sizeof bytes ? n - taken : sizeof bytes;
        if (recv(connection->ours, bytes, 1, MSG_PEEK) < 1 &&
            send(connection->other, bytes, sent, MSG_NOSIGNAL) < 0) /* it is closed, for its key */
            break;
        got = receive(connection->ours, bytes, sent, 0);
        if (connection->key && taken + sent >= INTAKE_SUBSCRIBER_CURVE_BYTES)
            intake_owned(connection->ours, connection->key);
    }
    return taken;
}

static const char *said(void)
{
    static struct logged logged;
    logged_begin(&logged);
    intake_log_turn(&lines, 10 * CLOCK_NS_PER_S);
    return logged_end(&logged);
}

/* What the rate lets a key have besides, while a test runs. */
static size_t more_since(uint64_t begun)
{
    return (size_t)((clock_ns() - begun) / CLOCK_NS_PER_S + 2) * INTAKE_KEY_BYTES_A_S;
}

START_TEST(more_connections_of_a_key_have_no_more)
{
    enum { MANY = 4 };
    const uint64_t begun = clock_ns();
    struct connection alice[MANY], bob = connect_as(BOB);
    size_t sum = 0;
    for (int i = 0; i < MANY; i++) {
        alice[i] = connect_as(ALICE);
        sum += take(&alice[i], INTAKE_MAX_SUBSCRIBER_BYTES);
    }
    ck_assert_uint_ge(sum, INTAKE_KEY_BURST + INTAKE_SUBSCRIBER_CURVE_BYTES);
    ck_assert_uint_le(sum, INTAKE_KEY_BURST + MANY * 2 * INTAKE_SUBSCRIBER_CURVE_BYTES + more_since(begun));
    ck_assert_ptr_nonnull(strstr(said(),
                                 "with more subscriptions than 65536 bytes of one client's key, or than "
                                 "1024 more a second"));
    ck_assert_uint_eq(take(&bob, INTAKE_KEY_BURST), INTAKE_KEY_BURST);
    for (int i = 0; i < MANY; i++)
        end(&alice[i]);
    end(&bob);
}
END_TEST

/* Of connections that have sent all that they may before their key is known. */
START_TEST(who_comes_and_goes_has_no_more_and_takes_nothing_from_another)
{
    enum { MANY = 400 };
    const uint64_t begun = clock_ns();
    const size_t most = 2 * INTAKE_SUBSCRIBER_CURVE_BYTES;
    struct connection bob = connect_as(BOB);
    size_t beyond = 0;
    char byte;
    for (int i = 0; i < MANY; i++) {
        struct connection alice = connect_as(0);
        ck_assert_uint_eq(take(&alice, most), most);
        intake_owned(alice.ours, ALICE);
        send(alice.other, "", 1, MSG_NOSIGNAL);
        bool stays = receive(alice.ours, &byte, 1, 0) == 1;
        ck_assert(stays || errno == ECONNRESET);
        beyond += stays ? INTAKE_SUBSCRIBER_CURVE_BYTES + 1 : 0;
        end(&alice);
    }
    ck_assert_uint_ge(beyond, INTAKE_KEY_BURST - INTAKE_SUBSCRIBER_CURVE_BYTES);
    ck_assert_uint_le(beyond, INTAKE_KEY_BURST + more_since(begun));
    ck_assert_ptr_nonnull(strstr(said(), "with more subscriptions than 65536 bytes of one client's key"));
    ck_assert_uint_eq(take(&bob, SOME), SOME);
    end(&bob);
}
END_TEST

/* Until it is closed; how long that took. */
static uint64_t await_close(const struct connection *connection)
{
    const uint64_t begun = clock_ns();
    char byte;
    while (receive(connection->ours, &byte, 1, 0) < 0 && errno == EAGAIN)
        ck_assert_uint_lt(clock_ns() - begun, 30 * CLOCK_NS_PER_S);
    ck_assert_int_eq(errno, ECONNRESET);
    return clock_ns() - begun;
}

START_TEST(who_subscribes_to_nothing_is_closed_and_keeps_the_reader_for_a_tenth_of_its_time)
{
    enum { MANY = 100 };
    const uint64_t begun = clock_ns();
    struct connection bob = connect_as(BOB);
    uint64_t waited_ns = 0;
    for (int i = 0; i < MANY; i++) { /* each of them as soon as the one before is closed */
        struct connection mute = connect_as(0);
        ck_assert_uint_eq(take(&mute, 2 * INTAKE_SUBSCRIBER_CURVE_BYTES), 2 * INTAKE_SUBSCRIBER_CURVE_BYTES);
        waited_ns += await_close(&mute);
        end(&mute);
        usleep(5000);
    }
    ck_assert_uint_gt(waited_ns, 0);
    ck_assert_uint_lt(waited_ns, (clock_ns() - begun) / 2);
    ck_assert_ptr_nonnull(strstr(said(), "100 with 1280 bytes and no subscription among them"));
    ck_assert_uint_eq(take(&bob, SOME), SOME);
    end(&bob);
}
END_TEST

START_TEST(who_says_late_who_it_is_is_read_on)
{
    struct connection late = connect_as(0);
    char byte;
    usleep(SUBSCRIBER_WAIT_EVERY_MS * 1000); /* where all are one process */
    ck_assert_uint_eq(take(&late, 4000), 2 * INTAKE_SUBSCRIBER_CURVE_BYTES);
    ck_assert_int_eq(errno, EAGAIN);
    intake_owned(late.ours, BOB);
    ck_assert_int_eq(receive(late.ours, &byte, 1, 0), 1);
    end(&late);
}
END_TEST

START_TEST(the_end_of_a_connection_ends_its_subscriptions)
{
    struct connection first = connect_as(ALICE), second = connect_as(ALICE), unknown = connect_as(0);
    intake_owned(first.ours, ALICE);
    intake_owned(second.ours, ALICE);
    for (int i = 0; i < 3; i++)
        intake_subscribed(first.ours, true);
    intake_subscribed(second.ours, true);
    intake_subscribed(unknown.ours, true);
    intake_subscribed(-1, true); /* as of an end that the socket reports itself */
    ck_assert_uint_eq(intake_subscriptions_of(ALICE), 4);
    intake_subscribed(first.ours, false);
    ck_assert_uint_eq(intake_subscriptions_of(ALICE), 3);
    end(&first);
    ck_assert_uint_eq(intake_subscriptions_of(ALICE), 1);
    intake_subscribed(first.ours, true); /* taken after its end */
    ck_assert_uint_eq(intake_subscriptions_of(ALICE), 1);
    end(&second);
    ck_assert_uint_eq(intake_subscriptions_of(ALICE), 0);
    end(&unknown);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, more_connections_of_a_key_have_no_more);
    tcase_add_test(tests, who_comes_and_goes_has_no_more_and_takes_nothing_from_another);
    tcase_add_test(tests, who_subscribes_to_nothing_is_closed_and_keeps_the_reader_for_a_tenth_of_its_time);
    tcase_add_test(tests, who_says_late_who_it_is_is_read_on);
    tcase_add_test(tests, the_end_of_a_connection_ends_its_subscriptions);
}

int main(void)
{
    return run_tests("broker/intake_keys", add);
}
