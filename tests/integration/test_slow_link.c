/* SPDX-License-Identifier: MIT */
/* A pool at the end of a slow link: what a client lacks comes once, and what it cannot take yet waits with
 * the broker, which bounds it, and not in the kernel. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/integration/support/slow_link.h"
#include "tests/unit/run.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/clock.h"

#define SLOW_BYTES_PER_S (150u << 10)
#define FAST_BYTES_PER_S (100u << 20)

/* An answer of a little more than three pages: an id with its alternatives has some 250 bytes. */
enum { TOKENS = 3400, LOGPROBS = 20 };

static struct pool pool;
static struct slow_link slow_link;
static char address[64], endpoint[64];
static int port;

static void set_up(void)
{
    port = pool_free_ports();
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    snprintf(endpoint, sizeof endpoint, "tcp://" SLOW_LINK_HOST ":%d", port);
    pool_start(&pool, tiny_model(), "--device", "null", "--ctx", "4096", "--tcp", address, "--public-host",
               SLOW_LINK_HOST, NULL);
    slow_link_start(&slow_link, port, FAST_BYTES_PER_S);
}

static void tear_down(void)
{
    slow_link_stop(&slow_link);
    pool_forget(&pool);
}

static void set_rate(uint32_t bytes_per_s)
{
    __atomic_store_n(&slow_link.shared->bytes_per_s, bytes_per_s, __ATOMIC_RELAXED);
}

static uint64_t passed_on(int which)
{
    return __atomic_load_n(&slow_link.shared->to_clients[which], __ATOMIC_RELAXED);
}

static struct quern_request with_logprobs(void)
{
    struct quern_request request = endless("a long answer", TOKENS);
    request.logprobs = LOGPROBS;
    request.pieces = true;
    request.keep_s = 600;
    return request;
}

/* Reads the whole of an answer that another session has had. The bytes that came for it, but for those of the
 * opening. */
static uint64_t read_again(struct quern_id *session, struct quern_id id, uint32_t bytes_per_s)
{
    struct answer answer = {0};
    struct quern *client = connect_to(endpoint);
    uint64_t before = passed_on(0);
    set_rate(bytes_per_s);
    ck_assert_int_eq(quern_attach(client, *session, id, answer_collect, &answer, NULL), 0);
    await_answers(client, &answer, 1, 200);
    ck_assert_msg(answer.reason == QUERN_LENGTH, "%s: %s", answer.error, answer.error_text);
    ck_assert_uint_eq(answer.output_tokens, TOKENS);
    uint64_t bytes = passed_on(0) - before;
    *session = quern_session(client);
    /* What is under way for it still counts. */
    for (uint64_t until = clock_ns() + CLOCK_NS_PER_S; clock_ns() < until;)
        quern_dispatch(client, 50, NULL);
    bytes = passed_on(0) - before;
    set_rate(FAST_BYTES_PER_S);
    quern_free(client);
    answer_deinit(&answer);
    return bytes;
}

/* Only the first page is asked for twice: how long one takes is not known yet. */
START_TEST(pages_of_a_replay_come_once_over_a_slow_link)
{
    struct answer answer = {0};
    struct quern *client = connect_to(pool.frontend);
    struct quern_id session = quern_session(client);
    struct quern_request request = with_logprobs();
    struct quern_id id = send_request(client, &request, &answer);
    await_answers(client, &answer, 1, 200);
    uint64_t needed = read_again(&session, id, FAST_BYTES_PER_S);
    uint64_t came = read_again(&session, id, SLOW_BYTES_PER_S);
    printf("%" PRIu64 " bytes, over a slow link %" PRIu64 "\n", needed, came);
    ck_assert_uint_gt(needed, 3 * (256u << 10));
    ck_assert_uint_lt(came, needed + (300u << 10));
    quern_free(client);
    answer_deinit(&answer);
}
END_TEST

/* The bytes of the broker's connections at this port that the other end has not taken: the most of one. */
static unsigned long most_unsent(int of_port)
{
    char line[512];
    unsigned long most = 0;
    FILE *table = fopen("/proc/net/tcp", "r");
    ck_assert_ptr_nonnull(table);
    while (fgets(line, sizeof line, table)) {
        unsigned local, local_port, remote, remote_port, state;
        unsigned long unsent;
        if (sscanf(line, " %*d: %x:%x %x:%x %x %lx:", &local, &local_port, &remote, &remote_port, &state,
                   &unsent) == 6 &&
            local_port == (unsigned)of_port && state == 1 && local == 0x0100007f && unsent > most)
            most = unsent;
    }
    fclose(table);
    return most;
}

/* And when the link is there again, all of it comes. */
START_TEST(what_a_client_cannot_take_does_not_pile_up_in_the_kernel)
{
    enum { N = 4 };
    struct answer far[N] = {0}, near = {0};
    struct quern *client = connect_to(endpoint), *neighbour = connect_to(pool.frontend);
    struct quern_request request = with_logprobs();
    set_rate(SLOW_BYTES_PER_S); /* or all may have come before the link ends */
    for (int i = 0; i < N; i++)
        send_request(client, &request, &far[i]);
    await_ids(client, &far[N - 1], 1, 200);
    set_rate(0);
    /* It is here and says so, and hears nothing. */
    send_request(neighbour, &request, &near);
    for (uint64_t until = clock_ns() + 3 * CLOCK_NS_PER_S; clock_ns() < until || near.ends == 0;) {
        ck_assert_uint_lt(clock_ns(), until + 200 * CLOCK_NS_PER_S);
        ck_assert_int_ge(quern_dispatch(client, 20, NULL), 0);
        ck_assert_int_ge(quern_dispatch(neighbour, 20, NULL), 0);
    }
    printf("in the kernel: %lu bytes of messages, %lu of the stream\n", most_unsent(port),
           most_unsent(port + 1));
    ck_assert_uint_gt(most_unsent(port + 1), 0);
    ck_assert_uint_le(most_unsent(port), 512u << 10);
    ck_assert_uint_le(most_unsent(port + 1), 512u << 10);
    set_rate(FAST_BYTES_PER_S);
    await_answers(client, far, N, 200);
    for (int i = 0; i < N; i++) {
        ck_assert_msg(far[i].reason == QUERN_LENGTH, "%s: %s", far[i].error, far[i].error_text);
        answer_deinit(&far[i]);
    }
    answer_deinit(&near);
    quern_free(client);
    quern_free(neighbour);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, pages_of_a_replay_come_once_over_a_slow_link);
    tcase_add_test(tests, what_a_client_cannot_take_does_not_pile_up_in_the_kernel);
}

int main(void)
{
    return run_tests("slow link", add);
}
