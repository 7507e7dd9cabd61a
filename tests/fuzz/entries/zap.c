/* SPDX-License-Identifier: MIT */
/* Any questions about who may connect, as libzmq would put them: whoever is let in has a key that is known
 * and asks in the one form there is, each whole question has one answer of the form of RFC 27 with the number
 * that it had, and no other question has any.
 *
 * An input is questions: a byte that says how many parts one has (modulo 13), then for each a byte that says
 * how long it is, and its bytes. */

#include "tests/fuzz/driver.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#include "broker/links/zap.h"
#include "common/clock.h"

enum { MOST_PARTS = 13, WHOLE = 8, MOST_BYTES = 255 };
enum { DELIMITER, VERSION, NUMBER, DOMAIN, ADDRESS, ROUTING_ID, MECHANISM, KEY };

struct part {
    const uint8_t *data;
    size_t len;
};

struct question {
    struct part parts[MOST_PARTS];
    unsigned n;
};

static void *asker;
static struct zap zap;
static struct client_keys keys;
static struct client_key known[] = {{.bytes = "0123456789abcdef0123456789abcdef", .number = 1},
                                    {.bytes = "0123456789abcdef0123456789abcdeF", .number = UINT32_MAX}};

static void begin(void)
{
    const int none = 0, some_ms = 10000;
    void *context = zmq_ctx_new();
    asker = zmq_socket(context, ZMQ_DEALER);
    keys.folder = "keys";
    for (int i = 0; i < 2; i++) {
        HASH_ADD(by_bytes, keys.by_bytes, bytes, CLIENT_KEY_BYTES, &known[i]);
        HASH_ADD(by_number, keys.by_number, number, sizeof known[i].number, &known[i]);
    }
    if (zap_init(&zap, context, &keys, NULL) < 0 ||
        zmq_setsockopt(asker, ZMQ_LINGER, &none, sizeof none) < 0 ||
        zmq_setsockopt(asker, ZMQ_RCVTIMEO, &some_ms, sizeof some_ms) < 0 ||
        zmq_connect(asker, "inproc://zeromq.zap.01") < 0)
        abort();
}

static bool is(const struct part *part, const char *text)
{
    return part->len == strlen(text) && memcmp(part->data, text, part->len) == 0;
}

/* The number of who has to be let in; 0: nobody. */
static uint32_t due(const struct question *question)
{
    const struct part *parts = question->parts;
    if (!is(&parts[VERSION], "1.0") || !is(&parts[DOMAIN], "quern") || !is(&parts[MECHANISM], "CURVE"))
        return 0;
    for (int i = 0; i < 2; i++)
        if (parts[KEY].len == CLIENT_KEY_BYTES &&
            memcmp(parts[KEY].data, known[i].bytes, CLIENT_KEY_BYTES) == 0)
            return known[i].number;
    return 0;
}

/* The next part of an answer is this, and more follow or not. */
static void expect(const void *data, size_t len, bool more)
{
    uint8_t part[MOST_BYTES + 1];
    int n = zmq_recv(asker, part, sizeof part, 0), follows = 0;
    size_t size = sizeof follows;
    zmq_getsockopt(asker, ZMQ_RCVMORE, &follows, &size);
    if (n < 0 || (size_t)n != len || (len > 0 && memcmp(part, data, len) != 0) || (follows != 0) != more)
        abort();
}

static void expect_text(const char *text, bool more)
{
    expect(text, strlen(text), more);
}

static void expect_answer(const struct question *question)
{
    const uint32_t who = due(question);
    char number[16] = "";
    if (who > 0)
        snprintf(number, sizeof number, "%u", who);
    expect_text("", true);
    expect_text("1.0", true);
    expect(question->parts[NUMBER].data, question->parts[NUMBER].len, true);
    expect_text(who > 0 ? "200" : "400", true);
    expect_text(who > 0 ? "OK" : "no such client", true);
    expect_text(number, true);
    expect_text("", false);
}

/* The next question of the input; what is behind it. */
static size_t read_question(const uint8_t *data, size_t len, struct question *ret_question)
{
    size_t at = 1;
    ret_question->n = data[0] % MOST_PARTS;
    for (unsigned i = 0; i < ret_question->n; i++) {
        size_t n = at < len ? data[at++] : 0;
        n = n < len - at ? n : len - at;
        ret_question->parts[i] = (struct part){data + at, n};
        at += n;
    }
    return at;
}

/* One at a time: libzmq asks on for others, but answers come in the order of questions. */
static void ask(const struct question *question, uint64_t now)
{
    const uint64_t refused = zap.refused;
    for (unsigned i = 0; i < question->n; i++)
        if (zmq_send(asker, question->parts[i].data, question->parts[i].len,
                     i + 1 < question->n ? ZMQ_SNDMORE : 0) < 0)
            abort();
    if (zap_answer(&zap))
        abort();
    const bool whole = question->n == WHOLE;
    if (whole)
        expect_answer(question);
    if (zap.refused != refused + (whole && due(question) == 0))
        abort();
    if (zmq_recv(asker, NULL, 0, ZMQ_DONTWAIT) >= 0)
        abort();
    zap_report(&zap, now);
    if (!memchr(zap.from, 0, sizeof zap.from))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (!asker)
        begin();
    zap.refused = zap.said = zap.said_ns = 0;
    zap.from[0] = 0;
    uint64_t now = CLOCK_NS_PER_S;
    for (size_t at = 0; at < len; now += CLOCK_NS_PER_S / 3) {
        struct question question;
        at += read_question(data + at, len - at, &question);
        if (question.n > 0)
            ask(&question, now);
    }
    return 0;
}
