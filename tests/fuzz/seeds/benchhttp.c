/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_benchhttp: an answer in chunks of several sizes, in pieces of several; one whose tail is
 * longer than what is kept of it; those that are refused. */

#include "tests/fuzz/driver.h"

#include <stdio.h>
#include <string.h>

static const char body[] = "data: {\"text\":\"a\"}\n\ndata: {\"text\":\"b\"}\n\n"
                           "data: {\"usage\":{\"completion_tokens\":2,\"x\":1}}\n\ndata: [DONE]\n\n";

static void add_answer(char piece, size_t chunk, unsigned times)
{
    char answer[8192];
    size_t n = (size_t)snprintf(answer, sizeof answer,
                                "%cHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", piece);
    for (unsigned i = 0; i < times; i++)
        for (size_t at = 0; at < sizeof body - 1; at += chunk) {
            const size_t left = sizeof body - 1 - at, len = left < chunk ? left : chunk;
            n += (size_t)snprintf(answer + n, sizeof answer - n, "%zX\r\n%.*s\r\n", len, (int)len, body + at);
        }
    n += (size_t)snprintf(answer + n, sizeof answer - n, "0\r\n\r\n");
    fuzz_add_seed(answer, n);
}

void fuzz_seeds(void)
{
    static const char *const refused[] = {
        " HTTP/1.1 503 Service Unavailable\r\n\r\n",  " HTTP/1.1 200 OK\r\n\r\nz\r\n",
        " HTTP/1.1 200 OK\r\n\r\n123456789\r\n",      " HTTP/1.1 200 OK\r\n\r\n1\r\nab\r\n",
        " HTTP/1.1 200 OK\r\n\r\n0\r\n\r\nx",         " HTTP/1.1 200 OK\r\n\r\nffffffff\r\ndata: {",
        " HTTP/1.1 200 OK\r\n\r\r\n\r\n2\r\n\r\n\r\n"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        fuzz_add_seed(refused[i], strlen(refused[i]));
    add_answer(12, 1000, 1);
    add_answer(13, 1, 1);
    add_answer(40, 7, 1);
    add_answer(100, 16, 3);
    add_answer(127, 64, 20);
}
