/* SPDX-License-Identifier: MIT */
/* How many tokens a second a gateway streams: `sse PORT [STREAMS [TOKENS]]`.
 *
 * Opens so many connections to 127.0.0.1, asks on each for a completion of so many tokens as a stream, reads
 * all of them to their ends and prints a line. Each stream's usage must tell the tokens that were asked for,
 * and the first event is timed. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"

#define MOST_STREAMS 4096
#define WAIT_MS      60000

struct stream {
    uint64_t first_ns; /* of its first event */
    uint64_t bytes;
    char tail[1024]; /* the last of what came */
    size_t tail_len;
};

static struct stream streams[MOST_STREAMS];
static struct pollfd fds[MOST_STREAMS];

static _Noreturn void die(const char *why)
{
    fprintf(stderr, "sse: %s\n", why);
    exit(EXIT_FAILURE);
}

static int ask(uint16_t port, int i, int tokens)
{
    char body[256], request[512];
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    snprintf(body, sizeof body,
             "{\"prompt\": \"%d\", \"max_tokens\": %d, \"stream\": true, "
             "\"stream_options\": {\"include_usage\": true}}",
             i, tokens);
    int len = snprintf(
        request, sizeof request,
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
        strlen(body), body);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        write(fd, request, (size_t)len) != len)
        die("the gateway cannot be reached");
    return fd;
}

static void keep_tail(struct stream *stream, const char *data, size_t len)
{
    if (len > sizeof stream->tail - 1) {
        data += len - (sizeof stream->tail - 1);
        len = sizeof stream->tail - 1;
    }
    size_t keep = sizeof stream->tail - 1 - len;
    if (stream->tail_len > keep) {
        memmove(stream->tail, stream->tail + stream->tail_len - keep, keep);
        stream->tail_len = keep;
    }
    memcpy(stream->tail + stream->tail_len, data, len);
    stream->tail_len += len;
    stream->tail[stream->tail_len] = 0;
}

static void check_end(const struct stream *stream, int tokens)
{
    char usage[64];
    snprintf(usage, sizeof usage, "\"completion_tokens\":%d,", tokens);
    if (!strstr(stream->tail, usage) || !strstr(stream->tail, "data: [DONE]"))
        die(stream->tail);
}

/* False when it has ended. */
static bool read_some(struct stream *stream, int fd)
{
    static char data[1 << 16];
    ssize_t n = read(fd, data, sizeof data);
    if (n <= 0)
        return false;
    if (stream->first_ns == 0 && memmem(data, (size_t)n, "data: ", 6))
        stream->first_ns = clock_ns();
    stream->bytes += (uint64_t)n;
    keep_tail(stream, data, (size_t)n);
    return true;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int port = argc > 1 ? atoi(argv[1]) : 0, n = argc > 2 ? atoi(argv[2]) : 64,
        tokens = argc > 3 ? atoi(argv[3]) : 10000;
    static uint64_t firsts[MOST_STREAMS];
    uint64_t bytes = 0;
    if (port <= 0 || n <= 0 || n > MOST_STREAMS || tokens <= 0)
        die("usage: sse PORT [STREAMS [TOKENS]]");
    uint64_t start = clock_ns();
    for (int i = 0; i < n; i++)
        fds[i] = (struct pollfd){.fd = ask((uint16_t)port, i, tokens), .events = POLLIN};
    for (int open = n; open > 0;) {
        if (poll(fds, (nfds_t)n, WAIT_MS) <= 0)
            die("nothing comes");
        for (int i = 0; i < n; i++)
            if (fds[i].revents && !read_some(&streams[i], fds[i].fd)) {
                close(fds[i].fd);
                fds[i].fd = -1;
                check_end(&streams[i], tokens);
                firsts[i] = streams[i].first_ns - start;
                bytes += streams[i].bytes;
                open--;
            }
    }
    double seconds = (double)(clock_ns() - start) / 1e9, made = (double)n * tokens;
    qsort(firsts, (size_t)n, sizeof *firsts, compare);
    printf("%d streams of %d tokens: %.0f tokens/s, %.1f MB/s, %.0f bytes a token; first event after %.2f ms "
           "(median)\n",
           n, tokens, made / seconds, (double)bytes / seconds / 1e6, (double)bytes / made,
           (double)firsts[n / 2] / 1e6);
    return EXIT_SUCCESS;
}
