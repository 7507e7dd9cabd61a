/* SPDX-License-Identifier: MIT */
/* A worker without a model, for tests of the broker: it speaks the whole protocol, and misbehaves on demand.
 *
 * The model file's first word says how it starts: "permanent" ends with the status of a permanent failure,
 * "unfit" with that of a command line that is not understood, "crash" dies at once, "slow" takes two seconds
 * to load, "early" says that it is ready and takes them then, "embeds" says that it makes embeddings of four
 * numbers, "mixed" that worker-0 alone does, "named" that its model has the worker's name, "lone" that the
 * others load for ever, anything else serves. A prompt says what it does with a request:
 *
 *     count N     N frames of one token, then the end
 *     twice N     the same, each frame published twice
 *     gap N       the same, but the second frame is published only when asked for again
 *     tail N      the same, but the last frame is published only when asked for again
 *     wait        one frame, then nothing until it is cancelled
 *     deaf        the same, and a cancel is not heeded
 *     return      nothing; when it is cancelled, it is given back, as by a worker that was told to end
 *     leave M     for M attempts a frame, and the worker ends as by SIGTERM; then it ends with 9 ids
 *     refuse      `finished` with an error, and no frame
 *     die         two frames, then SIGKILL
 *     once N      the same at its first attempt; at another goes on and ends with N ids in all
 *     hush        ends at once; from here on no ping is answered, and no question of more than 1,000 bytes …
 *     speak       … until now: so many ids are the answers as there are questions, three at most
 *     garbage     bytes that are no frame
 *     vector N    the end, with an embedding of N numbers
 *     stall       claims on its board to be active and makes no progress; at another attempt it ends
 *     spoil       writes over all of the board that it can reach, and ends
 *     parts       parts of a message of its stream that has no end
 *     pieces      the same on its link
 *     begin       beginnings of messages of its stream, on one connection after the other
 *     stale       a frame that was published before, over and over
 *     long … |X   X, behind as much as one likes
 *
 * What earlier attempts made must come with an assign, and is gone on from. A worker that is told to end says
 * so, gives back what comes, and what waits when it is asked to hand over, and leaves when nothing waits and
 * all was taken.
 *
 * One request at a time is worked on to its end, except those that `wait`. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"
#include "common/program/program.h"
#include "proto/board.h"
#include "proto/message.h"
#include "tests/processes/hostile_worker.h"

#define KEPT_MAX    100000
#define WAITING_MAX 16
#define NONE        UINT64_MAX

struct kept {
    uint8_t topic[PROTO_TOPIC_BYTES];
    struct buffer frame;
};

struct fake {
    const char *name, *model, *stream_endpoint;
    uint32_t incarnation;
    void *control, *stream;
    int link_fd, stream_fd; /* their doors */
    struct message_decoder *decoder;
    uint64_t wseq;
    struct kept kept[KEPT_MAX];          /* by wseq − 1 */
    struct message waiting[WAITING_MAX]; /* assigns that wait for a cancel; kind NONE: free */
    bool begun[WAITING_MAX];             /* of those, one frame was made */
    struct board_slot *slot;
    bool hushed;
    bool embeds;
    struct bytes embedding; /* of the frame that is made next */
    bool ending;
    uint64_t acked;
    uint64_t pings[WAITING_MAX], questions[WAITING_MAX]; /* that came meanwhile */
    size_t n_pings, n_questions;
};

static void send_up(struct fake *fake, const struct message *message)
{
    struct buffer out = {0};
    if (message_encode(message, &out) < 0)
        abort();
    zmq_send(fake->control, out.data, out.len, ZMQ_DONTWAIT); /* to nobody, while there is no broker */
    buffer_deinit(&out);
}

static void publish(struct fake *fake, const struct kept *kept)
{
    zmq_send(fake->stream, kept->topic, sizeof kept->topic, ZMQ_SNDMORE);
    zmq_send(fake->stream, kept->frame.data, kept->frame.len, 0);
}

/* Makes frame number `seq` and keeps it; `end` may be NULL. */
static const struct kept *make_frame(struct fake *fake, const struct message *assign, uint64_t seq,
                                     bool token, const struct ending *end)
{
    struct kept *kept = &fake->kept[fake->wseq++];
    int32_t id = (int32_t)seq;
    struct message frame = {.kind = MESSAGE_FRAME};
    frame.frame.id = assign->assign.id;
    frame.frame.epoch = assign->assign.epoch;
    frame.frame.seq = seq;
    frame.frame.off = seq;
    frame.frame.ids = (struct id_list){&id, token};
    frame.frame.text = (struct bytes){"x", token};
    frame.frame.embedding = fake->embedding;
    frame.frame.wseq = fake->wseq;
    if (end) {
        frame.frame.has_end = true;
        frame.frame.end = *end;
    }
    memcpy(kept->topic, &assign->assign.session, 16);
    memcpy(kept->topic + 16, &assign->assign.id, 16);
    kept->frame.len = 0;
    if (message_encode(&frame, &kept->frame) < 0)
        abort();
    return kept;
}

static void finished(struct fake *fake, const struct message *assign, uint64_t count,
                     const struct ending *end)
{
    struct message message = {.kind = MESSAGE_FINISHED};
    message.finished.session = assign->assign.session;
    message.finished.id = assign->assign.id;
    message.finished.epoch = assign->assign.epoch;
    message.finished.count = count;
    message.finished.wseq = fake->wseq;
    message.finished.end = *end;
    send_up(fake, &message);
}

static void count(struct fake *fake, const struct message *assign, uint64_t n, int copies, uint64_t lost)
{
    struct ending end = {.reason = END_LENGTH, .usage = {.prompt_tokens = 1, .output_tokens = (uint32_t)n}};
    for (uint64_t i = assign->assign.generation.output.n; i < n; i++) {
        const struct kept *kept = make_frame(fake, assign, i, true, i + 1 == n ? &end : NULL);
        for (int c = 0; c < copies; c++)
            if (i != lost)
                publish(fake, kept);
    }
    finished(fake, assign, n, &end);
}

static void embed(struct fake *fake, const struct message *assign, size_t n)
{
    static const float numbers[16] = {0.5f, 0.5f, 0.5f, 0.5f};
    struct ending end = {.reason = END_STOP, .usage = {.prompt_tokens = 1}};
    fake->embedding = (struct bytes){numbers, n * sizeof *numbers};
    publish(fake, make_frame(fake, assign, 0, false, &end));
    fake->embedding = (struct bytes){NULL, 0};
    finished(fake, assign, 0, &end);
}

/* Another broker says again what there is. */
static bool has(const struct fake *fake, const struct message *assign)
{
    for (int i = 0; i < WAITING_MAX; i++)
        if (fake->waiting[i].kind == MESSAGE_ASSIGN &&
            memcmp(&fake->waiting[i].assign.id, &assign->assign.id, 16) == 0 &&
            epoch_compare(assign->assign.epoch, fake->waiting[i].assign.epoch) <= 0)
            return true;
    return false;
}

static void remember(struct fake *fake, const struct message *assign, bool begun)
{
    for (int i = 0; i < WAITING_MAX; i++)
        if (fake->waiting[i].kind == MESSAGE_NONE) {
            fake->waiting[i] = *assign;
            fake->begun[i] = begun;
            return;
        }
}

static void beat(struct fake *fake)
{
    struct message heartbeat = {.kind = MESSAGE_HEARTBEAT};
    heartbeat.heartbeat.wseq = fake->wseq;
    heartbeat.heartbeat.draining = fake->ending;
    send_up(fake, &heartbeat);
}

static void leave(struct fake *fake, const struct message *assign)
{
    publish(fake, make_frame(fake, assign, assign->assign.generation.output.n, true, NULL));
    remember(fake, assign, true);
    fake->ending = true;
    beat(fake);
}

/* Until the broker has all that was published, or does not say so; what else it says is lost. */
static void await_ack(struct fake *fake)
{
    static char bytes[PROTO_MAX_WORKER_BYTES];
    uint64_t until = clock_ns() + 5 * CLOCK_NS_PER_S;
    while (fake->acked < fake->wseq && clock_ns() < until) {
        zmq_pollitem_t item = {.socket = fake->control, .events = ZMQ_POLLIN};
        struct message message;
        int n = zmq_poll(&item, 1, 10) > 0 ? zmq_recv(fake->control, bytes, sizeof bytes, ZMQ_DONTWAIT) : -1;
        if (n >= 0 && message_decode(fake->decoder, bytes, (size_t)n, &message, NULL) == 0 &&
            message.kind == MESSAGE_ACK)
            fake->acked = message.ack.wseq;
    }
}

/* Two frames, and death. */
static void die(struct fake *fake, const struct message *assign)
{
    for (uint64_t i = 0; i < 2; i++)
        publish(fake, make_frame(fake, assign, assign->assign.generation.output.n + i, true, NULL));
    await_ack(fake);
    raise(SIGKILL);
}

/* The ids and the text of make_frame, from the first on. */
static bool is_output_of_ours(const struct message *assign)
{
    for (size_t i = 0; i < assign->assign.generation.output.n; i++)
        if (assign->assign.generation.output.items[i] != (int32_t)i)
            return false;
    return assign->assign.generation.off == assign->assign.generation.output.n;
}

static void answer_ping(struct fake *fake, uint64_t ref)
{
    send_up(fake, &(struct message){.kind = MESSAGE_PONG, .pong = {.ref = ref}});
}

static void pinged(struct fake *fake, uint64_t ref)
{
    if (!fake->hushed)
        answer_ping(fake, ref);
    else if (fake->n_pings < WAITING_MAX)
        fake->pings[fake->n_pings++] = ref;
}

static void answer_question(struct fake *fake, uint64_t ref, size_t n)
{
    static const int32_t ids[] = {1, 2, 3};
    struct message answer = {.kind = MESSAGE_TOKENIZE_OK};
    answer.tokenize_ok.ref = ref;
    answer.tokenize_ok.ids = (struct id_list){ids, n < 3 ? n : 3};
    send_up(fake, &answer);
}

static void asked(struct fake *fake, uint64_t ref, size_t len)
{
    if (!fake->hushed || len <= 1000)
        answer_question(fake, ref, len % 4);
    else if (fake->n_questions < WAITING_MAX)
        fake->questions[fake->n_questions++] = ref;
}

static void hush(struct fake *fake, const struct message *assign, bool hushed)
{
    count(fake, assign, 1, 1, NONE);
    fake->hushed = hushed;
    if (hushed)
        return;
    for (size_t i = 0; i < fake->n_pings; i++)
        answer_ping(fake, fake->pings[i]);
    for (size_t i = 0; i < fake->n_questions; i++)
        answer_question(fake, fake->questions[i], fake->n_questions);
    fake->n_pings = fake->n_questions = 0;
}

static void assigned(struct fake *fake, const struct message *message)
{
    if (!is_output_of_ours(message))
        abort();
    struct bytes prompt = message->assign.generation.prompt.text;
    char text[64] = "";
    const char *bar =
        prompt.len > 5 && memcmp(prompt.data, "long ", 5) == 0 ? memrchr(prompt.data, '|', prompt.len) : NULL;
    if (bar)
        prompt = (struct bytes){bar + 1, prompt.len - (size_t)(bar + 1 - (const char *)prompt.data)};
    memcpy(text, prompt.data, prompt.len < sizeof text ? prompt.len : sizeof text - 1);
    uint64_t n = strtoull(text + strcspn(text, "0123456789"), NULL, 10);
    struct ending refusal = {
        .reason = END_ERROR, .error = PROTO_TOO_LONG, .text = BYTES_LITERAL("9 is above 8")};
    if (strncmp(text, "count", 5) == 0) {
        count(fake, message, n, 1, NONE);
    } else if (strncmp(text, "twice", 5) == 0) {
        count(fake, message, n, 2, NONE);
    } else if (strncmp(text, "gap", 3) == 0) {
        count(fake, message, n, 1, 1);
    } else if (strncmp(text, "tail", 4) == 0) {
        count(fake, message, n, 1, n - 1);
    } else if (strcmp(text, "wait") == 0) {
        publish(fake, make_frame(fake, message, message->assign.generation.output.n, true, NULL));
        remember(fake, message, true);
    } else if (strcmp(text, "return") == 0) {
        remember(fake, message, false);
    } else if (strncmp(text, "leave", 5) == 0 && message->assign.epoch.move < n) {
        leave(fake, message);
    } else if (strncmp(text, "leave", 5) == 0) {
        count(fake, message, 9, 1, NONE);
    } else if (strcmp(text, "deaf") == 0) {
        publish(fake, make_frame(fake, message, 0, true, NULL));
    } else if (strcmp(text, "refuse") == 0) {
        finished(fake, message, 0, &refusal);
    } else if (strcmp(text, "die") == 0) {
        die(fake, message);
    } else if (strncmp(text, "once", 4) == 0) {
        if (message->assign.epoch.move == 0)
            die(fake, message);
        count(fake, message, n, 1, NONE);
    } else if (strcmp(text, "hush") == 0 || strcmp(text, "speak") == 0) {
        hush(fake, message, strcmp(text, "hush") == 0);
    } else if (strcmp(text, "garbage") == 0) {
        zmq_send(fake->stream, "0123456789abcdef0123456789abcdef", 32, ZMQ_SNDMORE);
        zmq_send(fake->stream, "\xc1garbage", 8, 0);
    } else if (strncmp(text, "vector", 6) == 0) {
        embed(fake, message, n);
    } else if (strcmp(text, "stall") == 0 && message->assign.epoch.move > 0) {
        count(fake, message, 3, 1, NONE);
    } else if (strcmp(text, "stall") == 0) {
        struct board_snapshot busy = {.state = WORKER_READY, .active = 1};
        board_write(fake->slot, &busy);
    } else if (strcmp(text, "pieces") == 0) {
        zmq_close(fake->control);
        hostile_parts(fake->link_fd, "DEALER");
    } else if (strcmp(text, "parts") == 0) {
        zmq_close(fake->stream);
        hostile_parts(fake->stream_fd, "XPUB");
    } else if (strcmp(text, "begin") == 0) {
        zmq_close(fake->stream);
        hostile_beginnings(fake->stream_fd, "XPUB");
    } else if (strcmp(text, "stale") == 0) {
        const struct kept *kept = make_frame(fake, message, message->assign.generation.output.n, true, NULL);
        publish(fake, kept);
        await_ack(fake);
        zmq_close(fake->stream);
        hostile_frames(fake->stream_fd, kept->topic, (struct bytes){kept->frame.data, kept->frame.len});
    } else if (strcmp(text, "spoil") == 0) {
        memset(fake->slot, 0xff, sizeof *fake->slot);
        count(fake, message, 1, 1, NONE);
    }
}

static void cancelled(struct fake *fake, const struct message *message)
{
    struct ending end = {.reason = END_CANCELLED, .usage = {.prompt_tokens = 1, .output_tokens = 1}};
    struct ending back = {.reason = END_ERROR, .error = PROTO_DRAINING, .text = BYTES_LITERAL("ending")};
    for (int i = 0; i < WAITING_MAX; i++) {
        struct message *assign = &fake->waiting[i];
        if (assign->kind == MESSAGE_NONE || memcmp(&message->cancel.id, &assign->assign.id, 16) != 0)
            continue;
        uint64_t made = assign->assign.generation.output.n + fake->begun[i];
        publish(fake, make_frame(fake, assign, made, false, made ? &end : &back));
        finished(fake, assign, made, made ? &end : &back);
        assign->kind = MESSAGE_NONE;
    }
}

static void give_back(struct fake *fake, const struct message *assign, bool begun)
{
    struct ending back = {.reason = END_ERROR, .error = PROTO_DRAINING, .text = BYTES_LITERAL("ending")};
    uint64_t made = assign->assign.generation.output.n + begun;
    publish(fake, make_frame(fake, assign, made, false, &back));
    finished(fake, assign, made, &back);
}

static void hand_over(struct fake *fake)
{
    for (int i = 0; i < WAITING_MAX; i++) {
        struct message *assign = &fake->waiting[i];
        if (assign->kind == MESSAGE_NONE)
            continue;
        give_back(fake, assign, fake->begun[i]);
        assign->kind = MESSAGE_NONE;
    }
}

static bool may_leave(const struct fake *fake)
{
    for (int i = 0; i < WAITING_MAX; i++)
        if (fake->waiting[i].kind != MESSAGE_NONE)
            return false;
    return fake->ending && fake->acked == fake->wseq;
}

static volatile sig_atomic_t told_to_end;

static void on_signal(int signal)
{
    (void)signal;
    told_to_end = 1;
}

static void enroll(struct fake *fake)
{
    struct message message = {.kind = MESSAGE_REGISTER};
    message.register_.proto = (struct version_range){1, 1};
    message.register_.name = bytes_of_string(fake->name);
    message.register_.incarnation = fake->incarnation;
    message.register_.pid = (uint32_t)getpid();
    message.register_.slots = 4;
    message.register_.stream = bytes_of_string(fake->stream_endpoint);
    message.register_.model = bytes_of_string(fake->model);
    message.register_.digest = BYTES_LITERAL("0123456789abcdef");
    message.register_.context = 100000;
    message.register_.embedding = fake->embeds ? 4 : 0;
    message.register_.wseq = fake->wseq;
    message.register_.acked = fake->acked;
    send_up(fake, &message);
}

static void take(struct fake *fake, const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_ASSIGN:
        if (has(fake, message))
            break;
        if (fake->ending)
            give_back(fake, message, false);
        else
            assigned(fake, message);
        break;
    case MESSAGE_CANCEL:
        cancelled(fake, message);
        break;
    case MESSAGE_RESEND:
        for (uint64_t w = message->resend.wseq; w <= fake->wseq; w++)
            publish(fake, &fake->kept[w - 1]);
        break;
    case MESSAGE_TOKENIZE:
        asked(fake, message->tokenize.ref, message->tokenize.text.len);
        break;
    case MESSAGE_PING:
        pinged(fake, message->ping.ref);
        break;
    case MESSAGE_ACK:
        fake->acked = message->ack.wseq;
        break;
    case MESSAGE_ERROR: /* another broker */
        if (message->error.error == PROTO_HELLO_REQUIRED)
            enroll(fake);
        break;
    case MESSAGE_DRAIN:
        if (!message->drain.hand_over)
            exit(EXIT_SUCCESS);
        hand_over(fake);
        break;
    default:
        break;
    }
}

static void loop(struct fake *fake)
{
    uint64_t next_heartbeat = 0;
    for (;;) {
        zmq_pollitem_t items[] = {{.socket = fake->control, .events = ZMQ_POLLIN},
                                  {.socket = fake->stream, .events = ZMQ_POLLIN}};
        zmq_poll(items, 2, 250);
        static char bytes[PROTO_MAX_WORKER_BYTES];
        int n;
        while ((n = zmq_recv(fake->stream, bytes, sizeof bytes, ZMQ_DONTWAIT)) >= 0) {
            struct message ready = {.kind = MESSAGE_READY, .ready = {fake->incarnation}};
            if (n > 1)
                send_up(fake, &ready); /* the broker's mark is subscribed */
        }
        while ((n = zmq_recv(fake->control, bytes, sizeof bytes, ZMQ_DONTWAIT)) >= 0) {
            struct message message;
            struct error err;
            if (message_decode(fake->decoder, bytes, (size_t)n, &message, &err) == 0)
                take(fake, &message);
        }
        if (told_to_end && !fake->ending) {
            fake->ending = true;
            beat(fake);
        }
        if (may_leave(fake))
            exit(EXIT_SUCCESS);
        if (clock_ns() < next_heartbeat)
            continue;
        next_heartbeat = clock_ns() + 250 * CLOCK_NS_PER_MS;
        beat(fake);
    }
}

static const char *argument(int argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return "";
}

/* Has the socket listen where the pool has made a place for it; its endpoint, to be freed, and the place once
 * more. */
static char *take_door(void *socket, const char *fd_text, int *ret_fd)
{
    struct sockaddr_un address = {0};
    socklen_t len = sizeof address;
    int fd = atoi(fd_text);
    char *endpoint = NULL;
    if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
        asprintf(&endpoint, "ipc://%s", address.sun_path) < 0 || (*ret_fd = dup(fd)) < 0 ||
        zmq_setsockopt(socket, ZMQ_USE_FD, &fd, sizeof fd) < 0 || zmq_bind(socket, endpoint) < 0)
        exit(EXIT_FAILURE);
    return endpoint;
}

int main(int argc, char **argv)
{
    static struct fake fake;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    char word[32] = "";
    FILE *model = fopen(argv[argc - 1], "r");
    if (!model || fscanf(model, "%31s", word) != 1)
        return EXIT_FAILURE;
    fclose(model);
    if (strcmp(word, "permanent") == 0) {
        fprintf(stderr, "%s: not a model\n", argv[argc - 1]);
        _exit(
            PROGRAM_EXIT_PERMANENT); /* at once: what it says last is held until it ends, but not for long */
    }
    if (strcmp(word, "unfit") == 0) {
        fputs("unknown device \"gpu\"\n", stderr);
        _exit(PROGRAM_EXIT_USAGE);
    }
    if (strcmp(word, "crash") == 0)
        abort();
    if (strcmp(word, "early") == 0)
        fputs("09:41:00.000 worker-0 info ready: fake\n", stderr);
    if (strcmp(word, "early") == 0 || strcmp(word, "slow") == 0)
        sleep(2);
    fake.name = argument(argc, argv, "--name");
    while (strcmp(word, "lone") == 0 && strcmp(fake.name, "worker-0") != 0)
        pause();
    fake.model = strcmp(word, "named") == 0 ? fake.name : "fake";
    fake.embeds =
        strcmp(word, "embeds") == 0 || (strcmp(word, "mixed") == 0 && strcmp(fake.name, "worker-0") == 0);
    fake.incarnation = (uint32_t)atoi(argument(argc, argv, "--incarnation"));
    if (board_map(atoi(argument(argc, argv, "--board-fd")), &fake.slot) < 0)
        return EXIT_FAILURE;
    void *context = zmq_ctx_new();
    int unlimited = 0;
    fake.control = zmq_socket(context, ZMQ_DEALER);
    fake.stream = zmq_socket(context, ZMQ_XPUB);
    zmq_setsockopt(fake.stream, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
    if (message_decoder_new(&fake.decoder) < 0)
        return EXIT_FAILURE;
    fake.stream_endpoint = take_door(fake.stream, argument(argc, argv, "--stream-fd"), &fake.stream_fd);
    free(take_door(fake.control, argument(argc, argv, "--link-fd"), &fake.link_fd));
    signal(SIGTERM, on_signal);
    zmq_pollitem_t broker = {.socket = fake.control, .events = ZMQ_POLLOUT};
    zmq_poll(&broker, 1, -1);
    enroll(&fake);
    loop(&fake);
}
