/* SPDX-License-Identifier: MIT */
/* Chunks may end anywhere, in the middle of an event or of a number, so they are taken apart:
 *
 *     head ──blank line──▶ size ──line's end──▶ data ──all of it──▶ behind ──line's end──▶ size
 *                            └──0──▶ end ──line's end──▶ whole
 *
 * The usage stands in the last event of JSON, so the last kilobyte says all that is to be checked; of the
 * rest events are counted. */

#include "client/command/bench/http.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BEGIN "data: {"

enum { HEAD, SIZE, DATA, BEHIND, END };

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
    int len =
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
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
    int len = snprintf(request, sizeof request,
                       "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s",
                       body_len, body);
    http->bytes = http->events = http->left = 0;
    http->whole = false;
    http->place = HEAD;
    http->line = 0;
    http->tail_len = 0;
    http->tail[0] = 0;
    ssize_t sent = send(http->fd, request, (size_t)len, MSG_NOSIGNAL);
    return sent == len ? 0 : error_set(err, -EIO, "the gateway accepted no request: %s", strerror(errno));
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

/* What a chunk holds. */
static void take(struct bench_http *http, const char *data, size_t len)
{
    http->events += events_between(http, data, len) + events_in(data, len);
    keep_tail(http, data, len);
}

/* A byte outside of what chunks hold. False: it is none that belongs there. */
static bool take_byte(struct bench_http *http, char byte)
{
    static const char blank_line[] = "\r\n\r\n";
    const char *digit = byte ? strchr("0123456789abcdef", byte | 0x20) : NULL;
    bool line_ends = byte == '\n';
    switch (http->place) {
    case HEAD:
        http->line = byte == blank_line[http->line] ? http->line + 1 : byte == '\r';
        if (http->line == sizeof blank_line - 1) {
            http->place = SIZE;
            http->line = 0;
        }
        return true;
    case SIZE:
        if (line_ends) {
            http->place = http->left > 0 ? DATA : END;
            http->line = 0;
        } else if (digit) {
            http->left = http->left * 16 + (uint64_t)(digit - "0123456789abcdef");
        }
        return line_ends || byte == '\r' || (digit && http->line++ < 8);
    case BEHIND:
        if (line_ends)
            http->place = SIZE;
        return line_ends || byte == '\r';
    default:
        http->whole |= line_ends;
        return line_ends || byte == '\r';
    }
}

static bool take_all(struct bench_http *http, const char *data, size_t len)
{
    bool good = true;
    for (size_t i = 0; i < len && good;) {
        if (http->place != DATA) {
            good = !http->whole && take_byte(http, data[i++]);
            continue;
        }
        size_t n = len - i < http->left ? len - i : (size_t)http->left;
        take(http, data + i, n);
        i += n;
        http->left -= n;
        if (http->left == 0)
            http->place = BEHIND;
    }
    return good;
}

int bench_http_read(struct bench_http *http, struct error *err)
{
    static char data[1 << 18];
    ssize_t n = recv(http->fd, data, sizeof data, 0);
    if (n < 0 && errno == EINTR)
        return 1;
    if (n <= 0)
        return error_set(err, -EPROTO, "a stream ended early: %s", n < 0 ? strerror(errno) : http->tail);
    if (http->bytes == 0 && (n < 12 || strncmp(data, "HTTP/1.1 200", 12) != 0))
        return error_set(err, -EPROTO, "the gateway refused a request: %.*s", n < 300 ? (int)n : 300, data);
    http->bytes += (uint64_t)n;
    if (!take_all(http, data, (size_t)n))
        return error_set(err, -EPROTO, "the gateway sent an invalid chunk");
    return !http->whole;
}

bool bench_http_had(const struct bench_http *http, unsigned tokens)
{
    char usage[64];
    snprintf(usage, sizeof usage, "\"completion_tokens\":%u,", tokens);
    return strstr(http->tail, usage) && strstr(http->tail, "data: [DONE]\n\n");
}
