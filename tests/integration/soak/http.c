/* SPDX-License-Identifier: MIT */
/* What an exchange comes to is one of a few verdicts; what each means for the promise is said in one place,
 * be_judged. Only as much of HTTP is read as the gateway writes: a length, or chunks. */

#include "tests/integration/soak/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/integration/soak/promise.h"

#define PATIENCE_S   120
#define MOST_BYTES   (1u << 20) /* of an answer with its head */
#define TURNED_MS    100
#define MOVED_OUT    "2 workers running this request had died before"
#define SHORT_NAP_MS 20

enum verdict {
    WHOLE,
    ENDS,        /* whole, and the connection ends with it */
    STALE,       /* a kept connection ended before anything came */
    REFUSED,     /* no connection */
    CUT,         /* it ended in the middle */
    TURNED_AWAY, /* 503 */
    MOVED,       /* the error that is promised */
    WRONG        /* `why` says what */
};

struct exchange {
    int fd; /* -1: not connected */
    bool used;
    bool silent;      /* it did not end, and nothing came */
    char *data;       /* [MOST_BYTES + 1] */
    size_t len, head; /* bytes that came; of them the head */
    char text[SOAK_HTTP_TEXT];
    char why[256];
};

static void add(long *to)
{
    __atomic_add_fetch(to, 1, __ATOMIC_RELAXED);
}

static bool connect_to(struct exchange *exchange, uint16_t port)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    exchange->used = false;
    exchange->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(exchange->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return exchange->fd >= 0 && connect(exchange->fd, (struct sockaddr *)&address, sizeof address) == 0;
}

static void hang_up(struct exchange *exchange)
{
    if (exchange->fd >= 0)
        close(exchange->fd);
    exchange->fd = -1;
}

static bool send_request(const struct exchange *exchange, int kind, int tokens)
{
    char body[256], request[512];
    snprintf(body, sizeof body,
             "{\"prompt\": \"once upon a time\", \"seed\": %d, \"temperature\": %d, \"max_tokens\": %d, "
             "\"stream\": %s}",
             kind + 1, kind % 2, tokens, kind / 2 ? "true" : "false");
    int len = snprintf(request, sizeof request,
                       "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
                       strlen(body), body);
    return send(exchange->fd, request, (size_t)len, MSG_NOSIGNAL) == len;
}

/* False when nothing more comes. */
static bool read_some(struct exchange *exchange)
{
    ssize_t n = exchange->len < MOST_BYTES
                    ? recv(exchange->fd, exchange->data + exchange->len, MOST_BYTES - exchange->len, 0)
                    : 0;
    exchange->silent = n < 0 && errno == EAGAIN;
    if (exchange->silent)
        snprintf(exchange->why, sizeof exchange->why, "nothing came for %d s", PATIENCE_S);
    if (n <= 0)
        return false;
    exchange->len += (size_t)n;
    exchange->data[exchange->len] = 0;
    return true;
}

/* The value of a header, or NULL. */
static const char *header(const struct exchange *exchange, const char *name)
{
    const char *end = exchange->data + exchange->head;
    for (const char *line = exchange->data; line < end; line = strstr(line, "\r\n") + 2)
        if (strncasecmp(line, name, strlen(name)) == 0 && strncmp(line + strlen(name), ": ", 2) == 0)
            return line + strlen(name) + 2;
    return NULL;
}

/* Puts the chunks together in place. False: their end has not come. */
static bool join_chunks(char *body, size_t len, char **ret_end)
{
    const char *from = body, *end = body + len;
    char *to = body;
    for (;;) {
        char *line;
        size_t size = strtoul(from, &line, 16);
        if (line == from || end - line < 2 || (size_t)(end - line) < size + 4)
            return false;
        if (size == 0) {
            *ret_end = to;
            return true;
        }
        memmove(to, line + 2, size);
        to += size;
        from = line + 2 + size + 2;
    }
}

static bool ends_with(const struct exchange *exchange, const char *tail)
{
    size_t len = strlen(tail);
    return exchange->len >= len && memcmp(exchange->data + exchange->len - len, tail, len) == 0;
}

/* Reads a whole answer; *ret_body is zero-terminated. False when it ended before. */
static bool read_answer(struct exchange *exchange, char **ret_body)
{
    const char *blank, *length;
    exchange->len = exchange->head = 0;
    exchange->data[0] = 0;
    while (!(blank = strstr(exchange->data, "\r\n\r\n")))
        if (!read_some(exchange))
            return false;
    exchange->head = (size_t)(blank - exchange->data) + 2;
    char *body = exchange->data + exchange->head + 2, *end;
    if ((length = header(exchange, "Content-Length"))) {
        end = body + strtoul(length, NULL, 10);
        while (exchange->data + exchange->len < end)
            if (!read_some(exchange))
                return false;
    } else {
        while (!ends_with(exchange, "\r\n0\r\n\r\n"))
            if (!read_some(exchange))
                return false;
        if (!join_chunks(body, (size_t)(exchange->data + exchange->len - body), &end))
            return false;
    }
    *end = 0;
    *ret_body = body;
    return true;
}

/* Appends the text of an answer, or of one event. False when it has none. */
static bool take_text(struct exchange *exchange, const char *json, size_t len)
{
    const char *text = NULL;
    size_t text_len = 0, have = strlen(exchange->text);
    json_t *root = json_loadb(json, len, 0, NULL);
    bool ok = json_unpack(root, "{s:[{s:s%}]}", "choices", "text", &text, &text_len) == 0 &&
              have + text_len < sizeof exchange->text;
    if (ok) {
        memcpy(exchange->text + have, text, text_len);
        exchange->text[have + text_len] = 0;
    }
    json_decref(root);
    return ok;
}

static bool take_events(struct exchange *exchange, const char *body)
{
    const char *event = body, *end;
    while (strncmp(event, "data: {", 7) == 0 && (end = strstr(event, "\n\n"))) {
        if (!take_text(exchange, event + 6, (size_t)(end - event) - 6))
            return false;
        event = end + 2;
    }
    return strcmp(event, "data: [DONE]\n\n") == 0;
}

static enum verdict judge(struct exchange *exchange, const char *body)
{
    int status = atoi(exchange->data + strlen("HTTP/1.1 "));
    const char *connection = header(exchange, "Connection"), *type = header(exchange, "Content-Type");
    exchange->text[0] = 0;
    bool taken = status == 200 && (type && strncmp(type, "text/event-stream", 17) == 0
                                       ? take_events(exchange, body)
                                       : take_text(exchange, body, strlen(body)));
    bool ends = connection && strncasecmp(connection, "close", 5) == 0;
    if (taken)
        return ends ? ENDS : WHOLE;
    if (strstr(body, MOVED_OUT))
        return MOVED;
    snprintf(exchange->why, sizeof exchange->why, "status %d: %.200s", status, body);
    return status == 503 ? TURNED_AWAY : WRONG;
}

/* One request and its answer; the connection stays where it can. */
static enum verdict ask(struct exchange *exchange, const struct soak_http *http, int kind)
{
    char *body;
    snprintf(exchange->why, sizeof exchange->why, "the connection ended");
    if (exchange->fd < 0 && !connect_to(exchange, http->port)) {
        snprintf(exchange->why, sizeof exchange->why, "connect: %s", strerror(errno));
        hang_up(exchange);
        return REFUSED;
    }
    bool used = exchange->used;
    exchange->silent = false;
    exchange->len = 0;
    exchange->used = true;
    bool whole = send_request(exchange, kind, http->tokens) && read_answer(exchange, &body);
    enum verdict verdict = exchange->silent             ? WRONG
                           : whole                      ? judge(exchange, body)
                           : used && exchange->len == 0 ? STALE
                                                        : CUT;
    if (verdict != WHOLE)
        hang_up(exchange);
    return verdict;
}

static bool exchange_init(struct exchange *exchange)
{
    *exchange = (struct exchange){.fd = -1, .data = malloc(MOST_BYTES + 1)};
    return exchange->data != NULL;
}

void soak_http_learn(struct soak_http *http)
{
    struct exchange exchange;
    if (!exchange_init(&exchange))
        abort();
    for (int kind = 0; kind < SOAK_HTTP_KINDS; kind++) {
        if (ask(&exchange, http, kind) != WHOLE)
            promise_broken("HTTP request %d, undisturbed: %s", kind, exchange.why);
        memcpy(http->expected[kind], exchange.text, sizeof exchange.text);
    }
    hang_up(&exchange);
    free(exchange.data);
}

/* What a verdict means. `killed`: a gateway was, meanwhile. False when the promise was broken. */
static bool be_judged(struct soak_http *http, const struct exchange *exchange, int kind, enum verdict verdict,
                      bool killed)
{
    switch (verdict) {
    case WHOLE:
    case ENDS:
        if (strcmp(exchange->text, http->expected[kind]) == 0) {
            add(&http->answers);
            if (verdict == ENDS)
                add(&http->ends);
            return true;
        }
        promise_broken("HTTP request %d: another answer", kind);
        return false;
    case STALE: /* asked anew by every client */
        return true;
    case TURNED_AWAY:
        add(&http->turned_away);
        usleep(TURNED_MS * 1000);
        return true;
    case MOVED:
        add(&http->moved_out);
        return true;
    case CUT:
        add(&http->cut);
        if (killed)
            return true;
        break;
    case REFUSED:
    case WRONG:
        break;
    }
    promise_broken("HTTP request %d: %s", kind, exchange->why);
    return false;
}

void soak_http_be_client(struct soak_http *http, unsigned seed)
{
    struct exchange exchange;
    bool well = exchange_init(&exchange);
    while (well && !__atomic_load_n(&http->ending, __ATOMIC_RELAXED)) {
        int kind = rand_r(&seed) % SOAK_HTTP_KINDS;
        unsigned before = __atomic_load_n(&http->deaths, __ATOMIC_SEQ_CST);
        enum verdict verdict = ask(&exchange, http, kind);
        unsigned after = __atomic_load_n(&http->deaths, __ATOMIC_SEQ_CST);
        well = be_judged(http, &exchange, kind, verdict, before != after || before % 2 == 1);
        if (rand_r(&seed) % 2)
            hang_up(&exchange);
        if (rand_r(&seed) % 4 == 0)
            usleep((useconds_t)(rand_r(&seed) % (SHORT_NAP_MS * 1000)));
    }
    hang_up(&exchange);
    free(exchange.data);
}
