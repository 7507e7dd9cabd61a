/* SPDX-License-Identifier: MIT */
/* The file of a pool in its fleet's folder: when it is there, and whose it is. */

#include "supervisor/member.h"
#include "common/clock.h"
#include "common/files/certificate.h"
#include "common/files/rundir.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY    "zuA0t=ptrw0C(CjAPZd)wm/0@EIsyN}-G3w=zHim"
#define SECRET "#{}.-:+=^!/*?&<>()[]@%$abcdefghijk012345"

static char folder[RUNDIR_PATH_MAX + 1];
static struct options options;
static struct member member;
static struct member_file there;
static struct error err;

static void set_up(void)
{
    const struct certificate certificate = {KEY, SECRET};
    ck_assert_int_eq(rundir_temporary(folder, NULL), 0);
    ck_assert_msg(certificate_write(folder, "key", &certificate, &err) == 0, "%s", err.text);
    options = (struct options){.tcp = "10.77.0.1:7700"};
    snprintf(options.curve_key, sizeof options.curve_key, "%s/key_secret", folder);
    snprintf(options.member, sizeof options.member, "%s/pool-1", folder);
}

static void tear_down(void)
{
    rundir_remove(folder);
}

static bool is_there(void)
{
    return member_file_read(options.member, &there, &err) == 0;
}

START_TEST(the_file_is_there_from_the_first_worker_to_the_drain)
{
    ck_assert_msg(member_init(&member, &options, &err) == 0, "%s", err.text);
    member_turn(&member, false, false, 1);
    ck_assert(!is_there());
    ck_assert_uint_eq(member_due(&member, false, false), UINT64_MAX);
    member_turn(&member, true, false, 2);
    ck_assert_msg(is_there(), "%s", err.text);
    ck_assert_str_eq(there.connect, "tcp://10.77.0.1:7700");
    ck_assert_str_eq(there.server_key, KEY);
    member_turn(&member, true, true, 3);
    ck_assert(!is_there());
    member_turn(&member, true, true, 4);
    ck_assert(!is_there());
    ck_assert_uint_eq(member_due(&member, true, true), UINT64_MAX);
}
END_TEST

START_TEST(gateways_hear_of_the_public_host)
{
    strcpy(options.tcp, "*:7700");
    strcpy(options.public_host, "gpu1");
    ck_assert_int_eq(member_init(&member, &options, &err), 0);
    member_turn(&member, true, false, 1);
    ck_assert(is_there());
    ck_assert_str_eq(there.connect, "tcp://gpu1:7700");
}
END_TEST

START_TEST(what_cannot_be_written_is_tried_again)
{
    char away[RUNDIR_PATH_MAX + 8];
    snprintf(away, sizeof away, "%s.away", folder);
    ck_assert_int_eq(member_init(&member, &options, &err), 0);
    ck_assert_int_eq(rename(folder, away), 0);
    member_turn(&member, true, false, 1);
    ck_assert_int_eq(rename(away, folder), 0);
    ck_assert_uint_eq(member_due(&member, true, false), 1 + CLOCK_NS_PER_S);
    member_turn(&member, true, false, CLOCK_NS_PER_S);
    ck_assert(!is_there());
    member_turn(&member, true, false, 1 + CLOCK_NS_PER_S);
    ck_assert(is_there());
}
END_TEST

START_TEST(the_file_of_a_pool_that_took_the_name_stays)
{
    ck_assert_int_eq(member_init(&member, &options, &err), 0);
    member_turn(&member, true, false, 1);
    ck_assert(is_there());
    strcpy(there.server_key_next, SECRET); /* the next key is written by hand: it is this pool's file still */
    ck_assert_int_eq(member_file_write(options.member, &there, &err), 0);
    member_leave(&member);
    ck_assert(!is_there());
    ck_assert_int_eq(member_init(&member, &options, &err), 0);
    member_turn(&member, true, false, 2);
    ck_assert(is_there());
    strcpy(there.connect, "tcp://10.77.0.2:7700");
    ck_assert_int_eq(member_file_write(options.member, &there, &err), 0);
    member_leave(&member);
    ck_assert(is_there());
}
END_TEST

START_TEST(a_path_that_names_no_member_is_refused)
{
    const char *const names[] = {"", ".hidden", "a b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(options.member, sizeof options.member, "%s/%s", folder, names[i]);
        ck_assert_int_eq(member_init(&member, &options, &err), -EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, "is not DIR/NAME with a name of letters"));
    }
    strcpy(options.member, "/nowhere/at/all");
    ck_assert_int_eq(member_init(&member, &options, &err), -ENOENT);
    ck_assert_str_eq(err.text, "member: /nowhere/at/: No such file or directory");
    options.member[0] = 0;
    ck_assert_int_eq(member_init(&member, &options, &err), 0);
    member_turn(&member, true, false, 1);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_file_is_there_from_the_first_worker_to_the_drain);
    tcase_add_test(tests, gateways_hear_of_the_public_host);
    tcase_add_test(tests, what_cannot_be_written_is_tried_again);
    tcase_add_test(tests, the_file_of_a_pool_that_took_the_name_stays);
    tcase_add_test(tests, a_path_that_names_no_member_is_refused);
}

int main(void)
{
    return run_tests("supervisor/member", add);
}
