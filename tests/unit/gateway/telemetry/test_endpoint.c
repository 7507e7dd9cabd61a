/* SPDX-License-Identifier: MIT */
/* Where spans go, and with which headers. */

#include "gateway/telemetry/endpoint.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(a_path_gets_its_end)
{
    static const char *const cases[][2] = {
        {"http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"},
        {"http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"},
        {"https://collector.example/otlp/", "https://collector.example/otlp/v1/traces"},
        {"http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/traces"},
        {"http://h/v1/traces?key=a", "http://h/v1/traces?key=a"},
        {"http://h?key=a", "http://h/v1/traces?key=a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct endpoint endpoint = {0};
        struct error err = {0};
        ck_assert_msg(endpoint_read(cases[i][0], NULL, &endpoint, &err) == 0, "%s", err.text);
        ck_assert_str_eq(endpoint.url, cases[i][1]);
        endpoint_deinit(&endpoint);
    }
}
END_TEST

START_TEST(what_is_no_url_of_a_collector_is_rejected)
{
    static const char *const cases[][2] = {
        {"", "not a URL"},
        {"collector", "not a URL"},
        {"127.0.0.1:4318", "not a URL"},
        {"ftp://h/x", "ftp://h/x"},
        {"file:///etc/passwd", "not a URL"},
        {"http://", "not a URL"},
        {"http://h:99999", "not a URL"},
        {"http://name:secret@h", "credentials"},
        {"ftp://name:secret@h", "credentials"},
        {"http://h/#x", "must not contain #"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct endpoint endpoint = {0};
        struct error err = {0};
        ck_assert_msg(endpoint_read(cases[i][0], NULL, &endpoint, &err) < 0, "%s", cases[i][0]);
        ck_assert_msg(strstr(err.text, cases[i][1]), "%s", err.text);
        ck_assert_ptr_null(strstr(err.text, "secret"));
    }
    char long_path[4096] = "http://h/";
    memset(long_path + 9, 'x', sizeof long_path - 10);
    struct endpoint endpoint = {0};
    struct error err = {0};
    ck_assert_int_lt(endpoint_read(long_path, NULL, &endpoint, &err), 0);
}
END_TEST

/* What a file with this text and these permissions gives; the headers are joined by "|". */
static int read_file(const char *text, mode_t mode, char ret_headers[1024], struct error *err)
{
    char path[] = "/tmp/quern-headers-XXXXXX";
    struct endpoint endpoint = {0};
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
    int r = endpoint_read("http://h", path, &endpoint, err);
    unlink(path);
    ret_headers[0] = 0;
    size_t n = 0;
    for (const struct curl_slist *i = endpoint.headers; i; i = i->next)
        n += (size_t)snprintf(ret_headers + n, 1024 - n, "%s|", i->data);
    endpoint_deinit(&endpoint);
    return r;
}

START_TEST(headers_are_read_from_a_private_file)
{
    char headers[1024];
    struct error err = {0};
    int r = read_file("# a comment\n\n  api-key: 12 34 \r\nX-Scope-OrgID:\tteam", 0600, headers, &err);
    ck_assert_msg(r == 0, "%s", err.text);
    ck_assert_ptr_nonnull(strstr(headers, "|api-key: 12 34|X-Scope-OrgID:\tteam|"));
    ck_assert_ptr_nonnull(strstr(headers, "Content-Type: application/json|"));
    ck_assert_int_lt(read_file("api-key: 1\n", 0644, headers, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "quern-headers-"));
    ck_assert_int_eq(read_file("", 0600, headers, &err), 0);
}
END_TEST

START_TEST(a_wrong_header_is_named_by_its_line_and_not_quoted)
{
    static const char *const cases[] = {"api-key secret",
                                        ": secret",
                                        "a b: secret",
                                        "api-key:",
                                        "api-key: \x01secret",
                                        "Content-Type: secret",
                                        "content-length: 3",
                                        "Transfer-Encoding: secret",
                                        "api-key: s\xc3\xa9"
                                        "cret"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256], headers[1024];
        struct error err = {0};
        snprintf(text, sizeof text, "a: b\n%s\n", cases[i]);
        ck_assert_msg(read_file(text, 0600, headers, &err) < 0, "%s", cases[i]);
        ck_assert_msg(strstr(err.text, ":2: "), "%s", err.text);
        ck_assert_ptr_null(strstr(err.text, "secret"));
    }
    struct endpoint endpoint = {0};
    struct error err = {0};
    ck_assert_int_lt(endpoint_read("http://h", "/nowhere/headers", &endpoint, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "/nowhere/headers"));
}
END_TEST

static void add(TCase *tcase)
{
    tcase_add_test(tcase, a_path_gets_its_end);
    tcase_add_test(tcase, what_is_no_url_of_a_collector_is_rejected);
    tcase_add_test(tcase, headers_are_read_from_a_private_file);
    tcase_add_test(tcase, a_wrong_header_is_named_by_its_line_and_not_quoted);
}

int main(void)
{
    return run_tests("gateway/telemetry/endpoint", add);
}
