/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_strangers: a pool that comes up and answers, cancels, replays, tokenizes, and moves what a
 * worker gives back; and messages of those who are nobody yet. */

#include "tests/fuzz/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/books/request.h"
#include "proto/message.h"

enum { CLIENT = 0, WORKER = 2, STREAM = 4, SENDERS = 6, MOST = 1 << 16 };

static uint8_t input[MOST];
static size_t used;
static const struct id128 session = {{7}}, id = {{1, 2}};

static void add(uint8_t from, unsigned after, const struct message *message)
{
    struct buffer out = {0};
    const struct request_key topic = {session, id};
    if (from >= STREAM && buffer_append(&out, &topic, sizeof topic) < 0)
        abort();
    if (message_encode(message, &out) != 0 || used + 3 + out.len > MOST)
        abort();
    input[used] = (uint8_t)(from + after * SENDERS);
    input[used + 1] = (uint8_t)out.len;
    input[used + 2] = (uint8_t)(out.len >> 8);
    memcpy(input + used + 3, out.data, out.len);
    used += 3 + out.len;
    buffer_deinit(&out);
}

static void finish(void)
{
    fuzz_add_seed(input, used);
    used = 0;
}

static void add_hello(uint8_t client)
{
    struct message hello = {.kind = MESSAGE_HELLO};
    hello.hello.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    hello.hello.session = client ? (struct id128){{8}} : session;
    add(client, 0, &hello);
}

static void add_worker(uint8_t index)
{
    char name[16], stream[32];
    struct message message = {.kind = MESSAGE_REGISTER};
    snprintf(name, sizeof name, "worker-%u", index);
    snprintf(stream, sizeof stream, "inproc://stream-%u", index);
    message.register_.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    message.register_.name = bytes_of_string(name);
    message.register_.incarnation = 1;
    message.register_.pid = 100 + index;
    message.register_.slots = 4;
    message.register_.stream = bytes_of_string(stream);
    message.register_.model = BYTES_LITERAL("m");
    message.register_.digest = BYTES_LITERAL("the digest of it");
    message.register_.context = 4096;
    message.register_.kv_blocks = 128;
    message.register_.max_prompt = 4096;
    message.register_.device = BYTES_LITERAL("d");
    add(WORKER + index, 0, &message);
    message = (struct message){.kind = MESSAGE_READY, .ready = {.incarnation = 1}};
    add(WORKER + index, 0, &message);
}

static void add_generate(void)
{
    struct message generate = {.kind = MESSAGE_GENERATE};
    generation_defaults(&generate.generate.generation);
    generate.generate.id = id;
    generate.generate.generation.prompt.text = BYTES_LITERAL("hello");
    generate.generate.generation.max_tokens = 5;
    add(CLIENT, 0, &generate);
}

static void add_frame(uint8_t index, uint64_t wseq, uint64_t seq, bool ends)
{
    static const int32_t ids[] = {11};
    struct message frame = {.kind = MESSAGE_FRAME};
    frame.frame.id = id;
    frame.frame.epoch = (struct epoch){9, 0};
    frame.frame.wseq = wseq;
    frame.frame.seq = frame.frame.off = seq;
    frame.frame.ids = (struct id_list){ids, 1};
    frame.frame.text = BYTES_LITERAL("x");
    frame.frame.has_end = ends;
    frame.frame.end.reason = END_LENGTH;
    add(STREAM + index, 1, &frame);
}

static void add_finished(uint8_t index, uint64_t count, enum end_reason reason, enum proto_error error)
{
    struct message finished = {.kind = MESSAGE_FINISHED};
    finished.finished.session = session;
    finished.finished.id = id;
    finished.finished.epoch = (struct epoch){9, 0};
    finished.finished.count = finished.finished.wseq = count;
    finished.finished.end.reason = reason;
    finished.finished.end.error = error;
    add(WORKER + index, 0, &finished);
}

static void add_heartbeat(uint8_t index, uint64_t wseq, bool draining)
{
    struct message heartbeat = {.kind = MESSAGE_HEARTBEAT};
    heartbeat.heartbeat.wseq = wseq;
    heartbeat.heartbeat.draining = draining;
    add(WORKER + index, 4, &heartbeat);
}

static void seed_answers(void)
{
    struct message replay = {.kind = MESSAGE_REPLAY, .replay = {.id = id, .epoch = {9, 0}}};
    struct message ping = {.kind = MESSAGE_PING, .ping = {.ref = 3}};
    struct message status = {.kind = MESSAGE_STATUS, .status = {.ref = 4}};
    add_worker(0);
    add_hello(0);
    add_generate();
    add_generate();
    for (uint64_t i = 0; i < 3; i++)
        add_frame(0, i + 1, i, i == 2);
    add_finished(0, 3, END_LENGTH, PROTO_OK);
    add(CLIENT, 0, &replay);
    add(CLIENT, 0, &ping);
    add(CLIENT, 0, &status);
    add_hello(1);
    const struct message attach = {.kind = MESSAGE_ATTACH, .attach = {.session = session, .id = id}};
    add(CLIENT + 1, 0, &attach);
    const struct message bye = {.kind = MESSAGE_BYE};
    add(CLIENT, 40, &bye);
    finish();
}

static void seed_moves(void)
{
    const struct message cancel = {.kind = MESSAGE_CANCEL, .cancel = {.id = id}};
    add_hello(0);
    add_generate(); /* waits for who is there later */
    add_worker(0);
    add_frame(0, 1, 0, false);
    add_frame(0, 3, 2, false); /* a gap */
    add_heartbeat(0, 3, true);
    add_worker(1);
    add_finished(0, 1, END_ERROR, PROTO_DRAINING);
    add_heartbeat(1, 0, false);
    add(CLIENT, 0, &cancel);
    finish();
}

static void seed_questions(void)
{
    static char text[20000];
    static const int32_t ids[] = {1, 2, 3};
    memset(text, 'a', sizeof text);
    struct message tokenize = {.kind = MESSAGE_TOKENIZE,
                               .tokenize = {.ref = 5, .has_text = true, .text = {text, 10}}};
    const struct message detokenize = {.kind = MESSAGE_DETOKENIZE, .detokenize = {.ref = 6, .ids = {ids, 3}}};
    const struct message ok = {.kind = MESSAGE_TOKENIZE_OK, .tokenize_ok = {.ref = 1, .ids = {ids, 3}}};
    const struct message pong = {.kind = MESSAGE_PONG, .pong = {.ref = 20100}};
    add_worker(0);
    add_hello(0);
    add(CLIENT, 0, &tokenize);
    tokenize.tokenize.text.len = sizeof text;
    add(CLIENT, 0, &tokenize);
    add(CLIENT, 0, &detokenize);
    add(WORKER, 0, &ok);
    add(WORKER, 0, &pong);
    struct message error = {.kind = MESSAGE_ERROR, .error = {.ref = 2, .error = PROTO_BAD_REQUEST}};
    error.error.text = BYTES_LITERAL("no");
    add(WORKER, 40, &error);
    add_heartbeat(0, 0, false);
    finish();
}

/* So many parts of that generate. */
static void add_parts(unsigned n)
{
    struct message generate = {.kind = MESSAGE_GENERATE}, part = {.kind = MESSAGE_GENERATE_PART};
    struct buffer whole = {0};
    generation_defaults(&generate.generate.generation);
    generate.generate.id = id;
    generate.generate.generation.prompt.text = BYTES_LITERAL("hello");
    generate.generate.generation.max_tokens = 5;
    if (message_encode(&generate, &whole) < 0)
        abort();
    part.generate_part.id = id;
    part.generate_part.total = (uint32_t)whole.len;
    const size_t step = whole.len / 3 + 1;
    for (size_t i = 0; i < n; i++) {
        const size_t left = whole.len - i * step;
        part.generate_part.at = (uint32_t)(i * step);
        part.generate_part.data = (struct bytes){whole.data + i * step, left < step ? left : step};
        add(CLIENT, 1, &part);
    }
    buffer_deinit(&whole);
}

static void seed_parts(void)
{
    const struct message cancel = {.kind = MESSAGE_CANCEL, .cancel = {.id = id}};
    add_worker(0);
    add_hello(0);
    add_parts(2);
    add(CLIENT, 0, &cancel);
    add_parts(3);
    add_parts(3); /* again */
    add_frame(0, 1, 0, true);
    add_finished(0, 1, END_LENGTH, PROTO_OK);
    add_parts(1);
    add_parts(3);
    finish();
}

void fuzz_seeds(void)
{
    const struct message join = {.kind = MESSAGE_JOIN, .join = {.nonce = 1}};
    seed_answers();
    seed_moves();
    seed_questions();
    seed_parts();
    add(CLIENT, 0, &join);
    add(WORKER, 0, &join);
    add_generate();
    add_frame(0, 1, 0, true);
    finish();
}
