/* SPDX-License-Identifier: MIT */
/* The attacks. They speak the protocol by hand and read nothing that they need not, as nobody's library does;
 * only floods of requests come from libquern, because those are what honest programs send too much of. */

#include "tests/integration/hostile/hostile.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <quern.h>
#include "proto/message.h"
#include "tests/integration/support/zmtp.h"

enum { MANY = 400, NAP_US = 2000, VERDICT_MS = 1000 };

void score_attempt(struct score *score, bool refused)
{
    __atomic_add_fetch(&score->attempts, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&score->refused, refused, __ATOMIC_RELAXED);
}

bool score_over(const struct score *score)
{
    return __atomic_load_n(&score->over, __ATOMIC_RELAXED);
}

/* Counts those that were let in. A stranger looks once more what came. */
static void close_wires(const struct door *door, struct score *score, struct wire *wires, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (door_is_shut(door))
            wire_closes(&wires[i], 0);
        if (wires[i].let_in)
            __atomic_add_fetch(&score->let_in, 1, __ATOMIC_RELAXED);
        wire_close(&wires[i]);
    }
}

/* ---- connections ---- */

void attack_connections(const struct door *door, struct score *score)
{
    struct wire wires[MANY];
    while (!score_over(score)) {
        for (size_t i = 0; i < MANY; i++)
            wires[i] = wire_connect(door, i % 2 ? "frontend" : "stream");
        for (size_t i = 0; i < MANY; i++)
            score_attempt(score, wire_closes(&wires[i], 0));
        close_wires(door, score, wires, MANY);
        usleep(NAP_US);
    }
}

void attack_silence(const struct door *door, struct score *score)
{
    struct wire wires[MANY];
    size_t n = 0;
    for (; n < MANY && !score_over(score); n++) {
        wires[n] = n % 2 ? wire_connect(door, "frontend") : wire_open(door, "stream", "SUB");
        score_attempt(score, wires[n].fd < 0);
    }
    while (!score_over(score))
        usleep(NAP_US);
    close_wires(door, score, wires, n);
}

/* Those that stop half-way stay, as slow ones do; the others see what becomes of them. */
void attack_handshakes(const struct door *door, struct score *score)
{
    struct wire wires[MANY];
    size_t n = 0;
    for (size_t i = 0; !score_over(score); i++) {
        const enum handshake far = (enum handshake)(i % (SHAKE_ALL + 1));
        bool frontend = i / (SHAKE_ALL + 1) % 2, stays = far < SHAKE_FALSE_INITIATE;
        wires[n] = wire_shake(door, frontend ? "frontend" : "stream", frontend ? "DEALER" : "SUB", far);
        score_attempt(score,
                      stays ? wires[n].fd < 0 : wire_closes(&wires[n], wires[n].let_in ? 0 : VERDICT_MS));
        if (!stays)
            close_wires(door, score, &wires[n], 1);
        n += stays;
        if (n < MANY)
            continue;
        close_wires(door, score, wires, n);
        n = 0;
    }
    close_wires(door, score, wires, n);
}

void attack_garbage(const struct door *door, struct score *score)
{
    uint8_t junk[512];
    while (!score_over(score)) {
        const char *name = rand() % 2 ? "frontend" : "stream";
        struct wire wire = rand() % 2 ? wire_open(door, name, "DEALER") : wire_connect(door, name);
        bool stays = wire.fd >= 0;
        for (int i = 0; i < 100 && stays; i++) {
            for (size_t j = 0; j < sizeof junk; j++)
                junk[j] = (uint8_t)rand();
            stays = wire_send(&wire, (uint8_t)(rand() % 2), junk, (size_t)rand() % sizeof junk);
        }
        score_attempt(score, !stays);
        close_wires(door, score, &wire, 1);
    }
}

/* Half of them, as there are two attackers. One that was closed comes back. */
void attack_strangers(const struct door *door, struct score *score)
{
    enum { STRANGERS = 2500, AT_ONCE = 100 };
    static struct wire wires[STRANGERS];
    uint8_t junk[100];
    size_t n = 0;
    for (size_t i = 0; !score_over(score); i = (i + 1) % STRANGERS) {
        if (i % AT_ONCE == 0)
            usleep(NAP_US);
        if (i < n && !wire_closes(&wires[i], 0))
            continue;
        score_attempt(score, i < n);
        if (i < n)
            close_wires(door, score, &wires[i], 1);
        n = i < n ? n : i + 1;
        wires[i] = wire_connect(door, i % 2 ? "frontend" : "stream");
        for (size_t j = 0; j < sizeof junk; j++)
            junk[j] = (uint8_t)rand();
        if (i % 4 > 1)
            wire_write(&wires[i], junk, sizeof junk);
    }
    close_wires(door, score, wires, n);
}

/* ---- what is kept ---- */

void attack_subscriptions(const struct door *door, struct score *score)
{
    static const size_t lengths[] = {1, 3, sizeof(struct id128), PROTO_TOPIC_BYTES, 2000};
    static uint8_t topic[1 + 2000];
    struct wire wires[MANY / 8];
    size_t n = 0;
    for (size_t round = 0; !score_over(score); round++) {
        wires[n] = wire_open(door, "stream", "XSUB");
        size_t len = lengths[round % (sizeof lengths / sizeof *lengths)];
        bool stays = wires[n].fd >= 0;
        for (size_t i = 0; i < 20000 && stays && !score_over(score); i++) {
            uint64_t mixed = i * 0x9e3779b97f4a7c15;
            topic[0] = 1;
            memcpy(topic + 1, &mixed, len < sizeof mixed ? len : sizeof mixed);
            stays = wire_send(&wires[n], 0, topic, 1 + len);
            score_attempt(score, !stays);
        }
        n++;
        if (n == sizeof wires / sizeof *wires) {
            close_wires(door, score, wires, n);
            n = 0;
        }
    }
    close_wires(door, score, wires, n);
}

/* From one connection, and those that it makes when it is closed. */
void attack_topics(const struct door *door, struct score *score)
{
    enum { TOPICS = 100000 };
    uint8_t topic[1 + sizeof(struct id128)] = {1};
    struct wire wire = {.fd = -1};
    for (uint64_t i = 0; i < TOPICS && !score_over(score); i++) {
        uint64_t mixed = i * 0x9e3779b97f4a7c15;
        memcpy(topic + 1, &mixed, sizeof mixed);
        if (wire.fd < 0)
            wire = wire_open(door, "stream", "XSUB");
        bool stays = wire_send(&wire, 0, topic, sizeof topic);
        score_attempt(score, !stays);
        if (!stays)
            close_wires(door, score, &wire, 1);
    }
    while (!score_over(score))
        usleep(NAP_US);
    close_wires(door, score, &wire, 1);
}

/* By several connections at once: encrypted ones go a long way before they have too much. */
void attack_parts(const struct door *door, struct score *score)
{
    enum { PARTED = 8 };
    static uint8_t part[64];
    struct wire wires[PARTED];
    for (size_t i = 0; i < PARTED; i++)
        wires[i] = (struct wire){.fd = -1};
    for (size_t i = 0; !score_over(score); i = (i + 1) % PARTED) {
        if (wires[i].fd < 0)
            wires[i] = wire_open(door, "frontend", "DEALER");
        bool stays = true;
        for (int j = 0; j < 100 && stays; j++)
            stays = wire_send(&wires[i], ZMTP_MORE, part, sizeof part);
        score_attempt(score, !stays);
        if (!stays)
            close_wires(door, score, &wires[i], 1);
    }
    close_wires(door, score, wires, PARTED);
}

void attack_halves(const struct door *door, struct score *score)
{
    struct wire wires[MANY / 2];
    char *bytes = calloc(1, PROTO_MAX_REQUEST_BYTES);
    while (bytes && !score_over(score)) {
        size_t n = 0;
        for (; n < MANY / 2 && !score_over(score); n++) {
            wires[n] = wire_open(door, "frontend", "DEALER");
            if (wire_promise(&wires[n], 0, PROTO_MAX_REQUEST_BYTES))
                wire_write(&wires[n], bytes, PROTO_MAX_REQUEST_BYTES - 1);
        }
        for (size_t i = 0; i < n; i++)
            score_attempt(score, wire_closes(&wires[i], 0));
        close_wires(door, score, wires, n);
    }
    free(bytes);
}

/* ---- requests ---- */

static void ended(void *arg, const struct quern_output *output)
{
    if (output->end)
        score_attempt(arg, output->end->reason == QUERN_ERROR);
}

/* As many as the library takes, over several sessions. */
static void flood(const struct door *door, struct score *score, size_t n_sessions, size_t len,
                  uint32_t max_tokens)
{
    enum { MOST_SESSIONS = 32 };
    struct quern *clients[MOST_SESSIONS] = {NULL};
    struct quern_encoded *encoded[MOST_SESSIONS] = {NULL};
    struct quern_request request;
    char *text = malloc(len);
    if (text)
        memset(text, 'a', len);
    quern_request_init(&request);
    request.text = text;
    request.text_len = len;
    request.max_tokens = max_tokens;
    for (size_t i = 0; text && !score_over(score); i = (i + 1) % n_sessions) {
        if (!clients[i] && door_connect(door, 5000, &clients[i], NULL) != 0)
            continue;
        score->let_in = 1;
        if (!encoded[i] && quern_encode(clients[i], &request, &encoded[i], NULL) != 0)
            continue;
        for (int j = 0; j < 16; j++)
            if (quern_active(clients[i]) < (4u << 20) / len + 16)
                quern_generate_encoded(clients[i], encoded[i], NULL, ended, score, NULL, NULL);
        if (quern_dispatch(clients[i], 1, NULL) < 0)
            clients[i] = quern_free(clients[i]);
    }
    free(text);
    _exit(0); /* without a goodbye */
}

/* The library has 8 MiB of one session on their way at a time: 256 MiB of these. */
void attack_prompts(const struct door *door, struct score *score)
{
    flood(door, score, 32, PROTO_MAX_REQUEST_BYTES - 4096, 1);
}

void attack_requests(const struct door *door, struct score *score)
{
    flood(door, score, 4, 100, 64);
}

static struct id128 random_session(void)
{
    struct id128 session;
    for (size_t i = 0; i < sizeof session; i++)
        ((uint8_t *)&session)[i] = (uint8_t)rand();
    return session;
}

/* A connection with a session; none when it is refused. */
static struct wire say_hello(const struct door *door, struct score *score, struct id128 session)
{
    struct buffer out = {0};
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}, .session = session}};
    struct wire wire = wire_open(door, "frontend", "DEALER");
    bool said = message_encode(&hello, &out) == 0 && wire_send(&wire, 0, out.data, out.len);
    buffer_deinit(&out);
    if (!said)
        close_wires(door, score, &wire, 1);
    return wire;
}

/* The same with a subscription of its stream, by wires[0]; the session is by wires[1]. */
static void listen_unread(const struct door *door, struct score *score, struct wire *ret_wires)
{
    struct id128 session = random_session();
    uint8_t topic[1 + sizeof session] = {1};
    memcpy(topic + 1, &session, sizeof session);
    ret_wires[0] = wire_open(door, "stream", "SUB");
    wire_send(&ret_wires[0], 0, topic, sizeof topic);
    ret_wires[1] = say_hello(door, score, session);
}

void attack_sessions(const struct door *door, struct score *score)
{
    struct wire wires[MANY];
    while (!score_over(score)) {
        size_t n = 0;
        for (; n < MANY && !score_over(score); n++) {
            wires[n] = say_hello(door, score, random_session());
            score_attempt(score, wires[n].fd < 0);
        }
        close_wires(door, score, wires, n);
    }
}

/* The same message over and over, from one session; what comes back is not read. */
static void repeat(const struct door *door, struct score *score, const struct message *message)
{
    struct buffer out = {0};
    if (message_encode(message, &out) < 0)
        abort();
    while (!score_over(score)) {
        struct wire wire = say_hello(door, score, random_session());
        bool stays = wire.fd >= 0;
        while (stays && !score_over(score)) {
            stays = wire_send(&wire, 0, out.data, out.len);
            score_attempt(score, !stays);
        }
        close_wires(door, score, &wire, 1);
    }
    buffer_deinit(&out);
}

void attack_tokenize(const struct door *door, struct score *score)
{
    size_t len = PROTO_MAX_REQUEST_BYTES - 4096;
    char *text = malloc(len);
    if (!text)
        return;
    memset(text, 'a', len);
    struct message question = {.kind = MESSAGE_TOKENIZE,
                               .tokenize = {.ref = 1, .has_text = true, .text = {text, len}}};
    repeat(door, score, &question);
    free(text);
}

/* Sessions that ask for much and read neither answers nor tokens. */
void attack_unread(const struct door *door, struct score *score)
{
    enum { SESSIONS = 8 };
    struct wire wires[2 * SESSIONS];
    struct message generate = {.kind = MESSAGE_GENERATE};
    generation_defaults(&generate.generate.generation);
    generate.generate.generation.prompt.text = BYTES_LITERAL("a");
    generate.generate.generation.max_tokens = 2000;
    while (!score_over(score)) {
        for (size_t i = 0; i < SESSIONS; i++)
            listen_unread(door, score, &wires[2 * i]);
        for (int j = 0; j < 200 && !score_over(score); j++) {
            struct buffer out = {0};
            generate.generate.id = random_session();
            if (message_encode(&generate, &out) < 0)
                abort();
            score_attempt(score, !wire_send(&wires[2 * (j % SESSIONS) + 1], 0, out.data, out.len));
            buffer_deinit(&out);
            usleep(NAP_US);
        }
        close_wires(door, score, wires, 2 * SESSIONS);
    }
}

/* Half of them, as there are two attackers: each has its session, listens to it, asks how the pool is again
 * and again, and reads nothing. */
void attack_crowd(const struct door *door, struct score *score)
{
    enum { CROWD = 2500, AT_ONCE = 50 };
    static struct wire wires[2 * CROWD];
    const struct message question = {.kind = MESSAGE_STATUS, .status = {.ref = 1}};
    struct buffer out = {0};
    size_t n = 0;
    if (message_encode(&question, &out) < 0)
        abort();
    while (!score_over(score)) {
        for (size_t i = 0; i < AT_ONCE && n < CROWD; i++, n++) {
            listen_unread(door, score, &wires[2 * n]);
            score_attempt(score, wires[2 * n].fd < 0 || wires[2 * n + 1].fd < 0);
        }
        for (size_t i = 0; i < n && !score_over(score); i++)
            if (wires[2 * i + 1].fd >= 0 && !wire_send(&wires[2 * i + 1], 0, out.data, out.len))
                close_wires(door, score, &wires[2 * i + 1], 1);
        usleep(NAP_US);
    }
    close_wires(door, score, wires, 2 * n);
    buffer_deinit(&out);
}
