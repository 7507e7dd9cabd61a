/* SPDX-License-Identifier: MIT */
/* The file of a fleet's secret: what is one, and who may read it. */

#include "common/files/fleet_secret.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/tmp/quern-fleet-secret-XXXXXX";
static struct fleet_secret secret;
static struct error err;

static int read_text(const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, mode), 0);
    secret = (struct fleet_secret){0};
    return fleet_secret_read(path, &secret, &err);
}

static void set_up(void)
{
    strcpy(path + strlen(path) - 6, "XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void tear_down(void)
{
    unlink(path);
}

START_TEST(one_line_is_a_secret)
{
    ck_assert_int_eq(read_text("0123456789abcdef\n", 0600), 0);
    ck_assert_str_eq(secret.text, "0123456789abcdef");
    const uint64_t seed = secret.seed;
    ck_assert_int_eq(read_text("0123456789abcdef", 0600), 0);
    ck_assert_uint_eq(secret.seed, seed);
    ck_assert(fleet_secret_is(&secret, "0123456789abcdef", 16));
    ck_assert(!fleet_secret_is(&secret, "0123456789abcdeX", 16));
    ck_assert(!fleet_secret_is(&secret, "0123456789abcde", 15));
    ck_assert(!fleet_secret_is(&secret, "", 0));
    ck_assert(!fleet_secret_is(&(struct fleet_secret){0}, "", 0));
    ck_assert_int_eq(read_text("0123456789abcdeX\n", 0600), 0);
    ck_assert_uint_ne(secret.seed, seed);
}
END_TEST

START_TEST(what_is_none_is_named)
{
    static const char *const bad[] = {"",
                                      "\n",
                                      "too short",
                                      "0123456789abcdef\n0123456789abcdef\n",
                                      "0123456789 abcdef",
                                      "0123456789\tabcdef"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(read_text(bad[i], 0600), -EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, path));
        ck_assert_uint_eq(secret.text[0], 0);
    }
    char longer[FLEET_SECRET_MOST + 2];
    memset(longer, 'x', sizeof longer);
    longer[FLEET_SECRET_MOST + 1] = 0;
    ck_assert_int_eq(read_text(longer, 0600), -EINVAL);
    longer[FLEET_SECRET_MOST] = 0;
    ck_assert_int_eq(read_text(longer, 0600), 0);
    unlink(path);
    ck_assert_int_eq(fleet_secret_read(path, &secret, &err), -ENOENT);
}
END_TEST

START_TEST(a_secret_that_others_can_read_is_refused)
{
    ck_assert_int_eq(read_text("0123456789abcdef", 0644), -EPERM);
    ck_assert_int_eq(read_text("0123456789abcdef", 0640), -EPERM);
    ck_assert_int_eq(read_text("0123456789abcdef", 0400), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, one_line_is_a_secret);
    tcase_add_test(tests, what_is_none_is_named);
    tcase_add_test(tests, a_secret_that_others_can_read_is_refused);
}

int main(void)
{
    return run_tests("common/files/fleet_secret", add);
}
