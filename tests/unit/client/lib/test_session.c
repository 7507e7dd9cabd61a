/* SPDX-License-Identifier: MIT */
/* libquern against brokers that restart, forget, refuse, fall silent, or are not there. */

#include "common/clock.h"
#include "tests/unit/client/lib/fixture.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

/* How far the clock is moved forward: a client that does not call for so long. */
static _Atomic int64_t ahead_ns;

int __real_clock_gettime(clockid_t which, struct timespec *ret);
int __wrap_clock_gettime(clockid_t which, struct timespec *ret);
int __wrap_clock_gettime(clockid_t which, struct timespec *ret)
{
    const int r = __real_clock_gettime(which, ret);
    if (which == CLOCK_MONOTONIC && r == 0) {
        const int64_t ns = ret->tv_sec * 1000000000ll + ret->tv_nsec + ahead_ns;
        *ret = (struct timespec){ns / 1000000000ll, ns % 1000000000ll};
    }
    return r;
}

START_TEST(a_welcome_that_is_lost_is_asked_for_again)
{
    static const int script[] = {0, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 1, .script = script, .welcomes_lost = 3});
    ck_assert_int_ge(fake_broker_count(broker, "join"), 4); /* more, if the welcome takes its time */
    generate(&g);
    check_whole(&g, 1);
    stop();
}
END_TEST

START_TEST(who_leaves_says_so_and_is_not_waited_for)
{
    static const int script[] = {STEP_STOP};
    start((struct fake_config){.n_frames = 1, .script = script});
    ck_assert_int_eq(fake_broker_count(broker, "bye"), 0);
    client = quern_free(client);
    for (int i = 0; i < 1000 && fake_broker_count(broker, "bye") == 0; i++)
        usleep(10000);
    ck_assert_int_eq(fake_broker_count(broker, "bye"), 1);
    fake_broker_free(broker);
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
    size_t n_models;
    quern_models(client, &n_models);
    ck_assert_uint_eq(n_models, 1); /* told twice, known once */
    stop();
}
END_TEST

START_TEST(the_broker_is_told_which_answers_were_taken_and_each_once)
{
    enum { MANY = 3 };
    static const int script[] = {0, 1, STEP_END, STEP_STOP};
    static struct gathered g[MANY];
    start((struct fake_config){.n_frames = 2, .script = script});
    for (int i = 0; i < MANY; i++)
        generate(&g[i]);
    DISPATCH_UNTIL(fake_broker_taken(broker) == MANY);
    int pings = fake_broker_count(broker, "ping");
    DISPATCH_UNTIL(fake_broker_count(broker, "ping") > pings); /* with nothing new */
    ck_assert_int_eq(fake_broker_taken(broker), MANY);
    stop();
}
END_TEST

START_TEST(a_cancel_that_a_restart_swallowed_is_said_again)
{
    static const int script[] = {0, STEP_FORGET, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 6, .script = script});
    struct quern_id id = send_request(&g);
    DISPATCH_UNTIL(g.n_ids > 0);
    ck_assert_int_eq(quern_cancel(client, id, NULL), 0);
    DISPATCH_UNTIL(fake_broker_count(broker, "cancel") == 2);
    stop();
}
END_TEST

START_TEST(what_was_only_queued_is_sent_again_to_a_restarted_broker)
{
    static const int script[] = {STEP_FORGET, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 2, .script = script, .forgets_requests = true});
    send_request(&g);
    /* Until it was forgotten, refused and sent again; from then on silence brings the frames by replay,
     * unless the broker forgets again, which its script does each time it is sent: twice is enough. */
    DISPATCH_UNTIL(fake_broker_count(broker, "generate") == 2);
    ck_assert_int_eq(g.ends, 0);
    stop();
}
END_TEST

/* A machine that was set up anew, or that keeps its run directory in memory, counts its boots from one. */
START_TEST(a_request_sent_again_streams_though_the_boot_number_fell)
{
    static const int script[] = {STEP_FORGET, STEP_STOP}, next_script[] = {0, 1, 2, 3, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 4,
                               .script = script,
                               .next_script = next_script,
                               .next_boot = 1,
                               .forgets_requests = true,
                               .no_replays = true});
    send_request(&g);
    DISPATCH_UNTIL(g.ends == 1);
    check_whole(&g, 4);
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

START_TEST(a_broker_that_is_full_after_a_restart_is_asked_again)
{
    static const int script[] = {0, 1, STEP_FORGET, 4, 5, STEP_END, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 6, .script = script, .hellos_refused = 2});
    generate(&g);
    check_whole(&g, 6);
    ck_assert_int_eq(fake_broker_count(broker, "hello"), 4);
    stop();
}
END_TEST

START_TEST(a_broker_that_has_no_room_for_a_listener_for_now_is_asked_again)
{
    static const int script[] = {0, 1, STEP_FORGET, 4, 5, STEP_END, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 6, .script = script, .joins_refused = 2, .says_of = true});
    generate(&g);
    check_whole(&g, 6);
    ck_assert_int_eq(fake_broker_count(broker, "hello"), 2);
    ck_assert_int_ge(fake_broker_count(broker, "join"), 4);
    stop();
}
END_TEST

START_TEST(a_session_that_cannot_be_opened_again_ends_everything_with_a_reason)
{
    static const int script[] = {0, STEP_FORGET, STEP_STOP};
    struct gathered g = {0};
    char large[6000] = "";
    memset(large, 'a', sizeof large - 1);
    struct quern_error err = {0};
    start((struct fake_config){.n_frames = 6, .script = script, .hellos_refused = 1000});
    quern_set_patience(client, 2500);
    send_request(&g);
    DISPATCH_UNTIL(fake_broker_count(broker, "hello") == 2);
    /* What is to be sent later is judged now. */
    struct quern_request request = a_request();
    request.text = large;
    ck_assert_int_eq(quern_generate(client, &request, gather, NULL, NULL, &err), -EMSGSIZE);
    ck_assert_uint_eq(quern_active(client), 1);
    ck_assert_int_eq(dispatch_until_broken(&err), -ETIMEDOUT);
    ck_assert_msg(strstr(err.text, "could not be reopened"), "%s", err.text);
    ck_assert_int_eq(g.ends, 1);
    ck_assert_str_eq(g.error, "worker_lost");
    stop();
}
END_TEST

START_TEST(a_broker_that_falls_silent_ends_everything_with_a_reason)
{
    struct gathered g = {0};
    struct quern_error err = {0};
    start((struct fake_config){.silent = true});
    quern_set_patience(client, 300);
    struct quern_request request = a_request();
    send_request(&g);
    ck_assert_int_eq(dispatch_until_broken(&err), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(err.text, "has not answered"));
    ck_assert_uint_eq(g.retry_after_ms, 0);
    ck_assert_int_eq(g.ends, 1);
    ck_assert_int_eq(g.reason, QUERN_ERROR);
    ck_assert_int_eq(quern_generate(client, &request, gather, &g, NULL, &err), -ETIMEDOUT);
    stop();
}
END_TEST

static void count_failure(void *arg, const struct quern_answer *answer)
{
    *(int *)arg += answer->code == -ETIMEDOUT && answer->text[0];
}

START_TEST(a_broken_session_answers_what_was_asked)
{
    int failures = 0;
    struct quern_error err = {0};
    start((struct fake_config){.silent = true});
    ck_assert_int_eq(quern_ask_status(client, 60000, count_failure, &failures, NULL), 0);
    ck_assert_int_eq(quern_ask_status(client, 60000, count_failure, &failures, NULL), 0);
    quern_set_patience(client, 300);
    ck_assert_int_eq(dispatch_until_broken(&err), -ETIMEDOUT);
    ck_assert_int_eq(failures, 2);
    ck_assert_int_eq(quern_ask_status(client, 60000, count_failure, &failures, &err), -ETIMEDOUT);
    ck_assert_int_eq(failures, 2);
    stop();
}
END_TEST

START_TEST(a_session_that_was_begun_opens_while_others_wait)
{
    static const int script[] = {0, STEP_STOP};
    int ends[2];
    struct gathered g = {0};
    struct quern_request request = a_request();
    start((struct fake_config){.n_frames = 1, .script = script});
    quern_free(client);
    ck_assert_int_eq(quern_connect_begin(fake_broker_folder(broker), NULL, NULL, &client, NULL), 0);
    ck_assert(!quern_is_open(client));
    ck_assert_int_eq(quern_generate(client, &request, gather, &g, &g.id, NULL), 0);
    DISPATCH_UNTIL(g.ends);
    ck_assert(quern_is_open(client));
    check_whole(&g, 1);
    /* A descriptor of ours ends a wait. */
    ck_assert_int_eq(pipe(ends), 0);
    quern_watch(client, ends[0]);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    ck_assert_int_eq(quern_dispatch(client, -1, NULL), 0);
    close(ends[0]);
    close(ends[1]);
    stop();
}
END_TEST

static uint64_t cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * CLOCK_NS_PER_S + (uint64_t)used.tv_nsec;
}

START_TEST(a_question_that_nobody_answers_is_waited_for_asleep_and_given_up)
{
    const struct quern_status *status;
    struct quern_error err = {0};
    start((struct fake_config){.silent = true});
    quern_set_patience(client, 60000);
    uint64_t begun = clock_ns(), used = cpu_ns();
    ck_assert_int_eq(quern_status(client, 300, &status, &err), -ETIMEDOUT);
    used = cpu_ns() - used;
    ck_assert_msg(strstr(err.text, "did not answer within 300 ms"), "%s", err.text);
    ck_assert_uint_lt(clock_ns() - begun, 30 * CLOCK_NS_PER_S);
    ck_assert_uint_lt(used, 100 * CLOCK_NS_PER_MS);
    stop();
}
END_TEST

START_TEST(a_stream_is_reached_the_way_the_broker_was_or_not_at_all)
{
    char folder[RUNDIR_PATH_MAX + 1];
    struct quern_error err = {0};
    struct fake_config config = {.stream = "tcp://127.0.0.1:1"};
    broker = fake_broker_new(&config, folder);
    ck_assert_int_eq(quern_connect(folder, 30000, &client, &err), -EPROTO);
    ck_assert_msg(strstr(err.text, "did not name a stream endpoint"), "%s", err.text);
    fake_broker_free(broker);
}
END_TEST

/* Descriptors of this process whose TCP asks, after ten seconds of silence, whether the other end is there.
 * The fake broker lives here too, and does not. */
static int watched_connections(void)
{
    int n = 0;
    for (int fd = 3; fd < 256; fd++) {
        int asks = 0, idle_s = 0;
        socklen_t size = sizeof(int);
        if (getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &asks, &size) == 0 && asks &&
            getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, &size) == 0)
            n += idle_s <= 10;
    }
    return n;
}

START_TEST(a_broker_whose_machine_went_down_is_noticed_by_both_connections)
{
    static const int script[] = {0, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 1, .script = script, .tcp = "127.0.0.1"});
    ck_assert_int_eq(watched_connections(), 2);
    generate(&g);
    check_whole(&g, 1);
    stop();
}
END_TEST

static bool machine_has_ipv6(void)
{
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&loopback, sizeof loopback) == 0;
    if (fd >= 0)
        close(fd);
    return has;
}

START_TEST(a_pool_is_reached_by_ipv6)
{
    static const int script[] = {0, STEP_STOP};
    struct gathered g = {0};
    if (!machine_has_ipv6())
        return;
    start((struct fake_config){.n_frames = 1, .script = script, .tcp = "[::1]"});
    generate(&g);
    check_whole(&g, 1);
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

/* The hello that nobody took is no goodbye, for which a fifth of a second is waited. */
START_TEST(a_client_that_never_opened_is_freed_at_once)
{
    enum { CLIENTS = 20 };
    uint64_t least = UINT64_MAX; /* what else the machine does, it does not do to all of them */
    for (int i = 0; i < CLIENTS; i++) {
        const uint64_t begun = clock_ns();
        ck_assert_int_eq(quern_connect_begin("ipc:///nobody/is/here", NULL, NULL, &client, NULL), 0);
        quern_dispatch(client, 1, NULL);
        client = quern_free(client);
        const uint64_t took = clock_ns() - begun;
        least = took < least ? took : least;
    }
    ck_assert_uint_lt(least, 150 * CLOCK_NS_PER_MS);
}
END_TEST

START_TEST(a_run_directory_that_a_stranger_could_have_made_is_not_trusted)
{
    struct quern_error err = {0};
    struct quern *none = NULL;
    start((struct fake_config){0});
    const char *folder = fake_broker_folder(broker);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    ck_assert_int_eq(quern_connect(folder, 1000, &none, &err), -EPERM);
    ck_assert_msg(strstr(err.text, folder) && strstr(err.text, "mode 0755"), "%s", err.text);
    ck_assert_int_eq(chmod(folder, 0700), 0);
    if (getuid() == 0) { /* who may give files away */
        ck_assert_int_eq(chown(folder, 12345, 12345), 0);
        ck_assert_int_eq(quern_connect(folder, 1000, &none, &err), -EPERM);
        ck_assert_msg(strstr(err.text, folder) && strstr(err.text, "user 12345"), "%s", err.text);
        ck_assert_int_eq(chown(folder, 0, 0), 0);
    }
    ck_assert_ptr_null(none);
    ck_assert_int_eq(fake_broker_count(broker, "hello"), 1);
    stop();
}
END_TEST

START_TEST(a_pool_of_another_version_is_told_apart)
{
    char folder[RUNDIR_PATH_MAX + 1];
    struct quern_error err = {0};
    struct fake_config config = {.version = 9};
    broker = fake_broker_new(&config, folder);
    ck_assert_int_eq(quern_connect(folder, 30000, &client, &err), -EPROTO);
    ck_assert_str_eq(err.text, "the pool speaks versions 9 to 9 of the protocol, this program 1 to 1");
    fake_broker_free(broker);
}
END_TEST

START_TEST(a_broker_without_room_is_believed_at_the_first_hello)
{
    char folder[RUNDIR_PATH_MAX + 1];
    struct quern_error err = {0};
    struct fake_config config = {.hellos_refused = 1, .refuses_first = true};
    broker = fake_broker_new(&config, folder);
    ck_assert_int_eq(quern_connect(folder, 30000, &client, &err), -EAGAIN);
    ck_assert_str_eq(err.text, "the pool refuses: overloaded: too many sessions");
    fake_broker_free(broker);
}
END_TEST

START_TEST(a_broker_without_room_for_a_listener_is_believed_at_the_first_join)
{
    char folder[RUNDIR_PATH_MAX + 1];
    struct quern_error err = {0};
    struct fake_config config = {.joins_refused = 1, .refuses_first = true, .says_of = true};
    broker = fake_broker_new(&config, folder);
    ck_assert_int_eq(quern_connect(folder, 30000, &client, &err), -EAGAIN);
    ck_assert_str_eq(err.text, "the pool refuses: overloaded: too many subscriptions");
    fake_broker_free(broker);
}
END_TEST

START_TEST(who_did_not_call_for_long_does_not_blame_the_broker)
{
    static const int script[] = {0, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 1, .script = script});
    quern_set_patience(client, 2000);
    ahead_ns += 2500000000ll;
    generate(&g);
    check_whole(&g, 1);
    stop();
}
END_TEST

START_TEST(who_was_stopped_while_a_session_opens_again_does_not_blame_the_broker)
{
    static const int script[] = {0, 1, STEP_FORGET, 4, 5, STEP_END, STEP_STOP};
    struct gathered g = {0};
    start((struct fake_config){.n_frames = 6, .script = script, .hellos_refused = 1});
    quern_set_patience(client, 2200);
    send_request(&g);
    DISPATCH_UNTIL(fake_broker_count(broker, "hello") == 2);
    ahead_ns += 2500000000ll;
    DISPATCH_UNTIL(g.ends == 1);
    check_whole(&g, 6);
    stop();
}
END_TEST

START_TEST(who_does_not_answer_is_named_with_what_may_be_the_matter)
{
    char public_key[41], secret_key[41], expected[300];
    struct quern *none;
    struct quern_error err;
    ck_assert_int_eq(zmq_curve_keypair(public_key, secret_key), 0);
    ck_assert_int_eq(quern_connect("tcp://127.0.0.1:1", 50, &none, &err), -ETIMEDOUT);
    ck_assert_str_eq(err.text,
                     "no broker responds at tcp://127.0.0.1:1 (waited 50 ms; it may require a server key)");
    ck_assert_int_eq(quern_connect_curve("tcp://127.0.0.1:1", public_key, NULL, 51, &none, &err), -ETIMEDOUT);
    ck_assert_str_eq(
        err.text,
        "no broker responds at tcp://127.0.0.1:1 (waited 51 ms; the server key may belong to another pool)");
    ck_assert_int_eq(quern_connect("ipc:///tmp/quern-test-nobody", 50, &none, &err), -ETIMEDOUT);
    ck_assert_str_eq(err.text, "no broker responds at ipc:///tmp/quern-test-nobody (waited 50 ms)");
    char folder[RUNDIR_PATH_MAX + 1];
    broker = fake_broker_new(&(struct fake_config){.welcomes_lost = INT_MAX}, folder);
    ck_assert_int_eq(quern_connect(folder, 3000, &none, &err), -ETIMEDOUT);
    snprintf(expected, sizeof expected, "the broker at ipc://%s/frontend responds, but its stream ", folder);
    ck_assert_mem_eq(err.text, expected, strlen(expected));
    ck_assert_ptr_nonnull(strstr(err.text, " does not (waited 3000 ms)"));
    fake_broker_free(broker);
}
END_TEST

START_TEST(an_endpoint_has_at_most_255_bytes)
{
    char endpoint[257] = "ipc:///";
    struct quern *none;
    struct quern_error err;
    memset(endpoint + 7, 'a', 249);
    ck_assert_int_eq(quern_connect(endpoint, 50, &none, &err), -ENAMETOOLONG);
    ck_assert_ptr_eq(strstr(err.text, "endpoint ipc:///aaa"), err.text);
    ck_assert_ptr_nonnull(strstr(err.text, "… is too long"));
    endpoint[255] = 0; /* too long for a socket's path, which another says */
    memset(&err, 0, sizeof err);
    ck_assert_int_lt(quern_connect(endpoint, 50, &none, &err), 0);
    ck_assert_ptr_null(strstr(err.text, "is too long"));
}
END_TEST

/* A certificate with these halves, in the folder of a broker. */
static void write_pair(const char *path, const char *public_key, const char *secret_key)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fchmod(fileno(file), 0600);
    fprintf(file, "curve\n    public-key = \"%s\"\n    secret-key = \"%s\"\n", public_key, secret_key);
    fclose(file);
}

START_TEST(keys_that_cannot_be_used_are_told_before_anything_is_sent)
{
    static const char tcp[] = "tcp://127.0.0.1:1";
    char public_key[41], secret_key[41], other[41], unused[41], path[RUNDIR_PATH_MAX + 16], expected[512];
    char folder[RUNDIR_PATH_MAX + 1];
    struct quern *none;
    struct quern_error err;
    ck_assert_int_eq(zmq_curve_keypair(public_key, secret_key), 0);
    ck_assert_int_eq(zmq_curve_keypair(other, unused), 0);
    ck_assert_int_eq(quern_connect_curve("ipc:///tmp/nobody", public_key, NULL, 50, &none, &err), -EINVAL);
    ck_assert_str_eq(err.text, "ipc:///tmp/nobody is not a TCP endpoint and takes no key");
    ck_assert_int_eq(quern_connect_curve(tcp, NULL, "a-file", 50, &none, &err), -EINVAL);
    ck_assert_str_eq(err.text, "a client key requires the pool's server key");
    ck_assert_int_eq(quern_connect_curve(tcp, "/nowhere/key", NULL, 50, &none, &err), -ENOENT);
    ck_assert_str_eq(err.text, "server key \"/nowhere/key\" is neither a file nor 40 characters of Z85");
    ck_assert_int_eq(quern_connect_curve(tcp, public_key, "/nowhere/key", 50, &none, &err), -ENOENT);
    ck_assert_ptr_eq(strstr(err.text, "client key: "), err.text);
    ck_assert_int_eq(rundir_temporary(folder, NULL), 0);
    snprintf(path, sizeof path, "%s/pair", folder);
    write_pair(path, other, secret_key);
    ck_assert_int_eq(quern_connect_curve(tcp, public_key, path, 50, &none, &err), -EINVAL);
    snprintf(expected, sizeof expected, "client key: the public and the secret key of %s are not a pair",
             path);
    ck_assert_str_eq(err.text, expected);
    write_pair(path, public_key, secret_key);
    ck_assert_int_eq(quern_connect_curve(tcp, path, path, 50, &none, &err), -ETIMEDOUT);
    rundir_remove(folder);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_broker_is_told_which_answers_were_taken_and_each_once);
    tcase_add_test(tests, a_welcome_that_is_lost_is_asked_for_again);
    tcase_add_test(tests, who_leaves_says_so_and_is_not_waited_for);
    tcase_add_test(tests, a_restarted_broker_is_met_again_and_the_request_goes_on);
    tcase_add_test(tests, a_cancel_that_a_restart_swallowed_is_said_again);
    tcase_add_test(tests, what_was_only_queued_is_sent_again_to_a_restarted_broker);
    tcase_add_test(tests, a_request_sent_again_streams_though_the_boot_number_fell);
    tcase_add_test(tests, tokens_that_a_restart_lost_end_the_request_with_a_reason);
    tcase_add_test(tests, a_broker_that_is_full_after_a_restart_is_asked_again);
    tcase_add_test(tests, a_broker_that_has_no_room_for_a_listener_for_now_is_asked_again);
    tcase_add_test(tests, a_session_that_cannot_be_opened_again_ends_everything_with_a_reason);
    tcase_add_test(tests, a_broker_that_falls_silent_ends_everything_with_a_reason);
    tcase_add_test(tests, a_broken_session_answers_what_was_asked);
    tcase_add_test(tests, a_session_that_was_begun_opens_while_others_wait);
    tcase_add_test(tests, a_question_that_nobody_answers_is_waited_for_asleep_and_given_up);
    tcase_add_test(tests, a_stream_is_reached_the_way_the_broker_was_or_not_at_all);
    tcase_add_test(tests, a_broker_whose_machine_went_down_is_noticed_by_both_connections);
    tcase_add_test(tests, a_pool_is_reached_by_ipv6);
    tcase_add_test(tests, a_pool_that_is_not_there_is_named);
    tcase_add_test(tests, a_client_that_never_opened_is_freed_at_once);
    tcase_add_test(tests, a_run_directory_that_a_stranger_could_have_made_is_not_trusted);
    tcase_add_test(tests, a_pool_of_another_version_is_told_apart);
    tcase_add_test(tests, a_broker_without_room_is_believed_at_the_first_hello);
    tcase_add_test(tests, a_broker_without_room_for_a_listener_is_believed_at_the_first_join);
    tcase_add_test(tests, who_did_not_call_for_long_does_not_blame_the_broker);
    tcase_add_test(tests, who_was_stopped_while_a_session_opens_again_does_not_blame_the_broker);
    tcase_add_test(tests, who_does_not_answer_is_named_with_what_may_be_the_matter);
    tcase_add_test(tests, an_endpoint_has_at_most_255_bytes);
    tcase_add_test(tests, keys_that_cannot_be_used_are_told_before_anything_is_sent);
}

int main(void)
{
    return run_tests("client session", add);
}
