/* SPDX-License-Identifier: MIT */
/* What stands in for connect(2) and recv(2) on connections to workers, from where libzmq calls them. */

#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/wire/intake.h"
#include "broker/wire/worker_intake.h"
#include "broker/wire/zmtp.h"

#define WORKER 3
#define PART   WORKER_INTAKE_PART_BYTES

static char folder[] = "/tmp/quern-test-XXXXXX";
static int doors[WORKER_DOORS], ours, theirs; /* listeners; the two ends of a connection */
static struct sockaddr_un addresses[WORKER_DOORS];

static ssize_t (*volatile receive)(int, void *, size_t, int) = recv;

static void setup(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    worker_intake_begin(WORKER);
    for (int i = 0; i < WORKER_DOORS; i++) {
        char endpoint[128];
        addresses[i] = (struct sockaddr_un){.sun_family = AF_UNIX};
        snprintf(addresses[i].sun_path, sizeof addresses[i].sun_path, "%s/%d", folder, i);
        snprintf(endpoint, sizeof endpoint, "ipc://%s", addresses[i].sun_path);
        doors[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(doors[i], (struct sockaddr *)&addresses[i], sizeof addresses[i]), 0);
        ck_assert_int_eq(listen(doors[i], 8), 0);
        worker_intake_expect(WORKER, (enum worker_door)i, endpoint);
    }
}

static void teardown(void)
{
    for (int i = 0; i < WORKER_DOORS; i++) {
        close(doors[i]);
        unlink(addresses[i].sun_path);
    }
    rmdir(folder);
}

static void open_door(enum worker_door door)
{
    static const char greeting[ZMTP_GREETING_BYTES] = {'\xff', [9] = 0x7f, 3};
    char into[sizeof greeting];
    ours = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(ours, (struct sockaddr *)&addresses[door], sizeof addresses[door]), 0);
    theirs = accept(doors[door], NULL, NULL);
    ck_assert_int_eq(write(theirs, greeting, sizeof greeting), sizeof greeting);
    ck_assert_int_eq(receive(ours, into, sizeof into, 0), sizeof into);
    ck_assert_uint_eq(worker_intake_held(WORKER), 0);
}

static void close_door(void)
{
    close(ours);
    close(theirs);
}

/* Whether the bytes may be read, in pieces of this length. */
static bool is_read(const void *bytes, size_t n, size_t piece)
{
    static char into[65536];
    for (size_t at = 0; at < n;) {
        size_t len = piece < n - at ? piece : n - at;
        ck_assert_int_eq(write(theirs, (const char *)bytes + at, len), (ssize_t)len);
        for (size_t got = 0; got < len;) {
            ssize_t r = receive(ours, into, len - got, 0);
            ck_assert(r > 0 || (r < 0 && errno == ECONNRESET));
            if (r < 0)
                return false;
            got += (size_t)r;
        }
        at += len;
    }
    return true;
}

#define is_read_text(text, piece) is_read(text, sizeof(text) - 1, piece)

START_TEST(what_is_not_taken_counts_until_it_is)
{
    for (size_t piece = 1; piece < 12; piece++) {
        worker_intake_begin(WORKER);
        teardown();
        setup();
        open_door(WORKER_DOOR_STREAM);
        ck_assert(is_read_text("\1\2ab\0\3cde", piece)); /* topic and payload */
        ck_assert_uint_eq(worker_intake_held(WORKER), 5 + 2 * PART);
        ck_assert(
            is_read_text("\1\0\2\0\0\0\0\0\0\0\1x", piece)); /* an empty part, and one with a long length */
        ck_assert_uint_eq(worker_intake_held(WORKER), 6 + 4 * PART);
        worker_intake_taken(WORKER, 5, 2);
        ck_assert_uint_eq(worker_intake_held(WORKER), 1 + 2 * PART);
        worker_intake_taken(WORKER, 1, 2);
        ck_assert_uint_eq(worker_intake_held(WORKER), 0);
        close_door();
    }
    ck_assert_int_eq(worker_intake_judge(WORKER), WORKER_INTAKE_FINE);
}
END_TEST

START_TEST(commands_count_when_libzmq_passes_them_on)
{
    open_door(WORKER_DOOR_STREAM);
    ck_assert(is_read_text("\4\6\5READY\4\11\4PING\0\0ab", 3));
    ck_assert_uint_eq(worker_intake_held(WORKER), 0);
    ck_assert(is_read_text("\1\1a\4\7\4PING\0\0\0\1b", 3)); /* one between two parts */
    ck_assert_uint_eq(worker_intake_held(WORKER), 2 + 2 * PART);
    ck_assert(is_read_text("\4\13\11SUBSCRIBEx", 4));
    ck_assert_uint_eq(worker_intake_held(WORKER), 2 + 11 + 3 * PART);
    close_door();
}
END_TEST

START_TEST(what_was_under_way_goes_with_the_connection_and_what_was_complete_does_not)
{
    open_door(WORKER_DOOR_LINK);
    ck_assert(is_read_text("\0\3abc\0\7begins", 5));
    ck_assert_uint_eq(worker_intake_held(WORKER), 9 + 2 * PART);
    close_door();
    ck_assert_uint_eq(worker_intake_held(WORKER), 3 + PART);
    worker_intake_begin(WORKER);
    ck_assert_uint_eq(worker_intake_held(WORKER), 0);
}
END_TEST

START_TEST(a_message_has_as_many_parts_as_its_door_takes)
{
    open_door(WORKER_DOOR_LINK);
    ck_assert(!is_read_text("\0\1a\1\1b", 64));
    ck_assert_int_eq(worker_intake_judge(WORKER), WORKER_INTAKE_LINK_PARTS);
    ck_assert_int_eq(worker_intake_judge(WORKER), WORKER_INTAKE_FINE); /* said once */
    close_door();
    worker_intake_begin(WORKER);
    teardown();
    setup();
    open_door(WORKER_DOOR_STREAM);
    ck_assert(is_read_text("\1\1a\0\1b\1\1a", 64));
    ck_assert(!is_read_text("\1\1b", 64));
    ck_assert_int_eq(worker_intake_judge(WORKER), WORKER_INTAKE_STREAM_PARTS);
    close_door();
}
END_TEST

START_TEST(beyond_the_bound_nothing_is_read_on_either_door_until_another_process_comes)
{
    static char bytes[65536];
    size_t read = 0;
    open_door(WORKER_DOOR_LINK);
    int link = ours, link_end = theirs;
    ck_assert(is_read_text("\2\0\0\0\0\4\0\0\0", 64)); /* 64 MiB are announced, and come */
    while (read <= WORKER_INTAKE_MAX && is_read(bytes, sizeof bytes, sizeof bytes))
        read += sizeof bytes;
    ck_assert_uint_gt(read, WORKER_INTAKE_MAX - 2 * sizeof bytes);
    ck_assert_uint_le(read, WORKER_INTAKE_MAX);
    ck_assert_int_eq(worker_intake_judge(WORKER), WORKER_INTAKE_BYTES);
    ours = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* as libzmq does after a failure */
    ck_assert_int_eq(connect(ours, (struct sockaddr *)&addresses[WORKER_DOOR_STREAM], sizeof addresses[0]),
                     0);
    theirs = accept(doors[WORKER_DOOR_STREAM], NULL, NULL);
    ck_assert(!is_read_text("\xff", 1));
    close_door();
    close(link);
    close(link_end);
    teardown();
    setup();
    open_door(WORKER_DOOR_STREAM);
    ck_assert(is_read_text("\1\1a\0\1b", 64));
    close_door();
}
END_TEST

START_TEST(a_connection_to_the_process_before_is_not_read)
{
    open_door(WORKER_DOOR_STREAM);
    worker_intake_begin(WORKER);
    ck_assert(!is_read_text("\1\1a\0\1b", 64));
    ck_assert_int_eq(worker_intake_judge(WORKER), WORKER_INTAKE_FINE);
    ck_assert_uint_eq(worker_intake_held(WORKER), 0);
    close_door();
}
END_TEST

START_TEST(what_is_no_zmtp_is_told)
{
    open_door(WORKER_DOOR_STREAM);
    close_door();
    ours = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(ours, (struct sockaddr *)&addresses[WORKER_DOOR_STREAM], sizeof addresses[0]),
                     0);
    theirs = accept(doors[WORKER_DOOR_STREAM], NULL, NULL);
    ck_assert(!is_read_text("GET / HTTP/1.1\r\n", 64));
    ck_assert_int_eq(worker_intake_judge(WORKER), WORKER_INTAKE_NO_ZMTP);
    close_door();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_is_not_taken_counts_until_it_is);
    tcase_add_test(tests, commands_count_when_libzmq_passes_them_on);
    tcase_add_test(tests, what_was_under_way_goes_with_the_connection_and_what_was_complete_does_not);
    tcase_add_test(tests, a_message_has_as_many_parts_as_its_door_takes);
    tcase_add_test(tests, beyond_the_bound_nothing_is_read_on_either_door_until_another_process_comes);
    tcase_add_test(tests, a_connection_to_the_process_before_is_not_read);
    tcase_add_test(tests, what_is_no_zmtp_is_told);
}

int main(void)
{
    return run_tests("broker: worker intake", add);
}
