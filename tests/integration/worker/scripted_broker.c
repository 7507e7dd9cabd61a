/* SPDX-License-Identifier: MIT */
/* See scripted_broker.h. */

#include "tests/integration/worker/scripted_broker.h"
#include "tests/unit/child.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "common/clock.h"
#include "common/utf8.h"
#include "model/convert/synth.h"
#include "gguf/gguf.h"
#include "gguf/gguf_values.h"
#include "gguf/gguf_writer.h"
#include "text/tokenizer/tokenizer.h"

#define MOST_EXTRAS 16

static const struct id128 mark = {{'m', 'a', 'r', 'k'}};

static int copy_tensor(void *arg, void *out, size_t size)
{
    const struct gguf_tensor *from = arg;
    memcpy(out, from->data, size);
    return 0;
}

struct changes { /* of a model */
    const char *chat_template;
    uint32_t id;      /* of a token that is to be a control token called: */
    const char *mark; /* NULL: none */
};

/* The names of tokens, or their types, with that of the mark. */
static void change_tokens(struct gguf_writer *writer, const struct gguf_pair *pair,
                          const struct changes *changes)
{
    const struct gguf_value *array = &pair->value;
    const size_t n = array->array.n;
    if (bytes_equal(pair->key, BYTES_LITERAL("tokenizer.ggml.tokens"))) {
        struct bytes *names = calloc(n, sizeof *names);
        size_t cursor = 0;
        for (size_t i = 0; i < n; i++)
            names[i] = gguf_array_next_string(array, &cursor);
        names[changes->id] = bytes_of_string(changes->mark);
        ck_assert_int_eq(gguf_writer_strings(writer, "tokenizer.ggml.tokens", names, n), 0);
        free(names);
    } else {
        int32_t *types = calloc(n, sizeof *types);
        for (size_t i = 0; i < n; i++)
            types[i] = (int32_t)gguf_array_int(array, i);
        types[changes->id] = TOKEN_CONTROL;
        ck_assert_int_eq(gguf_writer_i32s(writer, "tokenizer.ggml.token_type", types, n), 0);
        free(types);
    }
}

static bool is_of_tokens(struct bytes key)
{
    return bytes_equal(key, BYTES_LITERAL("tokenizer.ggml.tokens")) ||
           bytes_equal(key, BYTES_LITERAL("tokenizer.ggml.token_type"));
}

/* Writes the model anew, with the changes. */
static void change_model(const char *path, const struct changes *changes)
{
    struct gguf *gguf;
    struct gguf_writer *writer;
    struct error err = {0};
    ck_assert_int_eq(gguf_open(path, &gguf, &err), 0);
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    for (size_t i = 0; i < gguf_n_pairs(gguf); i++) {
        const struct gguf_pair *pair = gguf_pair_at(gguf, i);
        if (changes->mark && is_of_tokens(pair->key))
            change_tokens(writer, pair, changes);
        else
            ck_assert_int_eq(gguf_writer_pair(writer, pair), 0);
    }
    ck_assert_int_eq(gguf_writer_string(writer, "tokenizer.chat_template", changes->chat_template), 0);
    for (size_t i = 0; i < gguf_n_tensors(gguf); i++) {
        const struct gguf_tensor *from = gguf_tensor_at(gguf, i);
        char name[256];
        utf8_printable(from->name, sizeof name, name);
        ck_assert_int_eq(gguf_writer_tensor(writer, name, from->n_dims, from->dims, from->format, copy_tensor,
                                            (void *)from),
                         0);
    }
    ck_assert_msg(gguf_writer_write(writer, path, &err) == 0, "%s", err.text);
    gguf_writer_free(writer);
    gguf_free(gguf);
}

/* A socket that listens at the endpoint, for the worker. */
static int listen_at(const char *endpoint)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", endpoint + strlen("ipc://"));
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    return fd;
}

static void start_worker(struct scripted *s, int board_fd, const char *const *extra)
{
    const char *program = getenv("QUERN_WORKER");
    ck_assert_msg(program != NULL, "QUERN_WORKER names no program");
    char fds[3][16], *arguments[32];
    const int inherited[] = {board_fd, listen_at(s->link), listen_at(s->stream)};
    int n = 0;
    for (int i = 0; i < 3; i++)
        snprintf(fds[i], sizeof fds[i], "%d", inherited[i]);
    const char *fixed[] = {program,        s->model, "--link-fd",     fds[1], "--name",     "worker-7",
                           "--stream-fd",  fds[2],   "--incarnation", "3",    "--board-fd", fds[0],
                           "--board-slot", "1",      "--device",      "null"};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        arguments[n++] = (char *)fixed[i];
    for (int i = 0; extra && extra[i] && i < MOST_EXTRAS; i++)
        arguments[n++] = (char *)extra[i];
    arguments[n] = NULL;
    s->worker = fork_child();
    if (s->worker == 0) {
        int log = open(s->stderr_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(log, STDERR_FILENO);
        for (int i = 0; i < 3; i++)
            fcntl(inherited[i], F_SETFD, 0);
        execv(program, arguments);
        _exit(127);
    }
    for (int i = 0; i < 3; i++)
        close(inherited[i]);
}

static struct scripted *start(const struct changes *changes, const char *const *extra)
{
    struct scripted *s = calloc(1, sizeof *s);
    struct error err = {0};
    const int zero = 0;
    ck_assert_int_eq(rundir_temporary(s->folder, &err), 0);
    snprintf(s->model, sizeof s->model, "%s/model.gguf", s->folder);
    snprintf(s->link, sizeof s->link, "ipc://%s/link", s->folder);
    snprintf(s->stream, sizeof s->stream, "ipc://%s/stream", s->folder);
    snprintf(s->stderr_file, sizeof s->stderr_file, "%s/stderr", s->folder);
    /* Of a name of its own: no other pool has these weights to share. */
    struct synth_shape shape = *synth_shape_by_name("tiny");
    char name[32];
    snprintf(name, sizeof name, "tiny of %d", (int)getpid());
    shape.name = name;
    ck_assert_msg(synth_write(&shape, mixture_by_name("F16"), 1, s->model, &err) == 0, "%s", err.text);
    if (changes)
        change_model(s->model, changes);
    ck_assert_int_eq(message_decoder_new(&s->control_decoder), 0);
    ck_assert_int_eq(message_decoder_new(&s->frame_decoder), 0);
    s->zmq = zmq_ctx_new();
    s->dealer = zmq_socket(s->zmq, ZMQ_DEALER);
    s->sub = zmq_socket(s->zmq, ZMQ_SUB);
    zmq_setsockopt(s->dealer, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt(s->sub, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt(s->sub, ZMQ_RCVHWM, &zero, sizeof zero);
    int board_fd;
    ck_assert_int_eq(board_create(&board_fd, &s->slot), 0);
    start_worker(s, board_fd, extra);
    ck_assert_int_eq(zmq_connect(s->dealer, s->link), 0);
    return s;
}

struct scripted *scripted_new(const char *const *extra)
{
    return start(NULL, extra);
}

struct scripted *scripted_new_with_template(const char *chat_template)
{
    return start(&(struct changes){.chat_template = chat_template}, NULL);
}

struct scripted *scripted_new_with_mark(const char *chat_template, uint32_t id, const char *name)
{
    return start(&(struct changes){chat_template, id, name}, ARGS("--device", "cpu"));
}

void scripted_free(struct scripted *s)
{
    if (s->worker > 0) {
        kill(s->worker, SIGKILL);
        waitpid(s->worker, NULL, 0);
    }
    zmq_close(s->sub);
    zmq_close(s->dealer);
    zmq_ctx_term(s->zmq);
    board_unmap(s->slot);
    message_decoder_free(s->control_decoder);
    message_decoder_free(s->frame_decoder);
    rundir_remove(s->folder);
    free(s);
}

/* The next message on the link but heartbeats; false when none comes in time. */
static bool hear(struct scripted *s, int ms, struct message *ret_message)
{
    struct error err;
    uint64_t until = clock_ns() + (uint64_t)ms * CLOCK_NS_PER_MS;
    for (;;) {
        uint64_t now = clock_ns();
        int left = now < until ? (int)((until - now) / CLOCK_NS_PER_MS) + 1 : 0;
        zmq_setsockopt(s->dealer, ZMQ_RCVTIMEO, &left, sizeof left);
        int len = zmq_recv(s->dealer, s->control_bytes, sizeof s->control_bytes, 0);
        if (len < 0)
            return false;
        ck_assert_int_le(len, (int)sizeof s->control_bytes);
        ck_assert_msg(message_decode(s->control_decoder, s->control_bytes, (size_t)len, ret_message, &err) ==
                          0,
                      "%s", err.text);
        if (ret_message->kind != MESSAGE_HEARTBEAT)
            return true;
        s->heartbeats++;
        s->heartbeat = *ret_message;
        struct message pong = {.kind = MESSAGE_PONG};
        pong.pong.ref = ret_message->heartbeat.ref;
        if (!s->mute)
            say(s, &pong);
    }
}

struct message expect(struct scripted *s, enum message_kind kind)
{
    struct message message = {0};
    ck_assert_msg(hear(s, WAIT_MS, &message), "no %s came: %s", message_kind_name(kind), worker_stderr(s));
    ck_assert_str_eq(message_kind_name(message.kind), message_kind_name(kind));
    return message;
}

bool said_nothing(struct scripted *s, int ms)
{
    struct message message;
    return !hear(s, ms, &message);
}

void say_bytes(struct scripted *s, const void *data, size_t len, bool more)
{
    ck_assert_int_ge(zmq_send(s->dealer, data, len, more ? ZMQ_SNDMORE : 0), 0);
    if (more)
        ck_assert_int_ge(zmq_send(s->dealer, "more", 4, 0), 0);
}

void say(struct scripted *s, const struct message *message)
{
    struct buffer out = {0};
    struct error err;
    ck_assert_msg(message_encode_or_say(message, &out, &err) == 0, "%s", err.text);
    say_bytes(s, out.data, out.len, false);
    buffer_deinit(&out);
}

bool next_frame(struct scripted *s, int ms, struct frame *ret_frame)
{
    struct message message;
    zmq_setsockopt(s->sub, ZMQ_RCVTIMEO, &ms, sizeof ms);
    if (zmq_recv(s->sub, s->topic, sizeof s->topic, 0) != PROTO_TOPIC_BYTES)
        return false;
    int len = zmq_recv(s->sub, s->frame_bytes, sizeof s->frame_bytes, 0);
    ck_assert_int_gt(len, 0);
    ck_assert_int_eq(message_decode(s->frame_decoder, s->frame_bytes, (size_t)len, &message, NULL), 0);
    ck_assert_int_eq(message.kind, MESSAGE_FRAME);
    *ret_frame = message.frame;
    return true;
}

void handshake(struct scripted *s)
{
    expect(s, MESSAGE_REGISTER);
    struct message ok = {.kind = MESSAGE_REGISTER_OK};
    ok.register_ok.boot = 1;
    ok.register_ok.subscription = mark;
    ok.register_ok.heartbeat_ms = 20;
    ck_assert_int_eq(zmq_connect(s->sub, s->stream), 0);
    zmq_setsockopt(s->sub, ZMQ_SUBSCRIBE, "", 0);
    zmq_setsockopt(s->sub, ZMQ_SUBSCRIBE, &mark, sizeof mark);
    say(s, &ok);
    expect(s, MESSAGE_READY);
}

struct message assignment(uint8_t id, uint32_t n_prompt, uint32_t max_tokens)
{
    static int32_t prompt[4096];
    struct message message = {.kind = MESSAGE_ASSIGN};
    for (uint32_t i = 0; i < n_prompt; i++)
        prompt[i] = (int32_t)(260 + i % 100);
    message.assign.session.bytes[0] = 1;
    message.assign.id.bytes[0] = id;
    message.assign.epoch = (struct epoch){1, 0};
    generation_defaults(&message.assign.generation);
    message.assign.generation.prompt.form = PROMPT_IDS;
    message.assign.generation.prompt.ids = (struct id_list){prompt, n_prompt};
    message.assign.generation.max_tokens = max_tokens;
    message.assign.generation.has_seed = true;
    message.assign.generation.sampling.seed = 42;
    message.assign.generation.sampling.temperature = 0.8f;
    message.assign.generation.sampling.top_k = 40;
    message.assign.generation.sampling.top_p = 0.95f;
    message.assign.generation.sampling.min_p = 0.05f;
    return message;
}

int worker_status(struct scripted *s)
{
    int status = 0;
    for (int i = 0; i < WAIT_MS / 10; i++) {
        if (waitpid(s->worker, &status, WNOHANG) == s->worker) {
            s->worker = 0;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
        }
        usleep(10000);
    }
    ck_abort_msg("the worker does not end");
    return -1;
}

const char *worker_stderr(struct scripted *s)
{
    static char text[4096];
    int fd = open(s->stderr_file, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n < 0 ? 0 : n] = 0;
    close(fd);
    return text;
}
