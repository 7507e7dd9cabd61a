/* SPDX-License-Identifier: MIT */
/* Any bytes as what a gateway answers to `quern bench gateway`: counted and held to its promises the same
 * whether it comes at once or in pieces, or refused with a reason on one line.
 *
 * An input is a byte that says how long a piece is, and the answer. */

#include "tests/fuzz/driver.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/command/bench/http.h"

enum { LEAST_PIECE = 12 /* the status stands in the first */, MOST_ANSWER = 32768 };

static int ends[2]; /* the client's, the gateway's */

static void check(const struct bench_http *http, size_t len)
{
    if (http->bytes > len || http->tail_len >= sizeof http->tail || http->tail[http->tail_len] != 0 ||
        http->events * (sizeof "data: {" - 1) > http->bytes)
        abort();
    if (bench_http_had(http, 2) && !strstr(http->tail, "data: [DONE]"))
        abort();
}

/* What bench_http_read says last: as soon as that is not 1, or all has come. */
static int read_answer(struct bench_http *http, const uint8_t *data, size_t len, size_t piece)
{
    char request[512];
    struct error err = {{0}};
    int r = 1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        abort();
    *http = (struct bench_http){.fd = ends[0]};
    if (bench_http_ask(http, 1, 2, &err) != 0 || recv(ends[1], request, sizeof request, 0) <= 0)
        abort();
    for (size_t at = 0; r == 1 && at < len; at += piece) {
        const size_t n = piece < len - at ? piece : len - at;
        if (send(ends[1], data + at, n, MSG_NOSIGNAL) != (ssize_t)n)
            abort();
        r = bench_http_read(http, &err);
    }
    if (r > 1 || (r == 0) != (r >= 0 && http->whole) || (r < 0) != (err.text[0] != 0) ||
        strchr(err.text, '\n'))
        abort();
    check(http, len);
    close(ends[1]);
    if (r == 1 && bench_http_read(http, &err) >= 0) /* it ended early */
        abort();
    bench_http_close(http);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct bench_http whole, pieces;
    if (len < 2 || len > MOST_ANSWER)
        return 0;
    const size_t piece = data[0] > LEAST_PIECE ? data[0] : LEAST_PIECE;
    int r = read_answer(&whole, data + 1, len - 1, len - 1);
    int in_pieces = read_answer(&pieces, data + 1, len - 1, piece);
    if (r < 0) { /* what comes behind the end of an answer is not read any more, if it comes later */
        if (in_pieces == 1)
            abort();
        return 0;
    }
    if (in_pieces != r || pieces.events != whole.events || pieces.bytes != whole.bytes ||
        strcmp(pieces.tail, whole.tail) != 0)
        abort();
    return 0;
}
