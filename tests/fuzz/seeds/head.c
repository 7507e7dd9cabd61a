/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_head: heads that are good, heads that end in two places, and what browsers say. */

#include "tests/fuzz/driver.h"

#define SEED(text) fuzz_add_seed(text, sizeof(text) - 1)
#define POST       "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"

void fuzz_seeds(void)
{
    SEED("GET / HTTP/1.1\r\nHost: localhost:8080\r\nAccept: */*\r\nX:\r\n\r\n");
    SEED("\r\nGET /health?a=%20 HTTP/1.0\r\n\r\n");
    SEED(POST "Content-Length: 5\r\nAuthorization: Bearer abc\r\n\r\n");
    SEED(POST "Transfer-Encoding: chunked\r\nOrigin: null\r\n\r\n");
    SEED(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n");
    SEED(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n");
    SEED(POST "Content-Length : 5\r\n\r\n");
    SEED(POST "Transfer-Encoding:\r\n chunked\r\n\r\n");
    SEED(POST "X: y\r\n z\r\n\tzz\r\nContent-Length: 5\r\n\r\n");
    SEED(POST "X: y\nContent-Length: 5\n\n");
    SEED(POST "X: y\0\nContent-Length: 5\r\n\r\n");
    SEED(POST "X: y\0z\r\n\0\r\nContent-Length: 5\r\n\r\n");
    SEED("GET  /x  HTTP/1.1 \r\nHost: a\rb\r\n\r\n");
    SEED("\0localhost:8080\nhttp://localhost:8080\nsame-origin\ncors\n");
    SEED("\0[::1]:8080\nhttps://[::1]:8080\n\n\n");
    SEED("\0127.0.0.1\n\ncross-site\nnavigate\nhttps://a.example");
    SEED("\0evil.example\nhttps://evil.example\ncross-site\nno-cors\n*");
    SEED("\0chat.localhost:443\nhttps://chat.localhost\nsame-site\ndocument\na,b:80,[::1]");
}
