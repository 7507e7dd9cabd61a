/* SPDX-License-Identifier: MIT */
/* The sockets that a worker is started with: where they are, who comes to them, and what is left of them. */

#include "supervisor/children/doors.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/files/rundir.h"

static char rundir[RUNDIR_PATH_MAX + 1];
static struct place_record record;

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    record = (struct place_record){.index = 3, .incarnation = 2};
    doors_name(&record, rundir, 41);
}

static void tear_down(void)
{
    rundir_remove(rundir);
}

static const char *path_of(const char *endpoint)
{
    ck_assert_int_eq(strncmp(endpoint, "ipc://", 6), 0);
    return endpoint + 6;
}

/* A connection to one of them, or -errno. */
static int come_to(const char *endpoint)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path_of(endpoint));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int r = -errno;
    close(fd);
    return r;
}

START_TEST(each_incarnation_of_each_pool_has_names_of_its_own)
{
    char expected[SUPERVISION_ENDPOINT_MAX];
    snprintf(expected, sizeof expected, "ipc://%s/link-3-41-2", rundir);
    ck_assert_str_eq(record.link, expected);
    snprintf(expected, sizeof expected, "ipc://%s/worker-3-41-2", rundir);
    ck_assert_str_eq(record.stream, expected);
}
END_TEST

START_TEST(the_longest_name_is_a_path_that_a_socket_can_have)
{
    char longest[RUNDIR_PATH_MAX + 1];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    record.index = SUPERVISION_PLACES_MAX - 1;
    record.incarnation = UINT32_MAX;
    doors_name(&record, longest, UINT64_MAX);
    const size_t most = sizeof((struct sockaddr_un *)0)->sun_path - 1;
    ck_assert_uint_le(strlen(path_of(record.link)), most);
    ck_assert_uint_le(strlen(path_of(record.stream)), most);
    ck_assert_ptr_nonnull(strstr(record.stream, "-4294967295")); /* whole */
}
END_TEST

START_TEST(who_comes_before_the_worker_waits_and_who_comes_after_its_end_is_refused)
{
    struct doors doors;
    struct error err = {{0}};
    ck_assert_msg(doors_open(&record, &doors, &err) == 0, "%s", err.text);
    ck_assert_int_eq(fcntl(doors.link_fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(fcntl(doors.stream_fd, F_GETFD), FD_CLOEXEC);
    int link = come_to(record.link), stream = come_to(record.stream), worker = dup(doors.link_fd);
    ck_assert_int_ge(link, 0);
    ck_assert_int_ge(stream, 0);
    doors_close(&doors);
    ck_assert(doors.link_fd == -1 && doors.stream_fd == -1);
    ck_assert_int_eq(come_to(record.stream), -ECONNREFUSED); /* nobody has that one any more */
    int later = come_to(record.link);
    ck_assert_int_ge(later, 0);
    int taken = accept(worker, NULL, NULL);
    ck_assert_int_ge(taken, 0);
    close(taken);
    close(worker);
    ck_assert_int_eq(come_to(record.link), -ECONNREFUSED);
    close(link);
    close(stream);
    close(later);
}
END_TEST

START_TEST(what_is_at_the_path_is_named_and_leaves_no_descriptor)
{
    struct doors doors = {-7, -7};
    struct error err = {{0}};
    struct stat st;
    int before = dup(STDIN_FILENO), after;
    close(before);
    close(open(path_of(record.stream), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ck_assert_int_eq(doors_open(&record, &doors, &err), -EADDRINUSE);
    ck_assert_msg(strncmp(err.text, path_of(record.stream), strlen(path_of(record.stream))) == 0, "%s",
                  err.text);
    ck_assert_int_eq(doors.link_fd, -7);
    ck_assert(stat(path_of(record.stream), &st) == 0 && S_ISREG(st.st_mode));
    after = dup(STDIN_FILENO);
    close(after);
    ck_assert_int_eq(before, after);
}
END_TEST

START_TEST(both_are_removed_from_the_directory_wherever_it_is)
{
    struct doors doors;
    char moved[sizeof rundir + 8];
    int dir = open(rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(doors_open(&record, &doors, NULL), 0);
    doors_close(&doors);
    snprintf(moved, sizeof moved, "%s-moved", rundir);
    ck_assert_int_eq(rename(rundir, moved), 0);
    doors_remove(&record, dir);
    ck_assert_int_eq(rmdir(moved), 0);            /* it is empty */
    doors_remove(&(struct place_record){0}, dir); /* of a place that never had any */
    close(dir);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, each_incarnation_of_each_pool_has_names_of_its_own);
    tcase_add_test(tests, the_longest_name_is_a_path_that_a_socket_can_have);
    tcase_add_test(tests, who_comes_before_the_worker_waits_and_who_comes_after_its_end_is_refused);
    tcase_add_test(tests, what_is_at_the_path_is_named_and_leaves_no_descriptor);
    tcase_add_test(tests, both_are_removed_from_the_directory_wherever_it_is);
}

int main(void)
{
    return run_tests("supervisor/doors", add);
}
