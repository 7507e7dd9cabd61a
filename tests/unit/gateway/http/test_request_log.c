/* SPDX-License-Identifier: MIT */
/* What a line of the request log says of a request that failed. */

#include "gateway/http/request_log.h"
#include "tests/unit/run.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The line of a request with this record, parsed. */
static json_t *line_of(const struct request_record *record)
{
    char path[] = "/tmp/quern-log-XXXXXX", text[2048];
    struct request_log log = {0};
    struct error err = {0};
    close(mkstemp(path));
    ck_assert_int_eq(request_log_open(&log, path, &err), 0);
    const struct request_line line = {.method = "POST",
                                      .path = "/v1/completions",
                                      .peer = "127.0.0.1 port 1",
                                      .traceparent = "",
                                      .status = 400,
                                      .record = record};
    request_log_write(&log, &line);
    request_log_close(&log);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(text, sizeof text, file));
    ck_assert_int_eq(fgetc(file), EOF); /* one line */
    fclose(file);
    unlink(path);
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

static const char *text_of(const json_t *line, const char *key)
{
    return json_string_value(json_object_get(line, key));
}

START_TEST(a_look_at_a_log_creates_nothing)
{
    char folder[] = "/tmp/quern-log-XXXXXX", path[sizeof folder + 320];
    const char *const wrong[][2] = {
        {"no/log", "No such file"}, {"log/", "Is a directory"}, {"", "Is a directory"}};
    struct request_log log = {0};
    struct error err = {0};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, wrong[i][0]);
        ck_assert_int_lt(request_log_check(path, &err), 0);
        ck_assert_msg(strstr(err.text, wrong[i][1]) && strstr(err.text, path), "%s", err.text);
    }
    snprintf(path, sizeof path, "%s/%0300d", folder, 0);
    ck_assert_int_lt(request_log_check(path, &err), 0);
    ck_assert_int_lt(request_log_check("", &err), 0);
    snprintf(path, sizeof path, "%s/link", folder);
    ck_assert_int_eq(symlink("/no/where/log", path), 0); /* opening it would create nothing either */
    ck_assert_int_lt(request_log_check(path, &err), 0);
    unlink(path);
    snprintf(path, sizeof path, "%s/log", folder);
    ck_assert_int_eq(request_log_check(path, &err), 0);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(request_log_open(&log, path, &err), 0);
    ck_assert_int_eq(request_log_check(path, &err), 0);
    ck_assert_int_eq(request_log_check("log-beside", &err), 0); /* in the folder that it runs in */
    request_log_close(&log);
    unlink(path);
    rmdir(folder);
}
END_TEST

START_TEST(a_failure_is_told_with_code_param_and_message)
{
    struct request_record record = {0};
    request_record_error(&record, "unsupported_parameter", "echo", "echo: only false is supported");
    json_t *line = line_of(&record);
    ck_assert_str_eq(text_of(line, "code"), "unsupported_parameter");
    ck_assert_str_eq(text_of(line, "param"), "echo");
    ck_assert_str_eq(text_of(line, "message"), "echo: only false is supported");
    json_decref(line);
    record = (struct request_record){0};
    request_record_error(&record, NULL, "", "the body is empty");
    line = line_of(&record);
    ck_assert(json_is_null(json_object_get(line, "code")) && json_is_null(json_object_get(line, "param")));
    json_decref(line);
}
END_TEST

START_TEST(a_success_says_nothing_of_it)
{
    json_t *line = line_of(&(struct request_record){0});
    ck_assert_ptr_null(json_object_get(line, "code"));
    ck_assert_ptr_null(json_object_get(line, "message"));
    json_decref(line);
}
END_TEST

START_TEST(a_message_is_bounded_one_line_and_without_the_clients_text)
{
    struct request_record record = {0};
    char longest[600];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    request_record_error(&record, NULL, longest, longest);
    json_t *line = line_of(&record);
    ck_assert_uint_lt(strlen(text_of(line, "message")), sizeof record.message);
    ck_assert_uint_lt(strlen(text_of(line, "param")), sizeof record.param);
    json_decref(line);
    request_record_error(&record, NULL, "a\nb\"", "two\nlines \x1b[1m \"quoted\"");
    json_decref(line_of(&record));
    request_record_error(&record, NULL, "",
                         "the body is not JSON: line 1, column 9: string expected near 'my secret'");
    line = line_of(&record);
    ck_assert_str_eq(text_of(line, "message"), "the body is not JSON: line 1, column 9: string expected");
    json_decref(line);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_look_at_a_log_creates_nothing);
    tcase_add_test(tests, a_failure_is_told_with_code_param_and_message);
    tcase_add_test(tests, a_success_says_nothing_of_it);
    tcase_add_test(tests, a_message_is_bounded_one_line_and_without_the_clients_text);
}

int main(void)
{
    return run_tests("gateway request log", add);
}
