/* SPDX-License-Identifier: MIT */
/* The broker's sockets: where they are bound, who may reach them, what is refused before anybody can. */

#include "broker/sockets.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

#include "broker/wire/intake.h"
#include "broker/setup.h"
#include "broker/links/zap.h"
#include "common/files/certificate.h"
#include "common/files/rundir.h"

static struct broker *broker;
static struct error err;
static char rundir[RUNDIR_PATH_MAX + 1];

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    broker = calloc(1, sizeof *broker);
    ck_assert_ptr_nonnull(broker);
    strcpy(broker->options.rundir, rundir);
    broker->most_connections = 3000; /* of more than one shard */
    broker->supervisor.rundir_fd = open(rundir, O_RDONLY | O_DIRECTORY);
    broker->client_link.credit.wake_fd = -1;
}

static void tear_down(void)
{
    close(broker->supervisor.rundir_fd);
    broker_leave(broker);
    free(broker);
    rundir_remove(rundir);
}

/* A name in the run directory. */
static const char *path_of(const char *name)
{
    static char path[RUNDIR_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", rundir, name);
    return path;
}

static void make_file(const char *name)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void make_socket(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path_of(name));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static bool is_there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

static int number(void *socket, int option)
{
    int value = -2;
    size_t size = sizeof value;
    ck_assert_int_eq(zmq_getsockopt(socket, option, &value, &size), 0);
    return value;
}

static int64_t largest_message(void *socket)
{
    int64_t value = -2;
    size_t size = sizeof value;
    ck_assert_int_eq(zmq_getsockopt(socket, ZMQ_MAXMSGSIZE, &value, &size), 0);
    return value;
}

START_TEST(sockets_stand_in_the_run_directory_and_go_with_the_broker)
{
    static const char *const names[] = {"frontend", "stream"};
    char expected[BROKER_ENDPOINT_MAX];
    make_socket("frontend"); /* that a killed broker left */
    ck_assert_msg(sockets_bind(broker, &err) == 0, "%s", err.text);
    const char *const told[] = {broker->endpoints.frontend, broker->endpoints.streams[0]};
    for (int i = 0; i < 2; i++) {
        snprintf(expected, sizeof expected, "ipc://%s", path_of(names[i]));
        ck_assert_str_eq(told[i], expected);
        ck_assert(is_there(names[i]));
    }
    ck_assert_uint_eq(broker->endpoints.n_streams, 1);
    ck_assert_uint_eq(broker->stream.n_shards, 2);
    for (int i = 0; i < 2; i++) { /* each takes connections from there */
        char bound[BROKER_ENDPOINT_MAX] = "";
        size_t size = sizeof bound;
        ck_assert_int_eq(zmq_getsockopt(broker->stream.shards[i], ZMQ_LAST_ENDPOINT, bound, &size), 0);
        ck_assert_str_eq(bound, told[1]);
    }
    make_file("notes");
    sockets_unlink(broker);
    for (int i = 0; i < 2; i++)
        ck_assert(!is_there(names[i]));
    ck_assert(is_there("notes"));
    make_file("stream"); /* no socket: somebody else's */
    sockets_unlink(broker);
    ck_assert(is_there("stream"));
}
END_TEST

START_TEST(a_broker_that_bound_nothing_removes_nothing)
{
    make_socket("frontend");
    sockets_unlink(broker);
    ck_assert(is_there("frontend"));
}
END_TEST

START_TEST(what_anyone_may_send_and_leave_unread_is_bounded)
{
    ck_assert_int_eq(sockets_bind(broker, &err), 0);
    void *clients = broker->client_link.router, *workers = broker->worker_link.router;
    ck_assert_int_eq(largest_message(clients), PROTO_MAX_REQUEST_BYTES);
    ck_assert_int_eq(largest_message(workers), PROTO_MAX_ANSWER_BYTES);
    ck_assert_int_eq(number(clients, ZMQ_RCVHWM), INTAKE_MAX_AHEAD);
    ck_assert_int_ge(number(clients, ZMQ_SNDHWM), CREDIT_MESSAGES); /* credit is what bounds it */
    ck_assert_int_eq(number(workers, ZMQ_SNDHWM), 0);               /* their work does */
    ck_assert_int_eq(number(workers, ZMQ_RCVHWM), 0);
    void *const sockets[] = {clients, workers, broker->stream.shards[0], broker->stream.shards[1]};
    ck_assert_uint_eq(broker->stream.n_shards, 2);
    for (int i = 0; i < 4; i++) { /* a goodbye gets out; nobody is waited for */
        ck_assert_int_ge(number(sockets[i], ZMQ_LINGER), 100);
        ck_assert_int_le(number(sockets[i], ZMQ_LINGER), 1000);
        if (sockets[i] == workers)
            continue;
        ck_assert_int_ge(number(sockets[i], ZMQ_HANDSHAKE_IVL), 5000);
        ck_assert_int_le(number(sockets[i], ZMQ_HANDSHAKE_IVL), 30000);
    }
    ck_assert_int_eq(number(workers, ZMQ_HANDSHAKE_IVL), 0); /* one that loads greets when it has */
}
END_TEST

START_TEST(a_file_in_the_way_is_left_there_and_named)
{
    static const char *const names[] = {"frontend", "stream"};
    char expected[256];
    for (int i = 0; i < 2; i++) {
        make_file(names[i]);
        ck_assert_int_eq(sockets_bind(broker, &err), -EEXIST);
        snprintf(expected, sizeof expected, "%s exists and is not a socket of ours", path_of(names[i]));
        ck_assert_str_eq(err.text, expected);
        ck_assert(is_there(names[i]));
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(is_there(names[k]), k == i); /* nothing was bound before that was seen */
        unlink(path_of(names[i]));
        tear_down();
        set_up();
    }
}
END_TEST

START_TEST(only_sockets_of_broker_and_workers_are_cleared)
{
    make_socket("worker-0-1-1");
    make_socket("worker-12-3-4");
    make_socket("link-12-3-4");
    make_socket("frontend");
    make_socket("stream");
    make_socket("control");
    make_file("worker-notes");
    int fd = open(rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    sockets_clear(fd);
    close(fd);
    ck_assert(!is_there("worker-0-1-1"));
    ck_assert(!is_there("worker-12-3-4"));
    ck_assert(!is_there("link-12-3-4"));
    ck_assert(!is_there("frontend"));
    ck_assert(!is_there("stream"));
    ck_assert(is_there("control"));
    ck_assert(is_there("worker-notes"));
    sockets_clear(-1);
}
END_TEST

/* ---- TCP ---- */

START_TEST(clients_are_told_the_port_behind_and_a_name_that_leads_here)
{
    static const char *const hosts[][3] = {{"127.0.0.1", "", "127.0.0.1"},
                                           {"localhost", "", "127.0.0.1"},
                                           {"127.0.0.1", "pool.example.org", "pool.example.org"}};
    char expected[BROKER_ENDPOINT_MAX];
    for (int i = 0; i < 3; i++) {
        const int port = pool_free_ports();
        snprintf(broker->options.tcp, sizeof broker->options.tcp, "%s:%d", hosts[i][0], port);
        strcpy(broker->options.public_host, hosts[i][1]);
        ck_assert_msg(sockets_bind(broker, &err) == 0, "%s", err.text);
        ck_assert_uint_eq(broker->endpoints.n_streams, 2);
        snprintf(expected, sizeof expected, "tcp://%s:%d", hosts[i][2], port + 1);
        ck_assert_str_eq(broker->endpoints.streams[1], expected);
        /* Who vanished is let go within two minutes, who is there is not asked all the time. */
        void *const sockets[] = {broker->client_link.router, broker->stream.shards[0],
                                 broker->stream.shards[1]};
        for (int k = 0; k < 3; k++) {
            int idle_s = number(sockets[k], ZMQ_TCP_KEEPALIVE_IDLE);
            int every_s = number(sockets[k], ZMQ_TCP_KEEPALIVE_INTVL);
            int probes = number(sockets[k], ZMQ_TCP_KEEPALIVE_CNT);
            ck_assert_int_eq(number(sockets[k], ZMQ_TCP_KEEPALIVE), 1);
            ck_assert_int_ge(idle_s, 30);
            ck_assert_int_ge(every_s, 5);
            ck_assert_int_ge(probes, 2);
            ck_assert_int_le(idle_s + every_s * probes, 120);
            ck_assert_int_ge(number(sockets[k], ZMQ_RCVBUF), 64 << 10);
            ck_assert_int_le(number(sockets[k], ZMQ_RCVBUF), 1 << 20);
            ck_assert_int_ge(number(sockets[k], ZMQ_SNDBUF), 64 << 10);
            ck_assert_int_le(number(sockets[k], ZMQ_SNDBUF), 1 << 20);
            ck_assert_int_eq(number(sockets[k], ZMQ_IPV6), 0);
        }
        tear_down();
        set_up();
    }
}
END_TEST

static void expect_refusal(int code, const char *text)
{
    err.text[0] = 0;
    ck_assert_int_eq(sockets_bind(broker, &err), code);
    ck_assert_str_eq(err.text, text);
    ck_assert_uint_eq(broker->endpoints.n_streams, 1);
    struct options options = broker->options;
    tear_down();
    set_up();
    char fresh[sizeof options.rundir];
    strcpy(fresh, broker->options.rundir);
    broker->options = options;
    strcpy(broker->options.rundir, fresh);
}

/* A certificate in the run directory of now. */
static void make_certificate(const char *name, const char *public_key)
{
    struct certificate pair = {0};
    ck_assert_int_eq(zmq_curve_keypair(pair.public_key, pair.secret_key), 0);
    if (public_key)
        strcpy(pair.public_key, public_key);
    ck_assert_int_eq(certificate_write(rundir, name, &pair, NULL), 0);
    strcpy(broker->options.curve_key, path_of(name));
}

START_TEST(beyond_this_machine_both_sides_have_keys_or_nothing_is_bound)
{
    char expected[512];
    strcpy(broker->options.tcp, "0.0.0.0:5999");
    expect_refusal(-EPERM, "tcp: 0.0.0.0:5999 is not a loopback address: give --curve-key or use 127.0.0.1");
    make_certificate("key", NULL);
    expect_refusal(-EPERM, "tcp: 0.0.0.0:5999 is not a loopback address: give --client-keys, a folder of "
                           "accepted keys, or accept any client that knows the server's key (--any-client)");
    strcpy(broker->options.tcp, "127.0.0.1:5999");
    make_certificate("other", "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID");
    snprintf(expected, sizeof expected, "curve-key: the public and the secret key of %s are not a pair",
             path_of("other"));
    expect_refusal(-EINVAL, expected);
    strcpy(broker->options.curve_key, "/nowhere/key");
    err.text[0] = 0;
    ck_assert_int_eq(sockets_bind(broker, &err), -ENOENT);
    ck_assert_ptr_eq(strstr(err.text, "curve-key: "), err.text);
}
END_TEST

START_TEST(a_pool_with_keys_guards_each_socket_of_tcp)
{
    snprintf(broker->options.tcp, sizeof broker->options.tcp, "127.0.0.1:%d", pool_free_ports());
    make_certificate("key", NULL);
    ck_assert_int_eq(mkdir(path_of("clients"), 0700), 0);
    strcpy(broker->options.client_keys, path_of("clients"));
    ck_assert_msg(sockets_bind(broker, &err) == 0, "%s", err.text);
    void *const sockets[] = {broker->client_link.router, broker->stream.shards[0], broker->stream.shards[1]};
    for (int k = 0; k < 3; k++) {
        char domain[64] = "";
        size_t size = sizeof domain;
        ck_assert_int_eq(number(sockets[k], ZMQ_CURVE_SERVER), 1);
        ck_assert_int_eq(zmq_getsockopt(sockets[k], ZMQ_ZAP_DOMAIN, domain, &size), 0);
        ck_assert_str_ne(domain, "");
    }
    ck_assert_int_eq(number(broker->worker_link.router, ZMQ_CURVE_SERVER), 0);
    ck_assert_ptr_eq(broker->stream.keys, &broker->client_keys);
    ck_assert_ptr_nonnull(broker->zap.socket);
    rmdir(path_of("clients"));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, sockets_stand_in_the_run_directory_and_go_with_the_broker);
    tcase_add_test(tests, a_broker_that_bound_nothing_removes_nothing);
    tcase_add_test(tests, what_anyone_may_send_and_leave_unread_is_bounded);
    tcase_add_test(tests, a_file_in_the_way_is_left_there_and_named);
    tcase_add_test(tests, only_sockets_of_broker_and_workers_are_cleared);
    tcase_add_test(tests, clients_are_told_the_port_behind_and_a_name_that_leads_here);
    tcase_add_test(tests, beyond_this_machine_both_sides_have_keys_or_nothing_is_bound);
    tcase_add_test(tests, a_pool_with_keys_guards_each_socket_of_tcp);
}

int main(void)
{
    return run_tests("broker/sockets", add);
}
