/* SPDX-License-Identifier: MIT */
/* Sockets that a worker inherits: what is taken for one, and what libzmq does with it. */

#include "worker/link/listener.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

#include "common/files/rundir.h"

static char folder[RUNDIR_PATH_MAX + 1];

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(folder, NULL), 0);
}

static void tear_down(void)
{
    rundir_remove(folder);
}

/* A unix socket at a path of the folder ("": at none). */
static int socket_at(const char *name, bool listens)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    if (name[0]) {
        snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder, name);
        ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    }
    if (listens)
        ck_assert_int_eq(listen(fd, 4), 0);
    return fd;
}

START_TEST(a_descriptor_tells_where_it_is_reached)
{
    struct listener listener;
    char expected[LISTENER_ENDPOINT_MAX];
    int fd = socket_at("link", true);
    ck_assert_int_eq(listener_take(fd, &listener, NULL), 0);
    snprintf(expected, sizeof expected, "ipc://%s/link", folder);
    ck_assert_str_eq(listener.endpoint, expected);
    ck_assert_int_eq(listener.fd, fd);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    close(fd);
}
END_TEST

/* Of a run directory that was named from where the pool was started: as it was told to the broker. */
START_TEST(a_path_is_told_as_it_was_bound)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "sub/link"};
    struct listener listener;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(mkdir("sub", 0700), 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(listener_take(fd, &listener, NULL), 0);
    ck_assert_str_eq(listener.endpoint, "ipc://sub/link");
    close(fd);
    rundir_remove("sub");
    ck_assert_int_eq(fchdir(before), 0);
    close(before);
}
END_TEST

/* Bound by the kernel to a name that is no path. */
static int abstract_socket(void)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address.sun_family), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

static int tcp_socket(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

START_TEST(what_is_no_socket_that_listens_at_a_path_is_refused)
{
    const int fds[] = {open("/dev/null", O_RDONLY), socket_at("bound", false), socket_at("", false),
                       abstract_socket(), tcp_socket()};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        struct listener listener = {.fd = -7};
        struct error err = {{0}};
        char expected[96];
        ck_assert_int_eq(listener_take(fds[i], &listener, &err), -EINVAL);
        snprintf(expected, sizeof expected, "descriptor %d is not a listening unix socket with a path",
                 fds[i]);
        ck_assert_str_eq(err.text, expected);
        ck_assert_int_eq(listener.fd, -7);
        close(fds[i]);
    }
    struct error err = {{0}};
    struct listener listener;
    ck_assert_int_eq(listener_take(fds[0], &listener, &err), -EBADF);
    ck_assert_ptr_nonnull(strstr(err.text, "Bad file descriptor"));
}
END_TEST

START_TEST(messages_come_by_it_and_its_path_stays_behind)
{
    const int wait_ms = 20000;
    char byte;
    struct listener listener;
    void *context = zmq_ctx_new(), *worker = zmq_socket(context, ZMQ_DEALER),
         *broker = zmq_socket(context, ZMQ_DEALER);
    zmq_setsockopt(worker, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    ck_assert_int_eq(listener_take(socket_at("link", true), &listener, NULL), 0);
    ck_assert_int_eq(zmq_connect(broker, listener.endpoint), 0); /* before the worker is ready */
    ck_assert_int_eq(zmq_send(broker, "x", 1, 0), 1);
    ck_assert_int_eq(listener_bind(&listener, worker, NULL), 0);
    ck_assert_int_eq(zmq_recv(worker, &byte, 1, 0), 1);
    zmq_close(worker);
    zmq_close(broker);
    zmq_ctx_term(context);
    ck_assert_int_eq(access(listener.endpoint + strlen("ipc://"), F_OK), 0); /* whose maker removes it */
    ck_assert_int_lt(fcntl(listener.fd, F_GETFD), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_descriptor_tells_where_it_is_reached);
    tcase_add_test(tests, a_path_is_told_as_it_was_bound);
    tcase_add_test(tests, what_is_no_socket_that_listens_at_a_path_is_refused);
    tcase_add_test(tests, messages_come_by_it_and_its_path_stays_behind);
}

int main(void)
{
    return run_tests("worker/listener", add);
}
