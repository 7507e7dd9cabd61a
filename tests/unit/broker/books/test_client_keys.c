/* SPDX-License-Identifier: MIT */
/* The folder of keys, as people change it. Time is what the test says it is. */

#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <czmq.h>

#include "broker/books/client_keys.h"
#include "common/clock.h"
#include "common/files/rundir.h"

static char folder[RUNDIR_PATH_MAX + 1];
static struct client_keys keys;
static struct error err;
static uint64_t now;

static void set_up(void)
{
    zsys_handler_set(NULL);
    ck_assert_int_eq(rundir_temporary(folder, NULL), 0);
    keys = (struct client_keys){0};
    now = CLOCK_NS_PER_S;
}

static void tear_down(void)
{
    client_keys_deinit(&keys);
    rundir_remove(folder);
}

static const char *in_folder(const char *name)
{
    static char path[RUNDIR_PATH_MAX + 256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* A client's new key, of which the public half is in the folder as czmq writes it; its bytes. */
static void add_key(const char *name, uint8_t ret_bytes[CLIENT_KEY_BYTES])
{
    zcert_t *cert = zcert_new();
    ck_assert_int_eq(zcert_save_public(cert, in_folder(name)), 0);
    memcpy(ret_bytes, zcert_public_key(cert), CLIENT_KEY_BYTES);
    zcert_destroy(&cert);
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static bool look(void)
{
    now += CLIENT_KEYS_EVERY_MS * CLOCK_NS_PER_MS;
    return client_keys_look(&keys, now);
}

/* A change that has settled. */
static bool look_twice(void)
{
    ck_assert(!look());
    return look();
}

static uint32_t number_of(const uint8_t bytes[CLIENT_KEY_BYTES])
{
    const struct client_key *key = client_keys_find(&keys, bytes);
    return key ? key->number : 0;
}

static void begin(void)
{
    ck_assert_msg(client_keys_init(&keys, folder, now, &err) == 0, "%s", err.text);
}

START_TEST(keys_of_czmq_are_known_by_bytes_and_number)
{
    uint8_t alice[CLIENT_KEY_BYTES], bob[CLIENT_KEY_BYTES], nobody[CLIENT_KEY_BYTES] = {0};
    add_key("alice", alice);
    add_key("bob.cert", bob);
    begin();
    ck_assert_uint_ne(number_of(alice), 0);
    ck_assert_uint_ne(number_of(bob), 0);
    ck_assert_uint_ne(number_of(alice), number_of(bob));
    ck_assert_uint_eq(number_of(nobody), 0);
    ck_assert_str_eq(client_keys_of(&keys, number_of(bob))->name, "bob.cert");
    ck_assert_ptr_null(client_keys_of(&keys, 0));
}
END_TEST

START_TEST(an_empty_folder_lets_nobody_in)
{
    uint8_t nobody[CLIENT_KEY_BYTES] = {0};
    begin();
    ck_assert_uint_eq(number_of(nobody), 0);
    ck_assert(!look_twice());
}
END_TEST

START_TEST(what_is_no_public_certificate_lets_nobody_in_and_keeps_nobody_out)
{
    uint8_t alice[CLIENT_KEY_BYTES], secret[CLIENT_KEY_BYTES], hidden[CLIENT_KEY_BYTES];
    add_key("alice", alice);
    add_key("bob_secret", secret);
    add_key(".hidden", hidden);
    write_file("README", "The keys of those who may come.\n");
    write_file("short", "curve\n    public-key = \"abc\"\n");
    write_file("empty", "");
    ck_assert_int_eq(mkdir(in_folder("old"), 0700), 0);
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0600), 0); /* which would be waited for */
    ck_assert_int_eq(symlink("nowhere", in_folder("dangling")), 0);
    begin();
    ck_assert_uint_eq(HASH_CNT(by_bytes, keys.by_bytes), 1);
    ck_assert_uint_ne(number_of(alice), 0);
    ck_assert_int_eq(rmdir(in_folder("old")), 0);
}
END_TEST

START_TEST(a_key_that_is_added_counts_when_the_folder_has_settled)
{
    uint8_t alice[CLIENT_KEY_BYTES], bob[CLIENT_KEY_BYTES];
    add_key("alice", alice);
    begin();
    uint32_t number = number_of(alice);
    add_key("bob", bob);
    ck_assert(!look());
    ck_assert_uint_eq(number_of(bob), 0);
    ck_assert(!look());
    ck_assert_uint_ne(number_of(bob), 0);
    ck_assert_uint_eq(number_of(alice), number);
}
END_TEST

START_TEST(a_key_that_is_taken_away_and_comes_back_is_another)
{
    uint8_t alice[CLIENT_KEY_BYTES], bob[CLIENT_KEY_BYTES];
    char aside[RUNDIR_PATH_MAX + 256];
    add_key("alice", alice);
    add_key("bob", bob);
    begin();
    uint32_t number = number_of(alice), others = number_of(bob);
    snprintf(aside, sizeof aside, "%s/.alice", folder);
    ck_assert_int_eq(rename(in_folder("alice"), aside), 0);
    ck_assert(look_twice());
    ck_assert_uint_eq(number_of(alice), 0);
    ck_assert_ptr_null(client_keys_of(&keys, number));
    ck_assert_uint_eq(number_of(bob), others);
    ck_assert_int_eq(rename(aside, in_folder("alice")), 0);
    ck_assert(!look_twice());
    ck_assert_uint_ne(number_of(alice), 0);
    ck_assert_uint_ne(number_of(alice), number);
}
END_TEST

START_TEST(a_key_in_two_files_goes_with_the_second)
{
    uint8_t alice[CLIENT_KEY_BYTES];
    char second[RUNDIR_PATH_MAX + 256];
    add_key("alice", alice);
    begin();
    snprintf(second, sizeof second, "%s/alice.old", folder);
    ck_assert_int_eq(link(in_folder("alice"), second), 0);
    look_twice();
    ck_assert_int_eq(unlink(in_folder("alice")), 0);
    ck_assert(!look_twice());
    ck_assert_uint_ne(number_of(alice), 0);
    ck_assert_int_eq(unlink(second), 0);
    ck_assert(look_twice());
    ck_assert_uint_eq(number_of(alice), 0);
}
END_TEST

START_TEST(a_file_that_gets_another_key_lets_in_that_one_alone)
{
    uint8_t before[CLIENT_KEY_BYTES], after[CLIENT_KEY_BYTES];
    add_key("alice", before);
    begin();
    add_key("new", after);
    char to[RUNDIR_PATH_MAX + 256];
    snprintf(to, sizeof to, "%s/alice", folder);
    ck_assert_int_eq(rename(in_folder("new"), to), 0);
    ck_assert(look_twice());
    ck_assert_uint_eq(number_of(before), 0);
    ck_assert_uint_ne(number_of(after), 0);
}
END_TEST

START_TEST(no_half_of_a_change_is_believed)
{
    uint8_t alice[CLIENT_KEY_BYTES], others[CLIENT_KEY_BYTES];
    add_key("alice", alice);
    begin();
    uint32_t number = number_of(alice);
    /* The file is written anew, slowly; meanwhile others come. */
    char text[4096] = "";
    FILE *file = fopen(in_folder("alice"), "r");
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, file), 0);
    fclose(file);
    write_file("alice", "");
    ck_assert(!look());
    write_file("alice", "metadata\n");
    ck_assert(!look());
    add_key("bob", others);
    ck_assert(!look());
    ck_assert_uint_eq(number_of(alice), number);
    write_file("alice", text);
    ck_assert(!look());
    ck_assert(!look());
    ck_assert_uint_eq(number_of(alice), number);
    ck_assert_uint_ne(number_of(others), 0);
}
END_TEST

START_TEST(a_folder_that_is_gone_lets_nobody_in_until_it_is_back)
{
    uint8_t alice[CLIENT_KEY_BYTES];
    char aside[RUNDIR_PATH_MAX + 16];
    add_key("alice", alice);
    begin();
    snprintf(aside, sizeof aside, "%s.aside", folder);
    ck_assert_int_eq(rename(folder, aside), 0);
    ck_assert(look_twice());
    ck_assert_uint_eq(number_of(alice), 0);
    ck_assert_int_eq(rename(aside, folder), 0);
    ck_assert(!look_twice());
    ck_assert_uint_ne(number_of(alice), 0);
}
END_TEST

/* As Kubernetes lays out the files of a ConfigMap: each version is a folder, and a link names the one that
 * counts. */
START_TEST(a_folder_behind_a_link_is_the_one_that_the_link_names_now)
{
    uint8_t alice[CLIENT_KEY_BYTES], bob[CLIENT_KEY_BYTES];
    char data[RUNDIR_PATH_MAX + 16];
    snprintf(data, sizeof data, "%s/..data", folder);
    ck_assert_int_eq(mkdir(in_folder("..1"), 0755), 0);
    add_key("..1/alice", alice);
    add_key("..1/bob", bob);
    ck_assert_int_eq(symlink("..1", data), 0);
    ck_assert_int_eq(chmod(folder, 0777), 0);
    ck_assert_msg(client_keys_init(&keys, data, now, &err) == 0, "%s", err.text);
    const uint32_t number = number_of(alice);
    ck_assert_uint_ne(number, 0);
    ck_assert_uint_ne(number_of(bob), 0);
    ck_assert_int_eq(mkdir(in_folder("..2"), 0755), 0);
    char old[RUNDIR_PATH_MAX + 16];
    snprintf(old, sizeof old, "%s/..1/alice", folder);
    ck_assert_int_eq(rename(old, in_folder("..2/alice")), 0);
    ck_assert_int_eq(symlink("..2", in_folder("..data_tmp")), 0);
    ck_assert_int_eq(rename(in_folder("..data_tmp"), data), 0);
    ck_assert(look_twice());
    ck_assert_uint_eq(number_of(alice), number);
    ck_assert_uint_eq(number_of(bob), 0);
    ck_assert_int_eq(unlink(in_folder("..1/bob")), 0);
    ck_assert_int_eq(rmdir(in_folder("..1")), 0);
    ck_assert_int_eq(unlink(in_folder("..2/alice")), 0);
    ck_assert_int_eq(rmdir(in_folder("..2")), 0);
}
END_TEST

START_TEST(a_folder_that_everybody_may_write_to_is_refused_and_changes_nothing)
{
    uint8_t alice[CLIENT_KEY_BYTES], stranger[CLIENT_KEY_BYTES];
    add_key("alice", alice);
    ck_assert_int_eq(chmod(folder, 0777), 0);
    ck_assert_int_eq(client_keys_init(&keys, folder, now, &err), -EPERM);
    ck_assert_msg(strstr(err.text, "anyone can write to"), "%s", err.text);
    ck_assert_int_eq(chmod(folder, 0700), 0);
    begin();
    ck_assert_int_eq(chmod(folder, 0777), 0);
    add_key("stranger", stranger);
    ck_assert(!look_twice());
    ck_assert(!look_twice());
    ck_assert_uint_eq(number_of(stranger), 0);
    ck_assert_uint_ne(number_of(alice), 0);
    ck_assert_int_eq(chmod(folder, 0700), 0);
    ck_assert(!look_twice());
    ck_assert_uint_ne(number_of(stranger), 0);
}
END_TEST

/* The folder is opened, a file in it is not. */
START_TEST(a_key_that_cannot_be_read_for_want_of_descriptors_is_read_later)
{
    uint8_t alice[CLIENT_KEY_BYTES], bob[CLIENT_KEY_BYTES];
    struct rlimit usual, few;
    add_key("alice", alice);
    begin();
    add_key("bob", bob);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const int next = dup(0);
    ck_assert_int_ge(next, 0);
    close(next);
    few = (struct rlimit){(rlim_t)next + 1, usual.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    ck_assert(!look_twice());
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
    ck_assert_uint_eq(number_of(bob), 0);
    ck_assert_uint_ne(number_of(alice), 0);
    ck_assert(!look_twice());
    ck_assert_uint_ne(number_of(bob), 0);
}
END_TEST

START_TEST(a_folder_that_is_none_or_too_large_is_refused_by_name)
{
    char name[32];
    ck_assert_int_eq(client_keys_init(&keys, "/nowhere/keys", now, &err), -ENOENT);
    ck_assert_str_eq(err.text, "client-keys: /nowhere/keys: No such file or directory");
    write_file("file", "x");
    ck_assert_int_eq(client_keys_init(&keys, in_folder("file"), now, &err), -ENOTDIR);
    for (int i = 0; i < CLIENT_KEYS_MAX; i++) {
        snprintf(name, sizeof name, "%d", i);
        write_file(name, "");
    }
    ck_assert_int_eq(client_keys_init(&keys, folder, now, &err), -E2BIG);
    ck_assert_msg(strstr(err.text, "more than 4096 files"), "%s", err.text);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, keys_of_czmq_are_known_by_bytes_and_number);
    tcase_add_test(tests, an_empty_folder_lets_nobody_in);
    tcase_add_test(tests, what_is_no_public_certificate_lets_nobody_in_and_keeps_nobody_out);
    tcase_add_test(tests, a_key_that_is_added_counts_when_the_folder_has_settled);
    tcase_add_test(tests, a_key_that_is_taken_away_and_comes_back_is_another);
    tcase_add_test(tests, a_key_in_two_files_goes_with_the_second);
    tcase_add_test(tests, a_file_that_gets_another_key_lets_in_that_one_alone);
    tcase_add_test(tests, no_half_of_a_change_is_believed);
    tcase_add_test(tests, a_folder_that_is_gone_lets_nobody_in_until_it_is_back);
    tcase_add_test(tests, a_folder_behind_a_link_is_the_one_that_the_link_names_now);
    tcase_add_test(tests, a_folder_that_everybody_may_write_to_is_refused_and_changes_nothing);
    tcase_add_test(tests, a_key_that_cannot_be_read_for_want_of_descriptors_is_read_later);
    tcase_add_test(tests, a_folder_that_is_none_or_too_large_is_refused_by_name);
}

int main(void)
{
    return run_tests("client keys", add);
}
