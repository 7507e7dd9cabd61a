/* SPDX-License-Identifier: MIT */
/* Files that are read whole, and what rejected: what is no file is not waited for, what is too large is not
 * read to its end, and nothing is touched. */

#include "common/files/rundir.h"
#include "common/files/secret_file.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST   1000
#define SECRET "open sesame "

static char folder[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 64];

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(folder, NULL), 0);
    snprintf(path, sizeof path, "%s/a-key", folder);
}

static void tear_down(void)
{
    rundir_remove(folder);
}

static void write_file(const char *text, size_t len, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, len), (ssize_t)len);
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
}

/* It is refused for this reason, which begins with its name, and nothing was touched. */
static void expect_refusal(const char *name, int r, const char *reason)
{
    static char before[] = "untouched";
    struct secret_file file = {.text = before, .len = 7};
    struct error err = {0};
    char text[sizeof err.text];
    ck_assert_int_eq(secret_file_read(name, MOST, &file, &err), r);
    snprintf(text, sizeof text, "%s%s", name, reason);
    ck_assert_str_eq(err.text, text);
    ck_assert_ptr_eq(file.text, before);
    ck_assert_uint_eq(file.len, 7);
}

START_TEST(a_file_is_read_to_its_end)
{
    char most[MOST];
    memset(most, 'x', sizeof most);
    for (size_t len = 0; len <= MOST; len += len < 3 ? 1 : 997) {
        struct secret_file file = {0};
        struct error err = {0};
        write_file(most, len, 0640);
        ck_assert_int_eq(secret_file_read(path, MOST, &file, &err), 0);
        ck_assert_uint_eq(file.len, len);
        ck_assert_mem_eq(file.text, most, len);
        ck_assert_int_eq(file.text[len], 0);
        ck_assert_uint_eq(file.status.st_mode, S_IFREG | 0640);
        ck_assert_uint_eq(file.status.st_size, len);
        secret_file_deinit(&file);
        ck_assert_ptr_null(file.text);
        ck_assert_uint_eq(file.len, 0);
        secret_file_deinit(&file); /* of one that was zeroed, too */
    }
}
END_TEST

/* The kernel says that those of /proc have no bytes. */
START_TEST(a_file_is_read_whatever_size_it_says_to_have)
{
    struct secret_file file = {0};
    struct error err = {0};
    ck_assert_int_eq(secret_file_read("/proc/self/stat", 65536, &file, &err), 0);
    ck_assert_uint_eq(file.status.st_size, 0);
    ck_assert_uint_gt(file.len, 0);
    secret_file_deinit(&file);
}
END_TEST

START_TEST(a_file_that_is_too_large_is_refused)
{
    char more[2 * MOST];
    memset(more, 'x', sizeof more);
    write_file(more, MOST + 1, 0600);
    expect_refusal(path, -EFBIG, " is larger than 1000 bytes");
    write_file(more, sizeof more, 0600);
    expect_refusal(path, -EFBIG, " is larger than 1000 bytes");
}
END_TEST

START_TEST(a_file_with_a_zero_byte_is_refused)
{
    write_file("\0secret", 7, 0600);
    expect_refusal(path, -EINVAL, " contains a zero byte");
    write_file("secret", 7, 0600);
    expect_refusal(path, -EINVAL, " contains a zero byte");
}
END_TEST

START_TEST(a_secret_is_its_owners_or_a_group_s_whose_it_is_not)
{
    const struct {
        uid_t owner;
        mode_t mode;
        int r;
    } files[] = {{geteuid(), 0600, 0},          {geteuid(), 0640, -EPERM},    {geteuid(), 0604, -EPERM},
                 {geteuid(), 0620, -EPERM},     {geteuid() + 1, 0440, 0},     {geteuid() + 1, 0640, 0},
                 {geteuid() + 1, 0444, -EPERM}, {geteuid() + 1, 0641, -EPERM}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct error err = {0};
        char text[80];
        const struct stat status = {.st_uid = files[i].owner, .st_mode = S_IFREG | files[i].mode};
        ck_assert_int_eq(secret_file_check_private(&status, "a/b", "a thing", &err), files[i].r);
        snprintf(text, sizeof text, "a/b holds a thing and others can read it (mode %04o): chmod 600 a/b",
                 (unsigned)files[i].mode);
        ck_assert_str_eq(err.text, files[i].r < 0 ? text : "");
    }
}
END_TEST

/* Linked in the place of free: looks at what is given back. */
static bool gave_back_secret;

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
    if (memory && memmem(memory, malloc_usable_size(memory), SECRET, sizeof SECRET - 1))
        gave_back_secret = true;
    __real_free(memory);
}

START_TEST(no_secret_stays_in_memory_that_is_free)
{
    static const struct {
        size_t len;
        char last_but_one;
        int r;
    } files[] = {{MOST, 'x', 0}, {MOST + 1, 'x', -EFBIG}, {MOST - 1, 0, -EINVAL}};
    char text[MOST + sizeof SECRET];
    for (size_t at = 0; at < sizeof text; at++)
        text[at] = SECRET[at % (sizeof SECRET - 1)];
    for (int i = 0; i < 3; i++) {
        struct secret_file file = {0};
        text[MOST - 2] = files[i].last_but_one;
        write_file(text, files[i].len, 0600);
        gave_back_secret = false;
        ck_assert_int_eq(secret_file_read(path, MOST, &file, NULL), files[i].r);
        secret_file_deinit(&file);
        ck_assert(!gave_back_secret);
    }
    free(strdup(SECRET));
    ck_assert(gave_back_secret);
}
END_TEST

START_TEST(what_is_no_file_is_refused_and_not_waited_for)
{
    expect_refusal(folder, -EINVAL, ": not a regular file");
    expect_refusal("/dev/null", -EINVAL, ": not a regular file");
    expect_refusal("/dev/zero", -EINVAL, ": not a regular file");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_refusal(path, -EINVAL, ": not a regular file"); /* nobody writes into it */
    ck_assert_int_eq(unlink(path), 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(address.sun_path, path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    expect_refusal(path, -ENXIO, ": No such device or address");
    close(fd);
}
END_TEST

START_TEST(what_cannot_be_read_is_refused_with_the_reason)
{
    char beyond[RUNDIR_PATH_MAX + 80];
    expect_refusal(path, -ENOENT, ": No such file or directory");
    write_file("secret", 6, 0);
    snprintf(beyond, sizeof beyond, "%s/beyond", path);
    expect_refusal(beyond, -ENOTDIR, ": Not a directory");
    if (geteuid() != 0) /* who may read everything */
        expect_refusal(path, -EACCES, ": Permission denied");
    expect_refusal("/proc/self/mem", -EIO, ": Input/output error"); /* found out only when it is read */
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink(path, path), 0);
    expect_refusal(path, -ELOOP, ": Too many levels of symbolic links");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_file_is_read_to_its_end);
    tcase_add_test(tests, a_file_is_read_whatever_size_it_says_to_have);
    tcase_add_test(tests, a_file_that_is_too_large_is_refused);
    tcase_add_test(tests, a_file_with_a_zero_byte_is_refused);
    tcase_add_test(tests, a_secret_is_its_owners_or_a_group_s_whose_it_is_not);
    tcase_add_test(tests, no_secret_stays_in_memory_that_is_free);
    tcase_add_test(tests, what_is_no_file_is_refused_and_not_waited_for);
    tcase_add_test(tests, what_cannot_be_read_is_refused_with_the_reason);
}

int main(void)
{
    return run_tests("secret files", add);
}
