/* SPDX-License-Identifier: MIT */
/* The form of a configuration file: what is a setting, and that nothing else is passed over. */

#include "common/files/config_file.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char seen[4096]; /* "name=value;" of each setting */
static unsigned last_line;
static struct error err;

static int note(void *arg, unsigned line, const char *name, const char *value, struct error *reason)
{
    last_line = line;
    size_t len = strlen(seen);
    ck_assert_ptr_eq(arg, seen);
    snprintf(seen + len, sizeof seen - len, "%s=%s;", name, value);
    return strcmp(name, "bad") == 0 ? error_set(reason, -ERANGE, "of no use") : 0;
}

static int parse_bytes(const void *data, size_t len)
{
    seen[0] = err.text[0] = 0;
    return config_file_parse(data, len, "f.conf", note, seen, &err);
}

static int parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

#define ck_assert_read(input, settings)                                                                      \
    do {                                                                                                     \
        ck_assert_msg(parse(input) == 0, "%s", err.text);                                                    \
        ck_assert_str_eq(seen, settings);                                                                    \
    } while (0)

#define ck_assert_refused(input, reason)                                                                     \
    do {                                                                                                     \
        ck_assert_int_eq(parse(input), -EINVAL);                                                             \
        ck_assert_str_eq(err.text, reason);                                                                  \
    } while (0)

START_TEST(a_line_is_a_name_and_a_value)
{
    ck_assert_read("", "");
    ck_assert_read("a = 1", "a=1;");
    ck_assert_read("a=1\n\n \t\nb\t=  two words \t\r\na = 3\n", "a=1;b=two words;a=3;");
    ck_assert_uint_eq(last_line, 5);
    ck_assert_read("\xef\xbb\xbf"
                   "a = 1\r\n",
                   "a=1;");
    ck_assert_read("a = b = c\n", "a=b = c;");
    ck_assert_read("a =\n", "a=;");
    ck_assert_read("a = \"\"\n", "a=;");
    ck_assert_read("a = \xff\xfe\n", "a=\xff\xfe;");
}
END_TEST

START_TEST(what_is_indented_counts_too)
{
    ck_assert_read("a = 1\n    b = 2\n\tc = 3\n  # d = 4\n", "a=1;b=2;c=3;");
}
END_TEST

START_TEST(a_comment_is_not_read_and_one_in_quotes_is_none)
{
    ck_assert_read("# a = 1\na = 2 # b\nb = x#y\n", "a=2;b=x;");
    ck_assert_read("a = \"x#y\" # z\nb = '\"#'\nc = \"it's\"#\n", "a=x#y;b=\"#;c=it's;");
    ck_assert_read("a = \" x \"\n", "a= x ;");
    ck_assert_read("a = x\"y\n", "a=x\"y;");
}
END_TEST

START_TEST(what_is_no_setting_is_refused_with_its_line)
{
    ck_assert_refused("\n# x\nworkers 2\n", "f.conf:3: \"workers 2\" is not NAME = VALUE");
    ck_assert_refused("workers", "f.conf:1: \"workers\" is not NAME = VALUE");
    ck_assert_refused("= 2", "f.conf:1: \"= 2\" is not NAME = VALUE");
    ck_assert_refused("a # = 2", "f.conf:1: \"a # = 2\" is not NAME = VALUE");
    ck_assert_refused("a = \"x", "f.conf:1: unterminated quote");
    ck_assert_refused("a = 'x\nb = y'\n", "f.conf:1: unterminated quote");
    ck_assert_refused("a = \"x\" y\n", "f.conf:1: unexpected text after the quote: \"y\"");
    ck_assert_str_eq(seen, "");
}
END_TEST

START_TEST(a_zero_byte_hides_nothing)
{
    ck_assert_int_eq(parse_bytes("a = 1\0\nb = 2\n", 13), -EINVAL);
    ck_assert_str_eq(err.text, "f.conf: not a configuration file: contains a zero byte");
    ck_assert_str_eq(seen, "");
}
END_TEST

START_TEST(a_refusal_ends_the_reading_and_gets_its_place)
{
    ck_assert_int_eq(parse("a = 1\nbad = 2\nc = 3\n"), -ERANGE);
    ck_assert_str_eq(err.text, "f.conf:2: of no use");
    ck_assert_str_eq(seen, "a=1;bad=2;");
}
END_TEST

START_TEST(a_long_line_is_read_whole_and_an_endless_file_is_not)
{
    size_t len = CONFIG_FILE_MAX_BYTES + 1;
    char *text = malloc(len);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', len);
    memcpy(text, "a = ", 4);
    ck_assert_int_eq(parse_bytes(text, 3000), 0);
    ck_assert_uint_eq(strlen(seen), 3000 - 1); /* blanks go, and a semicolon comes */
    memset(text, '\n', len);
    ck_assert_int_eq(parse_bytes(text, len - 1), 0);
    ck_assert_int_eq(parse_bytes(text, len), -EINVAL);
    ck_assert_str_eq(err.text, "f.conf: not a configuration file: larger than 262144 bytes");
    free(text);
    ck_assert_int_eq(config_file_read("/dev/zero", note, seen, &err), -EINVAL);
    ck_assert_str_eq(err.text, "/dev/zero: not a configuration file: larger than 262144 bytes");
}
END_TEST

START_TEST(a_pipe_is_read_to_its_end)
{
    int ends[2];
    char path[32];
    seen[0] = 0;
    ck_assert_int_eq(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    ck_assert_int_eq(write(ends[1], "a = 1\nb =", 9), 9);
    ck_assert_int_eq(write(ends[1], " 2\n", 3), 3);
    close(ends[1]);
    ck_assert_int_eq(config_file_read(path, note, seen, &err), 0);
    ck_assert_str_eq(seen, "a=1;b=2;");
    close(ends[0]);
}
END_TEST

START_TEST(what_cannot_be_read_is_said)
{
    ck_assert_int_eq(config_file_read("/nowhere/f.conf", note, seen, &err), -ENOENT);
    ck_assert_str_eq(err.text, "/nowhere/f.conf: No such file or directory");
    ck_assert_int_eq(config_file_read("/", note, seen, &err), -EISDIR);
    ck_assert_str_eq(err.text, "/: Is a directory");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_line_is_a_name_and_a_value);
    tcase_add_test(tests, what_is_indented_counts_too);
    tcase_add_test(tests, a_comment_is_not_read_and_one_in_quotes_is_none);
    tcase_add_test(tests, what_is_no_setting_is_refused_with_its_line);
    tcase_add_test(tests, a_zero_byte_hides_nothing);
    tcase_add_test(tests, a_refusal_ends_the_reading_and_gets_its_place);
    tcase_add_test(tests, a_long_line_is_read_whole_and_an_endless_file_is_not);
    tcase_add_test(tests, a_pipe_is_read_to_its_end);
    tcase_add_test(tests, what_cannot_be_read_is_said);
}

int main(void)
{
    return run_tests("common/config_file", add);
}
