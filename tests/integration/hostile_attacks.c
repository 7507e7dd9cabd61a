/* SPDX-License-Identifier: MIT */
/* The attacks. They speak the protocol by hand and read nothing that they need not, as nobody's library does;
 * only floods of requests come from libquern, because those are what honest programs send too much of. */

#include "tests/integration/hostile.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <quern.h>
#include "proto/message.h"
#include "tests/integration/zmtp.h"

enum { MANY = 400, NAP_US = 2000 };

void score_attempt(struct score *score, bool refused)
{
    __atomic_add_fetch(&score->attempts, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&score->refused, refused, __ATOMIC_RELAXED);
}

bool score_over(const struct score *score)
{
    return __atomic_load_n(&score->over, __ATOMIC_RELAXED);
}

static void close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* ---- connections ---- */

void attack_connections(const struct pool *pool, struct score *score)
{
    int fds[MANY];
    while (!score_over(score)) {
        for (size_t i = 0; i < MANY; i++)
            fds[i] = zmtp_connect(pool->rundir, i % 2 ? "frontend" : "stream");
        for (size_t i = 0; i < MANY; i++)
            score_attempt(score, fds[i] < 0 || zmtp_closes(fds[i], 0));
        close_all(fds, MANY);
        usleep(NAP_US);
    }
}

void attack_silence(const struct pool *pool, struct score *score)
{
    int fds[MANY];
    for (size_t i = 0; i < MANY; i++) {
        fds[i] = i % 2 ? zmtp_connect(pool->rundir, "frontend") : zmtp_open(pool->rundir, "stream", "SUB");
        score_attempt(score, fds[i] < 0);
    }
    while (!score_over(score))
        usleep(NAP_US);
    close_all(fds, MANY);
}

void attack_garbage(const struct pool *pool, struct score *score)
{
    uint8_t junk[512];
    while (!score_over(score)) {
        const char *name = rand() % 2 ? "frontend" : "stream";
        int fd = rand() % 2 ? zmtp_open(pool->rundir, name, "DEALER") : zmtp_connect(pool->rundir, name);
        bool stays = fd >= 0;
        for (int i = 0; i < 100 && stays; i++) {
            for (size_t j = 0; j < sizeof junk; j++)
                junk[j] = (uint8_t)rand();
            stays = zmtp_send(fd, (uint8_t)(rand() % 2), junk, (size_t)rand() % sizeof junk);
        }
        score_attempt(score, !stays);
        close_all(&fd, 1);
    }
}

/* Half of them, as there are two attackers. One that was closed comes back. */
void attack_strangers(const struct pool *pool, struct score *score)
{
    enum { STRANGERS = 2500, AT_ONCE = 100 };
    static int fds[STRANGERS];
    uint8_t junk[100];
    size_t n = 0;
    for (size_t i = 0; !score_over(score); i = (i + 1) % STRANGERS) {
        if (i % AT_ONCE == 0)
            usleep(NAP_US);
        if (i < n && !zmtp_closes(fds[i], 0))
            continue;
        score_attempt(score, i < n);
        if (i < n)
            close_all(&fds[i], 1);
        n = i < n ? n : i + 1;
        fds[i] = zmtp_connect(pool->rundir, i % 2 ? "frontend" : "stream");
        for (size_t j = 0; j < sizeof junk; j++)
            junk[j] = (uint8_t)rand();
        if (i % 4 > 1 && fds[i] >= 0)
            zmtp_write(fds[i], junk, sizeof junk);
    }
    close_all(fds, n);
}

/* ---- what is kept ---- */

void attack_subscriptions(const struct pool *pool, struct score *score)
{
    static const size_t lengths[] = {1, 3, sizeof(struct id128), PROTO_TOPIC_BYTES, 2000};
    static uint8_t topic[1 + 2000];
    int fds[MANY / 8];
    size_t n = 0;
    for (size_t round = 0; !score_over(score); round++) {
        int fd = zmtp_open(pool->rundir, "stream", "XSUB");
        size_t len = lengths[round % (sizeof lengths / sizeof *lengths)];
        bool stays = fd >= 0;
        for (size_t i = 0; i < 20000 && stays && !score_over(score); i++) {
            uint64_t mixed = i * 0x9e3779b97f4a7c15;
            topic[0] = 1;
            memcpy(topic + 1, &mixed, len < sizeof mixed ? len : sizeof mixed);
            stays = zmtp_send(fd, 0, topic, 1 + len);
            score_attempt(score, !stays);
        }
        fds[n++] = fd;
        if (n == sizeof fds / sizeof *fds) {
            close_all(fds, n);
            n = 0;
        }
    }
    close_all(fds, n);
}

/* From one connection, and those that it makes when it is closed. */
void attack_topics(const struct pool *pool, struct score *score)
{
    enum { TOPICS = 100000 };
    uint8_t topic[1 + sizeof(struct id128)] = {1};
    int fd = -1;
    for (uint64_t i = 0; i < TOPICS && !score_over(score); i++) {
        uint64_t mixed = i * 0x9e3779b97f4a7c15;
        memcpy(topic + 1, &mixed, sizeof mixed);
        if (fd < 0)
            fd = zmtp_open(pool->rundir, "stream", "XSUB");
        bool stays = fd >= 0 && zmtp_send(fd, 0, topic, sizeof topic);
        score_attempt(score, !stays);
        if (!stays && fd >= 0) {
            close_all(&fd, 1);
            fd = -1;
        }
    }
    while (!score_over(score))
        usleep(NAP_US);
    close_all(&fd, 1);
}

void attack_parts(const struct pool *pool, struct score *score)
{
    static uint8_t part[64];
    while (!score_over(score)) {
        int fd = zmtp_open(pool->rundir, "frontend", "DEALER");
        while (fd >= 0 && !score_over(score) && zmtp_send(fd, ZMTP_MORE, part, sizeof part))
            ;
        score_attempt(score, !score_over(score));
        close_all(&fd, 1);
    }
}

void attack_halves(const struct pool *pool, struct score *score)
{
    int fds[MANY / 2];
    char *bytes = calloc(1, PROTO_MAX_REQUEST_BYTES);
    while (bytes && !score_over(score)) {
        size_t n = 0;
        for (; n < MANY / 2 && !score_over(score); n++) {
            fds[n] = zmtp_open(pool->rundir, "frontend", "DEALER");
            if (fds[n] >= 0 && zmtp_promise(fds[n], 0, PROTO_MAX_REQUEST_BYTES))
                zmtp_write(fds[n], bytes, PROTO_MAX_REQUEST_BYTES - 1);
        }
        for (size_t i = 0; i < n; i++)
            score_attempt(score, fds[i] < 0 || zmtp_closes(fds[i], 0));
        close_all(fds, n);
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
static void flood(const struct pool *pool, struct score *score, size_t len, uint32_t max_tokens)
{
    enum { SESSIONS = 4 };
    struct quern *clients[SESSIONS] = {NULL};
    struct quern_request request;
    char *text = malloc(len);
    if (text)
        memset(text, 'a', len);
    quern_request_init(&request);
    request.text = text;
    request.text_len = len;
    request.max_tokens = max_tokens;
    for (size_t i = 0; text && !score_over(score); i = (i + 1) % SESSIONS) {
        if (!clients[i] && quern_connect(pool->frontend, 5000, &clients[i], NULL) != 0)
            continue;
        for (int j = 0; j < 16; j++)
            if (quern_active(clients[i]) < (4u << 20) / len + 16)
                quern_generate(clients[i], &request, ended, score, NULL, NULL);
        if (quern_dispatch(clients[i], 1, NULL) < 0)
            clients[i] = quern_free(clients[i]);
    }
    free(text);
    _exit(0); /* without a goodbye */
}

void attack_prompts(const struct pool *pool, struct score *score)
{
    flood(pool, score, PROTO_MAX_REQUEST_BYTES - 4096, 1);
}

void attack_requests(const struct pool *pool, struct score *score)
{
    flood(pool, score, 100, 64);
}

/* A connection with a session; -1 when it is refused. */
static int say_hello(const struct pool *pool, struct id128 session)
{
    struct buffer out = {0};
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}, .session = session}};
    int fd = zmtp_open(pool->rundir, "frontend", "DEALER");
    bool said = fd >= 0 && message_encode(&hello, &out) == 0 && zmtp_send(fd, 0, out.data, out.len);
    buffer_deinit(&out);
    if (said)
        return fd;
    close_all(&fd, 1);
    return -1;
}

static struct id128 random_session(void)
{
    struct id128 session;
    for (size_t i = 0; i < sizeof session; i++)
        ((uint8_t *)&session)[i] = (uint8_t)rand();
    return session;
}

void attack_sessions(const struct pool *pool, struct score *score)
{
    int fds[MANY];
    while (!score_over(score)) {
        for (size_t i = 0; i < MANY; i++) {
            fds[i] = say_hello(pool, random_session());
            score_attempt(score, fds[i] < 0);
        }
        close_all(fds, MANY);
    }
}

/* The same message over and over, from one session; what comes back is not read. */
static void repeat(const struct pool *pool, struct score *score, const struct message *message)
{
    struct buffer out = {0};
    if (message_encode(message, &out) < 0)
        abort();
    while (!score_over(score)) {
        int fd = say_hello(pool, random_session());
        bool stays = fd >= 0;
        while (stays && !score_over(score)) {
            stays = zmtp_send(fd, 0, out.data, out.len);
            score_attempt(score, !stays);
        }
        close_all(&fd, 1);
    }
    buffer_deinit(&out);
}

void attack_tokenize(const struct pool *pool, struct score *score)
{
    size_t len = PROTO_MAX_REQUEST_BYTES - 4096;
    char *text = malloc(len);
    if (!text)
        return;
    memset(text, 'a', len);
    struct message question = {.kind = MESSAGE_TOKENIZE, .tokenize = {.ref = 1, .text = {text, len}}};
    repeat(pool, score, &question);
    free(text);
}

/* Sessions that ask for much and read neither answers nor tokens. */
void attack_unread(const struct pool *pool, struct score *score)
{
    enum { SESSIONS = 8 };
    int fds[2 * SESSIONS];
    struct message generate = {.kind = MESSAGE_GENERATE};
    generation_defaults(&generate.generate.generation);
    generate.generate.generation.prompt.text = BYTES_LITERAL("a");
    generate.generate.generation.max_tokens = 2000;
    while (!score_over(score)) {
        for (size_t i = 0; i < SESSIONS; i++) {
            struct id128 session = random_session();
            uint8_t topic[1 + sizeof session] = {1};
            memcpy(topic + 1, &session, sizeof session);
            fds[2 * i] = zmtp_open(pool->rundir, "stream", "SUB");
            if (fds[2 * i] >= 0)
                zmtp_send(fds[2 * i], 0, topic, sizeof topic);
            fds[2 * i + 1] = say_hello(pool, session);
        }
        for (int j = 0; j < 200 && !score_over(score); j++) {
            struct buffer out = {0};
            generate.generate.id = random_session();
            if (message_encode(&generate, &out) < 0)
                abort();
            int fd = fds[2 * (j % SESSIONS) + 1];
            score_attempt(score, fd < 0 || !zmtp_send(fd, 0, out.data, out.len));
            buffer_deinit(&out);
            usleep(NAP_US);
        }
        close_all(fds, 2 * SESSIONS);
    }
}

/* Half of them, as there are two attackers: each has its session, listens to it, asks how the pool is again
 * and again, and reads nothing. */
void attack_crowd(const struct pool *pool, struct score *score)
{
    enum { CROWD = 2500, AT_ONCE = 50 };
    static int fds[2 * CROWD];
    const struct message question = {.kind = MESSAGE_STATUS, .status = {.ref = 1}};
    struct buffer out = {0};
    size_t n = 0;
    if (message_encode(&question, &out) < 0)
        abort();
    while (!score_over(score)) {
        for (size_t i = 0; i < AT_ONCE && n < CROWD; i++, n++) {
            struct id128 session = random_session();
            uint8_t topic[1 + sizeof session] = {1};
            memcpy(topic + 1, &session, sizeof session);
            fds[2 * n] = zmtp_open(pool->rundir, "stream", "SUB");
            if (fds[2 * n] >= 0)
                zmtp_send(fds[2 * n], 0, topic, sizeof topic);
            fds[2 * n + 1] = say_hello(pool, session);
            score_attempt(score, fds[2 * n] < 0 || fds[2 * n + 1] < 0);
        }
        for (size_t i = 0; i < n && !score_over(score); i++)
            if (fds[2 * i + 1] >= 0 && !zmtp_send(fds[2 * i + 1], 0, out.data, out.len))
                close_all(&fds[2 * i + 1], 1), fds[2 * i + 1] = -1;
        usleep(NAP_US);
    }
    close_all(fds, 2 * n);
    buffer_deinit(&out);
}
