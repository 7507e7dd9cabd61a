/* SPDX-License-Identifier: MIT */
/* The folder of a fleet as people and programs change it, look by look. */

#include "gateway/fleet/folder.h"
#include "gateway/fleet/members.h"
#include "common/files/rundir.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[RUNDIR_PATH_MAX + 1];
static struct folder folder;
static struct error err;

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(path, NULL), 0);
    folder = (struct folder){.path = path};
}

static void tear_down(void)
{
    folder_deinit(&folder);
    rundir_remove(path);
}

static const char *in_folder(const char *name)
{
    static char full[RUNDIR_PATH_MAX + 300];
    snprintf(full, sizeof full, "%s/%s", path, name);
    return full;
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    ck_assert_int_eq(chmod(in_folder(name), 0644), 0);
}

/* The file of a pool on this port, with a key that begins with this letter. */
static void write_member(const char *name, int port, char letter)
{
    char text[256];
    snprintf(text, sizeof text,
             "connect = \"tcp://10.0.0.1:%d\"\nserver-key = \"%cuA0t=ptrw0C(CjAPZd)wm/0@EIsyN}-G3w=zHim\"\n",
             port, letter);
    write_text(name, text);
}

/* The members as "name:port " each, after so many looks. */
static const char *after(int looks)
{
    static char text[512];
    struct member *members;
    size_t n;
    text[0] = 0;
    while (looks-- > 0)
        folder_look(&folder);
    ck_assert_int_eq(folder_members(&folder, &members, &n), 0);
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s ", members[i].name,
                 strrchr(members[i].file.connect, ':'));
    free(members);
    return text;
}

START_TEST(a_file_counts_when_two_looks_have_found_it_the_same)
{
    write_member("b", 2, 'b');
    write_member("a", 1, 'a');
    ck_assert_str_eq(after(1), "");
    ck_assert_str_eq(after(1), "a:1 b:2 ");
    write_member("a", 3, 'a');
    ck_assert_str_eq(after(1), "a:1 b:2 ");
    write_member("a", 40, 'a'); /* it has changed again */
    ck_assert_str_eq(after(1), "a:1 b:2 ");
    ck_assert_str_eq(after(1), "a:40 b:2 ");
}
END_TEST

START_TEST(hidden_files_folders_and_secrets_are_skipped)
{
    write_member(".a.part-7", 1, 'a');
    write_member("b_secret", 2, 'b');
    ck_assert_int_eq(mkdir(in_folder("c"), 0700), 0);
    write_member("d", 4, 'd');
    ck_assert_str_eq(after(2), "d:4 ");
    char hidden[sizeof path + 16];
    snprintf(hidden, sizeof hidden, "%s/.a.part-7", path);
    ck_assert_int_eq(rename(hidden, in_folder("a")), 0);
    ck_assert_str_eq(after(2), "a:1 d:4 ");
    rmdir(in_folder("c"));
}
END_TEST

START_TEST(half_a_file_keeps_what_it_said_before)
{
    write_member("a", 1, 'a');
    write_text("b", "connect = \"tcp://10.0.0.1:2\"\n");
    ck_assert_str_eq(after(2), "a:1 ");
    write_text("a", "connect = \"tcp://10.0.0.1:7");
    ck_assert_str_eq(after(5), "a:1 ");
    write_member("a", 70, 'a');
    write_member("b", 2, 'b');
    ck_assert_str_eq(after(2), "a:70 b:2 ");
    ck_assert_int_eq(chmod(in_folder("a"), 0666), 0); /* anybody may have written what it says now */
    write_text("c d", "");
    ck_assert_str_eq(after(5), "a:70 b:2 ");
}
END_TEST

START_TEST(a_file_that_is_removed_is_gone_at_the_second_look)
{
    write_member("a", 1, 'a');
    write_member("b", 2, 'b');
    ck_assert_str_eq(after(2), "a:1 b:2 ");
    ck_assert_int_eq(unlink(in_folder("a")), 0);
    ck_assert_str_eq(after(1), "a:1 b:2 ");
    ck_assert_str_eq(after(1), "b:2 ");
    ck_assert_int_eq(unlink(in_folder("b")), 0);
    ck_assert_str_eq(after(1), "b:2 ");
    write_member("b", 2, 'b'); /* as if it were replaced by removing it first */
    ck_assert_str_eq(after(2), "b:2 ");
    ck_assert_int_eq(unlink(in_folder("b")), 0);
    ck_assert_str_eq(after(2), "");
}
END_TEST

START_TEST(a_link_to_nowhere_harms_nobody_else)
{
    write_member("a", 1, 'a');
    ck_assert_int_eq(symlink("loop", in_folder("loop")), 0);
    ck_assert_int_eq(symlink("a/b", in_folder("below")), 0);
    ck_assert_int_eq(symlink("nothing", in_folder("dangling")), 0);
    ck_assert(folder_look(&folder));
    ck_assert_str_eq(after(1), "a:1 ");
}
END_TEST

START_TEST(a_folder_that_is_gone_or_open_to_others_changes_nothing)
{
    char away[RUNDIR_PATH_MAX + 8];
    snprintf(away, sizeof away, "%s.away", path);
    write_member("a", 1, 'a');
    ck_assert_str_eq(after(2), "a:1 ");
    ck_assert_int_eq(rename(path, away), 0);
    ck_assert(!folder_look(&folder));
    ck_assert_str_eq(after(5), "a:1 ");
    ck_assert_int_eq(folder_check(path, &err), -ENOENT);
    ck_assert_int_eq(rename(away, path), 0);
    ck_assert_int_eq(unlink(in_folder("a")), 0);
    for (mode_t mode = 0720; mode >= 0702; mode -= 0720 - 0702) {
        ck_assert_int_eq(chmod(path, mode), 0);
        ck_assert_str_eq(after(5), "a:1 ");
        ck_assert_int_eq(folder_check(path, &err), -EPERM);
        ck_assert_ptr_nonnull(strstr(err.text, "and so redirect prompts: chmod go-w "));
    }
    ck_assert_int_eq(chmod(path, 0700), 0);
    ck_assert_int_eq(folder_check(path, &err), 0);
    ck_assert_str_eq(after(2), "");
}
END_TEST

START_TEST(of_two_files_for_one_pool_the_first_by_name_counts)
{
    write_member("b", 1, 'b');
    write_member("c", 1, 'c'); /* the same address */
    write_member("d", 4, 'b'); /* the same key */
    ck_assert_str_eq(after(2), "b:1 ");
    write_member("a", 4, 'a');
    ck_assert_str_eq(after(2), "a:4 b:1 ");
    ck_assert_int_eq(unlink(in_folder("b")), 0);
    ck_assert_str_eq(after(2), "a:4 c:1 ");
}
END_TEST

/* Of the thread, which looks twice a second: what it has found comes once. */
START_TEST(the_thread_tells_each_change_once)
{
    struct members *members;
    struct member *list;
    size_t n = 0;
    write_member("a", 1, 'a');
    ck_assert_msg(members_start(path, NULL, &members, &err) == 0, "%s", err.text);
    for (int i = 0; n != 1 && i < 600; i++) {
        if (members_take(members, &list, &n))
            free(list);
        usleep(10000);
    }
    ck_assert_uint_eq(n, 1);
    usleep(1200000);
    ck_assert(!members_take(members, &list, &n));
    ck_assert_int_eq(unlink(in_folder("a")), 0);
    for (int i = 0; n != 0 && i < 600; i++) {
        if (members_take(members, &list, &n))
            free(list);
        usleep(10000);
    }
    ck_assert_uint_eq(n, 0);
    ck_assert_ptr_null(members_stop(members));
    ck_assert_int_eq(members_start("/nowhere/at/all", NULL, &members, &err), -ENOENT);
    ck_assert_str_eq(err.text, "fleet: /nowhere/at/all: No such file or directory");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_file_counts_when_two_looks_have_found_it_the_same);
    tcase_add_test(tests, hidden_files_folders_and_secrets_are_skipped);
    tcase_add_test(tests, half_a_file_keeps_what_it_said_before);
    tcase_add_test(tests, a_file_that_is_removed_is_gone_at_the_second_look);
    tcase_add_test(tests, a_link_to_nowhere_harms_nobody_else);
    tcase_add_test(tests, a_folder_that_is_gone_or_open_to_others_changes_nothing);
    tcase_add_test(tests, of_two_files_for_one_pool_the_first_by_name_counts);
    tcase_add_test(tests, the_thread_tells_each_change_once);
}

int main(void)
{
    return run_tests("gateway/fleet/folder", add);
}
