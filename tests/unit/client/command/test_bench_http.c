/* SPDX-License-Identifier: MIT */
/* An answer in chunks, cut wherever chunks and reads may be cut: what is counted and checked is the same. */

#include "client/command/bench/http.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char head[] = "HTTP/1.1 200 OK\r\nDate: Sun\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char body[] = "data: {\"text\":\"a\"}\n\ndata: {\"text\":\"b\"}\n\n"
                           "data: {\"usage\":{\"completion_tokens\":26,\"x\":1}}\n\ndata: [DONE]\n\n";

/* The answer with chunks of so many bytes; its length. */
static size_t make_answer(char *ret_answer, size_t size, size_t chunk)
{
    size_t n = (size_t)snprintf(ret_answer, size, "%s", head);
    for (size_t at = 0; at < sizeof body - 1; at += chunk) {
        size_t left = sizeof body - 1 - at, len = left < chunk ? left : chunk;
        n += (size_t)snprintf(ret_answer + n, size - n, "%zX\r\n%.*s\r\n", len, (int)len, body + at);
    }
    return n + (size_t)snprintf(ret_answer + n, size - n, "0\r\n\r\n");
}

/* Reads `answer` in pieces that end at `cut` and at its end; the last result. */
static int read_cut(struct bench_http *http, const char *answer, size_t len, size_t cut)
{
    struct error err = {0};
    char request[512];
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    *http = (struct bench_http){.fd = ends[0]};
    ck_assert_int_eq(bench_http_ask(http, 1, 26, &err), 0);
    ck_assert_int_gt(read(ends[1], request, sizeof request), 0);
    ck_assert_int_eq(write(ends[1], answer, cut), (ssize_t)cut);
    int r = bench_http_read(http, &err);
    if (cut < len && r == 1) {
        ck_assert(!http->whole);
        ck_assert_int_eq(write(ends[1], answer + cut, len - cut), (ssize_t)(len - cut));
        r = bench_http_read(http, &err);
    }
    close(ends[1]);
    return r;
}

START_TEST(an_answer_is_the_same_wherever_it_is_cut)
{
    static const size_t chunks[] = {1, 2, 3, 7, 15, 16, 40, 1000};
    char answer[4096];
    for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
        size_t len = make_answer(answer, sizeof answer, chunks[c]);
        for (size_t cut = 12; cut <= len; cut++) {
            struct bench_http http;
            ck_assert_int_eq(read_cut(&http, answer, len, cut), 0);
            ck_assert_uint_eq(http.events, 3);
            ck_assert_uint_eq(http.bytes, len);
            ck_assert(http.whole && bench_http_had(&http, 26) && !bench_http_had(&http, 2));
            bench_http_close(&http);
        }
    }
}
END_TEST

START_TEST(what_is_no_answer_is_refused)
{
    static const char *const wrong[] = {
        "HTTP/1.1 503 Service Unavailable\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nz\r\n",
        "HTTP/1.1 200 OK\r\n\r\n123456789\r\n", "HTTP/1.1 200 OK\r\n\r\n1\r\nab\r\n",
        "HTTP/1.1 200 OK\r\n\r\n0\r\n\r\nx"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bench_http http;
        ck_assert_msg(read_cut(&http, wrong[i], strlen(wrong[i]), strlen(wrong[i])) < 0, "%s", wrong[i]);
        bench_http_close(&http);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, an_answer_is_the_same_wherever_it_is_cut);
    tcase_add_test(tests, what_is_no_answer_is_refused);
}

int main(void)
{
    return run_tests("bench_http", add);
}
