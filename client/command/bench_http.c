/* SPDX-License-Identifier: MIT */
/* An answer is whole when its last chunk, the empty one, has come behind "[DONE]". The usage stands in the
 * event before, so the last kilobyte says all that is to be checked; of the rest events are counted. */

#include "client/command/bench_http.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BEGIN "data: {"

static int connect_to(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

int bench_http_status(const struct sockaddr_in *address, const char *path)
{
    char text[512];
    int fd = connect_to(address), status = 0;
    if (fd < 0)
        return 0;
    int len = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    ssize_t n = send(fd, text, (size_t)len, MSG_NOSIGNAL) == len ? recv(fd, text, sizeof text - 1, 0) : 0;
    text[n > 0 ? n : 0] = 0;
    close(fd);
    return sscanf(text, "HTTP/1.%*d %d", &status) == 1 ? status : 0;
}

int bench_http_open(struct bench_http *http, const struct sockaddr_in *address, struct error *err)
{
    int fd = connect_to(address);
    *http = (struct bench_http){.fd = fd < 0 ? -1 : fd};
    return fd < 0 ? error_set(err, fd, "the gateway cannot be reached: %s", strerror(-fd)) : 0;
}

void bench_http_close(struct bench_http *http)
{
    if (http->fd >= 0)
        close(http->fd);
    http->fd = -1;
}

int bench_http_ask(struct bench_http *http, unsigned number, unsigned tokens, struct error *err)
{
    char body[256], request[512];
    int body_len = snprintf(body, sizeof body,
                            "{\"prompt\": [3, 4, 5, %u], \"max_tokens\": %u, \"seed\": %u, \"stream\": true, "
                            "\"stream_options\": {\"include_usage\": true}}",
                            6 + number % 64, tokens, number);
    int len =
        snprintf(request, sizeof request,
                 "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", body_len, body);
    http->bytes = http->events = 0;
    http->whole = false;
    http->tail_len = 0;
    http->tail[0] = 0;
    ssize_t sent = send(http->fd, request, (size_t)len, MSG_NOSIGNAL);
    return sent == len ? 0 : error_set(err, -EIO, "the gateway took no request: %s", strerror(errno));
}

static void keep_tail(struct bench_http *http, const char *data, size_t len)
{
    const size_t room = sizeof http->tail - 1;
    if (len > room) {
        data += len - room;
        len = room;
    }
    size_t keep = room - len;
    if (http->tail_len > keep) {
        memmove(http->tail, http->tail + http->tail_len - keep, keep);
        http->tail_len = keep;
    }
    memcpy(http->tail + http->tail_len, data, len);
    http->tail_len += len;
    http->tail[http->tail_len] = 0;
}

static uint64_t events_in(const char *data, size_t len)
{
    uint64_t n = 0;
    for (const char *at = data, *end = data + len;
         (at = memmem(at, (size_t)(end - at), BEGIN, sizeof BEGIN - 1)) != NULL; at += sizeof BEGIN - 1)
        n++;
    return n;
}

/* An event whose beginning came in two pieces. */
static uint64_t events_between(const struct bench_http *http, const char *data, size_t len)
{
    char both[2 * (sizeof BEGIN - 2)];
    size_t before = http->tail_len < sizeof BEGIN - 2 ? http->tail_len : sizeof BEGIN - 2;
    size_t behind = len < sizeof BEGIN - 2 ? len : sizeof BEGIN - 2;
    memcpy(both, http->tail + http->tail_len - before, before);
    memcpy(both + before, data, behind);
    return events_in(both, before + behind);
}

int bench_http_read(struct bench_http *http, struct error *err)
{
    static const char end[] = "data: [DONE]\n\n\r\n0\r\n\r\n";
    static char data[1 << 18];
    ssize_t n = recv(http->fd, data, sizeof data, 0);
    if (n < 0 && errno == EINTR)
        return 1;
    if (n <= 0)
        return error_set(err, -EPROTO, "a stream ended early: %s%.200s", n < 0 ? strerror(errno) : "",
                         http->tail + (http->tail_len > 200 ? http->tail_len - 200 : 0));
    if (http->bytes == 0 && (n < 12 || strncmp(data, "HTTP/1.1 200", 12) != 0))
        return error_set(err, -EPROTO, "the gateway refused a request: %.*s", n < 300 ? (int)n : 300, data);
    http->bytes += (uint64_t)n;
    http->events += events_between(http, data, (size_t)n) + events_in(data, (size_t)n);
    keep_tail(http, data, (size_t)n);
    size_t len = sizeof end - 1;
    http->whole = http->tail_len >= len && memcmp(http->tail + http->tail_len - len, end, len) == 0;
    return !http->whole;
}

bool bench_http_had(const struct bench_http *http, unsigned tokens)
{
    char usage[64];
    snprintf(usage, sizeof usage, "\"completion_tokens\":%u,", tokens);
    return strstr(http->tail, usage) != NULL;
}
