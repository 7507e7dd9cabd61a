/* SPDX-License-Identifier: MIT */
/* Files of a fleet's members: what is whole, and that they are written in one step. */

#include "common/files/member_file.h"
#include "common/files/rundir.h"
#include "tests/unit/run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY     "zuA0t=ptrw0C(CjAPZd)wm/0@EIsyN}-G3w=zHim"
#define NEXT    "#{}.-:+=^!/*?&<>()[]@%$abcdefghijk012345"
#define CONNECT "connect = \"tcp://10.77.0.1:7700\"\n"
#define SERVER  "server-key = \"" KEY "\"\n"

static struct member_file member;
static struct error err;

static int parse(const char *text)
{
    member = (struct member_file){.connect = "untouched"};
    err.text[0] = 0;
    return member_file_parse(text, strlen(text), "pool-1", &member, &err);
}

#define ck_assert_refused(input, reason)                                                                     \
    do {                                                                                                     \
        ck_assert_int_eq(parse(input), -EINVAL);                                                             \
        ck_assert_str_eq(err.text, reason);                                                                  \
        ck_assert_str_eq(member.connect, "untouched");                                                       \
    } while (0)

START_TEST(an_address_and_a_key_are_a_member)
{
    ck_assert_msg(parse(CONNECT SERVER) == 0, "%s", err.text);
    ck_assert_str_eq(member.connect, "tcp://10.77.0.1:7700");
    ck_assert_str_eq(member.server_key, KEY);
    ck_assert_str_eq(member.server_key_next, "");
    ck_assert_int_eq(
        parse("# by hand\n\nserver-key-next = '" NEXT "'\n" SERVER "connect=tcp://[::1]:65534\n"), 0);
    ck_assert_str_eq(member.connect, "tcp://[::1]:65534");
    ck_assert_str_eq(member.server_key_next, NEXT);
}
END_TEST

START_TEST(half_a_file_is_none)
{
    ck_assert_refused("", "pool-1: empty");
    ck_assert_refused(CONNECT, "pool-1: server-key is missing");
    ck_assert_refused(SERVER, "pool-1: connect is missing");
    ck_assert_refused("connect = tcp://10.77.0.1:770", "pool-1: the last line does not end in a newline");
    ck_assert_refused(CONNECT "server-key = \"" KEY "\"", "pool-1: the last line does not end in a newline");
    ck_assert_refused(CONNECT "server-key = \"zuA0t=", "pool-1:2: unterminated quote");
    ck_assert_refused(CONNECT "server-key = zuA0t=\n",
                      "pool-1:2: server-key: not a key (40 characters of Z85, in quotes)");
}
END_TEST

START_TEST(what_is_not_understood_is_refused_with_its_line)
{
    ck_assert_refused(CONNECT SERVER "server-key-nxt = \"" NEXT "\"\n",
                      "pool-1:3: unknown name \"server-key-nxt\"");
    ck_assert_refused(CONNECT SERVER SERVER, "pool-1:3: server-key: already set");
    const char *const wrong[] = {"ipc:///tmp/quern",     "10.77.0.1:7700",    "tcp://10.77.0.1",
                                 "tcp://:7700",          "tcp://10.77.0.1:0", "tcp://10.77.0.1:65535",
                                 "tcp://10.77.0.1:7700x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[256], reason[256];
        snprintf(text, sizeof text, "connect = %s\n" SERVER, wrong[i]);
        snprintf(reason, sizeof reason,
                 "pool-1:1: connect: \"%s\" is not tcp://HOST:PORT with a port from 1 to 65534", wrong[i]);
        ck_assert_refused(text, reason);
    }
    ck_assert_refused("connect = tcp://*:7700\n", "pool-1:1: connect: \"tcp://*:7700\" names no host");
    ck_assert_refused("connect = tcp://0.0.0.0:7700\n",
                      "pool-1:1: connect: \"tcp://0.0.0.0:7700\" names no host");
}
END_TEST

START_TEST(names_are_those_that_need_no_care)
{
    ck_assert(member_file_is_name("pool-1"));
    ck_assert(member_file_is_name("gpu.rack_2"));
    const char *const wrong[] = {"",
                                 ".pool",
                                 "pool 1",
                                 "pool~",
                                 "pöl",
                                 "a/b",
                                 "12345678901234567890123456789012345678901234567890123456789012345"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!member_file_is_name(wrong[i]), "%s", wrong[i]);
}
END_TEST

START_TEST(a_file_is_written_whole_and_nothing_else_is_left)
{
    char folder[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 64];
    struct member_file again;
    struct stat status;
    struct dirent *entry;
    ck_assert_int_eq(rundir_temporary(folder, NULL), 0);
    snprintf(path, sizeof path, "%s/pool-1", folder);
    mode_t before = umask(0);
    for (int i = 0; i < 2; i++) { /* the second time it is replaced */
        ck_assert_int_eq(parse(i ? CONNECT SERVER "server-key-next = \"" NEXT "\"\n" : CONNECT SERVER), 0);
        ck_assert_msg(member_file_write(path, &member, &err) == 0, "%s", err.text);
        ck_assert_msg(member_file_read(path, &again, &err) == 0, "%s", err.text);
        ck_assert_mem_eq(&again, &member, sizeof again);
    }
    umask(before);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0644);
    DIR *dir = opendir(folder);
    int n = 0;
    while ((entry = readdir(dir)))
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(chmod(path, 0664), 0);
    ck_assert_int_eq(member_file_read(path, &again, &err), -EPERM);
    ck_assert_ptr_nonnull(strstr(err.text, "its group or others can write it (mode 0664): chmod go-w "));
    rundir_remove(folder);
    ck_assert_int_eq(member_file_write(path, &member, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "pool-1: No such file or directory"));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, an_address_and_a_key_are_a_member);
    tcase_add_test(tests, half_a_file_is_none);
    tcase_add_test(tests, what_is_not_understood_is_refused_with_its_line);
    tcase_add_test(tests, names_are_those_that_need_no_care);
    tcase_add_test(tests, a_file_is_written_whole_and_nothing_else_is_left);
}

int main(void)
{
    return run_tests("common/member_file", add);
}
