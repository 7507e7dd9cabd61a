/* SPDX-License-Identifier: MIT */
/* The broker under test is the real program, beside a fake quern-worker in this folder of the build. The
 * client is as simple as one can be: it keeps nothing and repairs nothing, so that the tests see what the
 * broker does. */

#include "tests/processes/client.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"

#define PATIENCE_MS (PATIENCE_S * 1000)

struct pool the_pool;
struct client client_a, client_b;

const char *fake_model(struct pool *pool, const char *behaviour)
{
    static char path[RUNDIR_PATH_MAX + 16];
    if (!pool->rundir[0])
        ck_assert_int_eq(rundir_temporary(pool->rundir, NULL), 0);
    pool->programs = "tests/processes";
    snprintf(path, sizeof path, "%s/model", pool->rundir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(behaviour, file);
    fclose(file);
    return path;
}

void client_connect(struct client *client, const struct pool *pool)
{
    char endpoint[POOL_ENDPOINT_MAX];
    int linger = 0;
    memset(client, 0, sizeof *client);
    client->context = zmq_ctx_new();
    client->control = zmq_socket(client->context, ZMQ_DEALER);
    client->stream = zmq_socket(client->context, ZMQ_SUB);
    zmq_setsockopt(client->control, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(client->stream, ZMQ_LINGER, &linger, sizeof linger);
    ck_assert_int_eq(zmq_connect(client->control, pool_endpoint(pool, "frontend", endpoint)), 0);
    ck_assert_int_eq(zmq_connect(client->stream, pool_endpoint(pool, "stream", endpoint)), 0);
    ck_assert_int_eq(message_decoder_new(&client->decoder), 0);
}

void client_open(struct client *client, const struct pool *pool, uint8_t name)
{
    client_connect(client, pool);
    client_begin(client, name);
}

void client_begin(struct client *client, uint8_t name)
{
    memset(&client->session, name, sizeof client->session);
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}, .session = client->session}};
    client_send(client, &hello);
    client_expect(client, MESSAGE_HELLO_OK);
    zmq_setsockopt(client->stream, ZMQ_SUBSCRIBE, &client->session, sizeof client->session);
    client_join(client);
}

void client_join(struct client *client)
{
    static uint64_t nonce = 41; /* another each time: a welcome to an earlier join may come late */
    struct message join = {.kind = MESSAGE_JOIN, .join = {.nonce = ++nonce}};
    uint64_t until = clock_ns() + PATIENCE_MS * CLOCK_NS_PER_MS;
    client->open = false;
    while (!client->open) {
        ck_assert_msg(clock_ns() < until, "no welcome came");
        client_send(client, &join);
        struct message welcome = client_frame(client, 50);
        client->open = welcome.kind == MESSAGE_WELCOME && welcome.welcome.nonce == nonce;
    }
}

void client_tells(struct client *client)
{
    const struct bytes feature = BYTES_LITERAL("taken");
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}, .session = client->session}};
    hello.hello.features = (struct text_list){&feature, 1};
    client_send(client, &hello);
    client_expect(client, MESSAGE_HELLO_OK);
}

void client_taken(struct client *client, uint8_t name)
{
    struct id128 id;
    memset(&id, name, sizeof id);
    const struct bytes taken = {&id, sizeof id};
    struct message ping = {.kind = MESSAGE_PING};
    ping.ping.taken.items = &taken;
    ping.ping.taken.n = 1;
    client_send(client, &ping);
}

void client_close(struct client *client)
{
    zmq_close(client->control);
    zmq_close(client->stream);
    zmq_ctx_term(client->context);
    message_decoder_free(client->decoder);
}

void client_send(struct client *client, const struct message *message)
{
    struct buffer out = {0};
    ck_assert_int_eq(message_encode(message, &out), 0);
    ck_assert_int_eq(zmq_send(client->control, out.data, out.len, 0), (int)out.len);
    buffer_deinit(&out);
}

static struct message take(struct client *client, void *socket)
{
    struct message message = {.kind = MESSAGE_NONE};
    struct error err;
    int n = zmq_recv(socket, client->raw, sizeof client->raw, 0);
    ck_assert_int_ge(n, 0);
    ck_assert_msg(message_decode(client->decoder, client->raw, (size_t)n, &message, &err) == 0, "%s",
                  err.text);
    return message;
}

/* Waits until the socket can be read, and keeps the session's lease meanwhile. */
static bool wait_for(struct client *client, void *socket, int ms)
{
    zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};
    struct message ping = {.kind = MESSAGE_PING};
    for (; ms > 1000; ms -= 1000) {
        if (zmq_poll(&item, 1, 1000) > 0)
            return true;
        if (client->open)
            client_send(client, &ping);
    }
    return zmq_poll(&item, 1, ms) > 0;
}

struct message client_next(struct client *client)
{
    ck_assert(wait_for(client, client->control, PATIENCE_MS));
    return take(client, client->control);
}

struct message client_expect(struct client *client, enum message_kind kind)
{
    uint64_t until = clock_ns() + PATIENCE_MS * CLOCK_NS_PER_MS;
    while (clock_ns() < until) {
        struct message message = client_next(client);
        if (message.kind == kind)
            return message;
    }
    ck_abort_msg("no %s came", message_kind_name(kind));
}

struct message client_frame(struct client *client, int ms)
{
    for (;;) {
        if (!wait_for(client, client->stream, ms))
            return (struct message){.kind = MESSAGE_NONE};
        uint8_t topic[PROTO_TOPIC_BYTES];
        ck_assert_int_ge(zmq_recv(client->stream, topic, sizeof topic, 0), 16);
        ck_assert_mem_eq(topic, &client->session, 16);
        struct message message = take(client, client->stream);
        /* On a busy machine several joins were sent, and the welcomes of the others come late. */
        if (!client->open || message.kind != MESSAGE_WELCOME)
            return message;
    }
}

void client_generate(struct client *client, uint8_t name, const char *prompt,
                     void (*change)(struct generation *))
{
    struct message generate = {.kind = MESSAGE_GENERATE};
    memset(&generate.generate.id, name, sizeof generate.generate.id);
    generation_defaults(&generate.generate.generation);
    generate.generate.generation.prompt.text = bytes_of_string(prompt);
    if (change)
        change(&generate.generate.generation);
    client_send(client, &generate);
}

enum end_reason client_read(struct client *client, uint8_t name, uint64_t *ret_count,
                            enum proto_error *ret_error)
{
    uint64_t next = 0, off = 0;
    for (;;) {
        struct message message = client_frame(client, PATIENCE_MS);
        ck_assert_msg(message.kind != MESSAGE_NONE, "the stream fell silent after %llu ids",
                      (unsigned long long)next);
        if (message.kind != MESSAGE_FRAME || message.frame.id.bytes[0] != name)
            continue;
        ck_assert_uint_eq(message.frame.seq, next);
        ck_assert_uint_eq(message.frame.off, off);
        next += message.frame.ids.n;
        off += message.frame.text.len;
        if (!message.frame.has_end)
            continue;
        *ret_count = next;
        if (ret_error)
            *ret_error = message.frame.end.error;
        return message.frame.end.reason;
    }
}

struct message named(enum message_kind kind, uint8_t name)
{
    struct message message = {.kind = kind};
    if (kind == MESSAGE_CANCEL)
        memset(&message.cancel.id, name, sizeof message.cancel.id);
    if (kind == MESSAGE_REPLAY)
        memset(&message.replay.id, name, sizeof message.replay.id);
    if (kind == MESSAGE_ATTACH)
        memset(&message.attach.id, name, sizeof message.attach.id);
    return message;
}

struct message client_status(struct client *client)
{
    struct message question = {.kind = MESSAGE_STATUS};
    client_send(client, &question);
    return client_expect(client, MESSAGE_STATUS_OK);
}

void client_await_idle(struct client *client, uint32_t sessions)
{
    uint64_t until = clock_ns() + PATIENCE_MS * CLOCK_NS_PER_MS;
    for (;;) {
        struct message status = client_status(client);
        if (status.status_ok.sessions == sessions && status.status_ok.running == 0)
            return;
        ck_assert_msg(clock_ns() < until, "%u sessions, %u requests run", status.status_ok.sessions,
                      status.status_ok.running);
        usleep(20000);
    }
}

enum proto_error expect_error(struct client *client)
{
    return client_expect(client, MESSAGE_ERROR).error.error;
}

const char *pool_endpoint(const struct pool *pool, const char *name, char ret_endpoint[POOL_ENDPOINT_MAX])
{
    snprintf(ret_endpoint, POOL_ENDPOINT_MAX, "ipc://%s/%s", pool->rundir, name);
    return ret_endpoint;
}

void close_pool(void)
{
    client_close(&client_a);
    if (the_pool.broker > 0)
        ck_assert_msg(pool_stop(&the_pool, SIGTERM, PATIENCE_S) == 0, "the broker did not end well: %s",
                      pool_log(&the_pool));
    pool_forget(&the_pool);
}
