/* SPDX-License-Identifier: MIT */
/* A client that waits notes how long it has waited when it is told that all is over, so that a wait without
 * end is seen, too. A stream is checked as far as it came: its text begins as the expected one, and is equal
 * to it when the stream ended by itself. */

#include "tests/integration/hostile/talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <jansson.h>
#include "common/clock.h"

enum {
    ANSWER_BYTES = 1 << 20,
    ASKED_TOKENS = 5,
    NAP_MS = 20,
    MOST_RETRY_MS = 1000, /* whatever Retry-After says */
    TAIL_BYTES = 200
};

enum talk_end { TALK_WHOLE, TALK_BUSY, TALK_OVER, TALK_FAILED };

struct talk {
    struct good *good;
    const struct good_target *target;
    int fd;
    char *data; /* [ANSWER_BYTES + 1], the answer so far, zero-terminated */
    size_t len;
    uint64_t asked_ns; /* first, however often it was told to wait since */
    uint64_t chunk_ns; /* when the last chunk came; 0: none yet */
};

/* Connects, however long that takes. */
static enum talk_end open_connection(struct talk *talk)
{
    const struct timeval look = {.tv_usec = GOOD_LOOK_MS * 1000};
    const uint64_t until = clock_ns() + GOOD_PATIENCE_S * CLOCK_NS_PER_S;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)talk->target->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int code = 0;
    socklen_t size = sizeof code;
    talk->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(talk->fd, (struct sockaddr *)&address, sizeof address) < 0)
        code = errno;
    struct pollfd item = {.fd = talk->fd, .events = POLLOUT};
    while (code == EINPROGRESS && clock_ns() < until) {
        if (good_is_over(talk->good))
            return TALK_OVER;
        if (poll(&item, 1, GOOD_LOOK_MS) > 0)
            getsockopt(talk->fd, SOL_SOCKET, SO_ERROR, &code, &size);
    }
    if (code == 0 && (fcntl(talk->fd, F_SETFL, 0) < 0 ||
                      setsockopt(talk->fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look) < 0))
        code = errno;
    if (code == 0)
        return TALK_WHOLE;
    good_fail(talk->good, "connect: %s", strerror(code));
    return TALK_FAILED;
}

static enum talk_end send_request(struct talk *talk, int tokens, bool stream)
{
    char body[256], request[1024];
    snprintf(body, sizeof body, "{\"prompt\":\"%s\",\"seed\":%d,\"max_tokens\":%d,\"stream\":%s}",
             GOOD_PROMPT, GOOD_SEED, tokens, stream ? "true" : "false");
    int len = snprintf(request, sizeof request,
                       "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
                       "Connection: close\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                       talk->target->key, strlen(body), body);
    enum talk_end end = open_connection(talk);
    if (end != TALK_WHOLE || send(talk->fd, request, (size_t)len, MSG_NOSIGNAL) == len)
        return end;
    good_fail(talk->good, "send: %s", strerror(errno));
    return TALK_FAILED;
}

/* After bytes of a stream have come. */
static void note_chunk(struct talk *talk, size_t from)
{
    if (!strstr(talk->data + from, "data: "))
        return;
    if (talk->chunk_ns == 0)
        good_note(talk->good, talk->good->waits, talk->asked_ns);
    else
        good_note(talk->good, talk->good->gaps, talk->chunk_ns);
    talk->chunk_ns = clock_ns();
}

/* Reads to the end of the connection. */
static enum talk_end read_answer(struct talk *talk, bool stream)
{
    uint64_t heard_ns = clock_ns();
    for (;;) {
        ssize_t n = recv(talk->fd, talk->data + talk->len, ANSWER_BYTES - talk->len, 0);
        if (good_is_over(talk->good))
            return TALK_OVER;
        if (n == 0)
            return TALK_WHOLE;
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            good_fail(talk->good, "after %zu bytes of an answer: %s", talk->len, strerror(errno));
            return TALK_FAILED;
        }
        if (n < 0 && clock_ns() - heard_ns < GOOD_PATIENCE_S * CLOCK_NS_PER_S)
            continue;
        if (n < 0) {
            good_fail(talk->good, "nothing came for %d s", GOOD_PATIENCE_S);
            return TALK_FAILED;
        }
        heard_ns = clock_ns();
        talk->len += (size_t)n;
        talk->data[talk->len] = 0;
        if (stream)
            note_chunk(talk, talk->len - (size_t)n);
    }
}

/* Appends the text of a JSON object to `text`. False when it has none. */
static bool take_text(char *text, const char *json, size_t len)
{
    const char *piece = NULL;
    size_t have = strlen(text);
    json_t *root = json_loadb(json, len, 0, NULL);
    bool ok =
        json_unpack(root, "{s:[{s:s}]}", "choices", "text", &piece) == 0 && have + strlen(piece) < GOOD_TEXT;
    if (ok)
        strcpy(text + have, piece);
    json_decref(root);
    return ok;
}

/* Puts the chunks of a body together in place, as far as they came. */
static void join_chunks(char *body, const char *end)
{
    char *to = body, *line;
    for (const char *from = body; from < end;) {
        size_t size = strtoul(from, &line, 16);
        if (line == from || size == 0 || end - line < 2)
            break;
        from = line + 2;
        size = size < (size_t)(end - from) ? size : (size_t)(end - from);
        memmove(to, from, size);
        to += size;
        from += size + 2;
    }
    *to = 0;
}

/* The text of a stream as far as it came. *ret_done: its last event is there. */
static bool take_events(char *answer, size_t len, char *ret_text, bool *ret_done)
{
    char *body = strstr(answer, "\r\n\r\n"), *event = body, *end;
    ret_text[0] = 0;
    *ret_done = false;
    if (!body)
        return true;
    join_chunks(body + 4, answer + len);
    while ((event = strstr(event, "data: ")) && (end = strstr(event, "\n\n"))) {
        event += strlen("data: ");
        *ret_done = strncmp(event, "[DONE]", 6) == 0;
        if (!*ret_done && !take_text(ret_text, event, (size_t)(end - event)))
            return false;
        event = end;
    }
    return true;
}

/* Of a whole answer: its text, that of so many tokens. */
static bool take_whole(const char *answer, char *ret_text)
{
    const char *body = strstr(answer, "\r\n\r\n");
    ret_text[0] = 0;
    return body && take_text(ret_text, body + 4, strlen(body + 4));
}

/* Of what came last, for a failure's message. */
static const char *tail_of(const struct talk *talk)
{
    return talk->data + (talk->len > TAIL_BYTES ? talk->len - TAIL_BYTES : 0);
}

/* False when what came is not what should have come. */
static bool check(struct talk *talk, bool stream, bool whole)
{
    char text[GOOD_TEXT];
    const char *expected = talk->target->expected;
    bool done = true,
         ok = stream ? take_events(talk->data, talk->len, text, &done) : take_whole(talk->data, text);
    size_t len = strlen(text);
    ok = ok && strncmp(expected, text, len) == 0 && (!whole || done);
    ok = ok && (!whole || (stream ? len == strlen(expected) : len > 0));
    if (!ok)
        good_fail(talk->good, "a wrong or cut %s: %zu bytes of text, the answer ends with %s",
                  stream ? "stream" : "answer", len, tail_of(talk));
    return ok;
}

static enum talk_end judge(struct talk *talk, enum talk_end end, bool stream)
{
    const int status = talk->len > 12 ? atoi(talk->data + strlen("HTTP/1.1 ")) : 0;
    if (end == TALK_FAILED)
        return end;
    if (status == 429 || status == 503)
        return TALK_BUSY;
    if (status != 200 && end == TALK_OVER)
        return end; /* it had not come yet */
    if (status != 200) {
        good_fail(talk->good, status ? "status %d: %s" : "the connection ended without an answer", status,
                  tail_of(talk));
        return TALK_FAILED;
    }
    if (end == TALK_OVER && !stream)
        return end;
    return check(talk, stream, end == TALK_WHOLE) ? end : TALK_FAILED;
}

/* Before the attack it is the gateway that begins: it is asked again soon. */
static void wait_as_told(struct talk *talk)
{
    const int phase = __atomic_load_n(&talk->good->phase, __ATOMIC_RELAXED);
    const char *said = strcasestr(talk->data, "\r\nRetry-After: ");
    long ms = said && phase == GOOD_ATTACKED ? atol(said + 15) * 1000 : NAP_MS;
    uint64_t until = clock_ns() + (uint64_t)(ms < MOST_RETRY_MS ? ms : MOST_RETRY_MS) * CLOCK_NS_PER_MS;
    good_count(&talk->good->told_to_wait[phase]);
    while (clock_ns() < until && !good_is_over(talk->good))
        usleep(NAP_MS * 1000);
}

/* One request until it is answered. */
static enum talk_end talk_once(struct talk *talk, int tokens, bool stream)
{
    enum talk_end end;
    talk->asked_ns = clock_ns();
    talk->chunk_ns = 0;
    do {
        talk->len = 0;
        talk->data[0] = 0;
        end = send_request(talk, tokens, stream);
        if (end == TALK_WHOLE)
            end = judge(talk, read_answer(talk, stream), stream);
        close(talk->fd);
        if (end == TALK_BUSY)
            wait_as_told(talk);
    } while (end == TALK_BUSY && !good_is_over(talk->good));
    if (talk->chunk_ns == 0)
        good_note(talk->good, talk->good->waits, talk->asked_ns);
    else if (end != TALK_WHOLE)
        good_note(talk->good, talk->good->gaps, talk->chunk_ns);
    return end;
}

void talk_be_client(struct good *good, const struct good_target *target, bool stream)
{
    struct talk talk = {.good = good, .target = target, .data = malloc(ANSWER_BYTES + 1)};
    enum talk_end end = TALK_WHOLE;
    if (!talk.data)
        abort();
    while (!good_is_over(good) && end != TALK_FAILED) {
        end = talk_once(&talk, stream ? GOOD_TOKENS : ASKED_TOKENS, stream);
        if (end == TALK_WHOLE)
            good_count(stream ? &good->streams : &good->answers);
        usleep(stream ? 0 : NAP_MS * 1000);
    }
    free(talk.data);
}
