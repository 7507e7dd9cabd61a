/* SPDX-License-Identifier: MIT */
/* Sockets that are made, inherited, and passed by a service manager. */

#include "common/system/listen.h"
#include "tests/unit/run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* True when somebody listens there. */
static bool answers(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool yes = connect(fd, (const struct sockaddr *)&to, sizeof to) == 0;
    close(fd);
    return yes;
}

static void assert_fit(int fd)
{
    ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

START_TEST(a_free_port_is_found_and_said)
{
    char address[LISTEN_ADDRESS];
    struct error err = {0};
    int fd = listen_on("127.0.0.1:0", false, address, &err);
    ck_assert_msg(fd >= 0, "%s", err.text);
    ck_assert_int_eq(strncmp(address, "127.0.0.1:", 10), 0);
    assert_fit(fd);
    ck_assert(answers(address));
    char again[LISTEN_ADDRESS] = "untouched";
    ck_assert_int_eq(listen_on(address, false, again, &err), -EADDRINUSE);
    ck_assert_ptr_nonnull(strstr(err.text, address));
    ck_assert_str_eq(again, "untouched");
    close(fd);
    ck_assert(!answers(address));
}
END_TEST

START_TEST(an_address_for_others_has_to_be_meant)
{
    char address[LISTEN_ADDRESS];
    struct error err = {0};
    ck_assert_int_eq(listen_on("0.0.0.0:0", false, address, &err), -EPERM);
    ck_assert_ptr_nonnull(strstr(err.text, "0.0.0.0:0 is reachable from other machines"));
    int fd = listen_on("0.0.0.0:0", true, address, &err);
    ck_assert_msg(fd >= 0, "%s", err.text);
    ck_assert_int_eq(listen_adopt(fd, false, address, &err), -EPERM);
    ck_assert_int_eq(listen_adopt(fd, true, address, &err), 0);
    close(fd);
    const char *const wrong[] = {"", "8080", ":8080", "host:", "host:65536", "host:x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(listen_on(wrong[i], true, address, &err), -EINVAL);
}
END_TEST

START_TEST(a_wildcard_is_known_in_every_notation)
{
    const char *const wildcards[] = {"*",      "0.0.0.0",         "0", "[::]", "[0:0:0:0:0:0:0:0]", "[::0]",
                                     "[0::0]", "[::ffff:0.0.0.0]"};
    const char *const hosts[] = {"",
                                 "[]",
                                 "**",
                                 "::",
                                 "host",
                                 "127.0.0.1",
                                 "0.0.0.1",
                                 "1.0.0.0.0",
                                 "[::1]",
                                 "[::",
                                 "::]",
                                 "[*]",
                                 "[0]",
                                 "0.0.0.0.example",
                                 "*.example",
                                 "[fe80::]",
                                 "[::ffff:10.0.0.1]"};
    for (size_t i = 0; i < sizeof wildcards / sizeof *wildcards; i++)
        ck_assert_msg(listen_is_wildcard(bytes_of_string(wildcards[i])), "%s", wildcards[i]);
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        ck_assert_msg(!listen_is_wildcard(bytes_of_string(hosts[i])), "%s", hosts[i]);
    char longest[300];
    memset(longest, '0', sizeof longest);
    ck_assert(!listen_is_wildcard((struct bytes){longest, sizeof longest}));
    ck_assert(listen_is_wildcard((struct bytes){"0.0.0.0:7700", 7})); /* no zero stands behind it */
}
END_TEST

START_TEST(a_socket_that_somebody_else_made_is_taken_when_it_listens)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char address[LISTEN_ADDRESS] = "untouched";
    struct error err = {0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&any, sizeof any), 0);
    ck_assert_int_eq(listen_adopt(fd, true, address, &err), -EINVAL);
    ck_assert_str_eq(address, "untouched");
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(listen_adopt(fd, false, address, &err), 0);
    assert_fit(fd);
    ck_assert(answers(address));
    close(fd);
    ck_assert_int_eq(listen_adopt(fd, true, address, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "is not a listening TCP socket"));
    int pair[2];
    ck_assert_int_eq(pipe(pair), 0);
    ck_assert_int_eq(listen_adopt(pair[0], true, address, &err), -EINVAL);
    close(pair[0]);
    close(pair[1]);
}
END_TEST

static int passed(const char *pid, const char *count, struct error *err)
{
    int fd = -77;
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", count, 1);
    int r = listen_passed(&fd, err);
    return r < 0 ? r : fd;
}

START_TEST(what_a_service_manager_passes_is_for_the_process_that_it_names)
{
    struct error err = {0};
    char us[16], other[16];
    int fd;
    snprintf(us, sizeof us, "%d", getpid());
    snprintf(other, sizeof other, "%d", getppid());
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    ck_assert_int_eq(listen_passed(&fd, &err), 0);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq(passed(us, "1", &err), 3);
    ck_assert_ptr_null(getenv("LISTEN_FDS"));
    ck_assert_ptr_null(getenv("LISTEN_PID"));
    ck_assert_int_eq(passed(us, "0", &err), -1);
    ck_assert_int_eq(passed(other, "1", &err), -1);
    ck_assert_int_eq(passed(us, "2", &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "2 sockets"));
    ck_assert_int_eq(passed("x", "1", &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "LISTEN_PID"));
    ck_assert_int_eq(passed(us, "x", &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "LISTEN_FDS"));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_free_port_is_found_and_said);
    tcase_add_test(tests, an_address_for_others_has_to_be_meant);
    tcase_add_test(tests, a_wildcard_is_known_in_every_notation);
    tcase_add_test(tests, a_socket_that_somebody_else_made_is_taken_when_it_listens);
    tcase_add_test(tests, what_a_service_manager_passes_is_for_the_process_that_it_names);
}

int main(void)
{
    return run_tests("listen", add);
}
