/* SPDX-License-Identifier: MIT */
/* The bounds of what workers send.
 *
 *     under way ──the last byte came──▶ not taken ──the loop took the message──▶ gone
 *         └──the connection ends──▶ gone
 *
 * A connection is followed frame by frame (zmtp.h). What is complete counts for the worker until the loop has
 * taken it, whatever becomes of the connection: libzmq keeps it. A count that once went beyond its bound
 * stays refused: libzmq connects anew within milliseconds.
 *
 * Commands are libzmq's own and gone when they were read, but for two that it passes on like messages. */

#include "broker/wire/worker_intake.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

#include "broker/wire/zmtp.h"

#ifndef ZMQ_ZERO_COPY_RECV
#define ZMQ_ZERO_COPY_RECV 10 /* there, though zmq.h names it for drafts alone */
#endif

#define SCHEME "ipc://"

struct reader {
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* of the door; empty: not expected */
    int fd;                                               /* the connection to it that counts; 0: none */
    struct zmtp zmtp;
    uint8_t n_parts;  /* of the message under way */
    size_t under_way; /* counted for it, the frame under way included */
    size_t frame;     /* counted for that */
    bool passes_on;   /* it is a command that libzmq may pass on */
};

struct sender {
    struct reader readers[WORKER_DOORS];
    size_t held; /* under way, or not taken */
    enum worker_intake_verdict verdict;
    bool told; /* the loop was, of the verdict */
};

static struct {
    pthread_mutex_t lock;
    struct sender senders[WORKER_INTAKE_WORKERS];
    uint8_t doors[WORKER_INTAKE_FILES]; /* by descriptor, of workers' connections: door_number; else 0 */
} intake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint8_t door_number(unsigned worker, enum worker_door door)
{
    return (uint8_t)(worker * WORKER_DOORS + door + 1);
}

static struct sender *sender_of(uint8_t number)
{
    return &intake.senders[(number - 1) / WORKER_DOORS];
}

static enum worker_door door_of(uint8_t number)
{
    return (number - 1) % WORKER_DOORS;
}

void worker_intake_prepare(void *context)
{
    zmq_ctx_set(context, ZMQ_ZERO_COPY_RECV, 0);
}

void worker_intake_begin(unsigned worker)
{
    pthread_mutex_lock(&intake.lock);
    intake.senders[worker] = (struct sender){0};
    pthread_mutex_unlock(&intake.lock);
}

void worker_intake_expect(unsigned worker, enum worker_door door, const char *endpoint)
{
    if (strncmp(endpoint, SCHEME, strlen(SCHEME)) != 0)
        return;
    pthread_mutex_lock(&intake.lock);
    struct reader *reader = &intake.senders[worker].readers[door];
    const char *path = endpoint + strlen(SCHEME);
    size_t len = strnlen(path, sizeof reader->path - 1);
    memcpy(reader->path, path, len);
    reader->path[len] = 0;
    pthread_mutex_unlock(&intake.lock);
}

void worker_intake_taken(unsigned worker, size_t bytes, unsigned parts)
{
    size_t taken = bytes + (size_t)parts * WORKER_INTAKE_PART_BYTES;
    pthread_mutex_lock(&intake.lock);
    struct sender *sender = &intake.senders[worker];
    sender->held -= taken < sender->held ? taken : sender->held;
    pthread_mutex_unlock(&intake.lock);
}

size_t worker_intake_held(unsigned worker)
{
    pthread_mutex_lock(&intake.lock);
    size_t held = intake.senders[worker].held;
    pthread_mutex_unlock(&intake.lock);
    return held;
}

enum worker_intake_verdict worker_intake_judge(unsigned worker)
{
    pthread_mutex_lock(&intake.lock);
    struct sender *sender = &intake.senders[worker];
    enum worker_intake_verdict verdict = sender->told ? WORKER_INTAKE_FINE : sender->verdict;
    sender->told = sender->verdict != WORKER_INTAKE_FINE;
    pthread_mutex_unlock(&intake.lock);
    return verdict;
}

const char *worker_intake_describe(enum worker_intake_verdict verdict)
{
    static const char *const texts[WORKER_INTAKE_VERDICTS] = {
        [WORKER_INTAKE_FINE] = "nothing too much",
        [WORKER_INTAKE_BYTES] = "more than 64 MiB not yet processed",
        [WORKER_INTAKE_LINK_PARTS] = "a message of more than 1 part",
        [WORKER_INTAKE_STREAM_PARTS] = "a message of more than 2 parts",
        [WORKER_INTAKE_NO_ZMTP] = "data that is not ZMTP 3",
    };
    _Static_assert(WORKER_INTAKE_MAX == (size_t)64 << 20, "as the text says");
    return texts[verdict];
}

/* ---- following what comes ---- */

static void charge(struct sender *sender, struct reader *reader, size_t n)
{
    sender->held += n;
    reader->under_way += n;
    reader->frame += n;
}

static enum worker_intake_verdict begin_frame(struct sender *sender, struct reader *reader,
                                              enum worker_door door)
{
    static const uint8_t most[WORKER_DOORS] = {[WORKER_DOOR_LINK] = 1, [WORKER_DOOR_STREAM] = 2};
    reader->frame = 0;
    reader->passes_on = false;
    charge(sender, reader, WORKER_INTAKE_PART_BYTES);
    if (reader->zmtp.flags & ZMTP_COMMAND)
        return WORKER_INTAKE_FINE;
    reader->n_parts++;
    if (reader->n_parts + (reader->zmtp.flags & ZMTP_MORE ? 1 : 0) <= most[door])
        return WORKER_INTAKE_FINE;
    return door == WORKER_DOOR_LINK ? WORKER_INTAKE_LINK_PARTS : WORKER_INTAKE_STREAM_PARTS;
}

/* SUBSCRIBE or CANCEL, as far as its first byte, the length of its name, tells. */
static bool may_be_passed_on(uint8_t first)
{
    return first == strlen("SUBSCRIBE") || first == strlen("CANCEL");
}

static void take_body(struct sender *sender, struct reader *reader, uint8_t first, size_t n)
{
    if (reader->frame == WORKER_INTAKE_PART_BYTES)
        reader->passes_on = may_be_passed_on(first);
    charge(sender, reader, n);
}

/* The last byte of a frame came. */
static void end_frame(struct sender *sender, struct reader *reader)
{
    if (reader->zmtp.flags & ZMTP_COMMAND) {
        reader->under_way -= reader->frame;
        sender->held -= reader->passes_on ? 0 : reader->frame;
    } else if (!(reader->zmtp.flags & ZMTP_MORE)) {
        reader->under_way = 0;
        reader->n_parts = 0;
    }
}

static enum worker_intake_verdict follow(struct sender *sender, struct reader *reader, enum worker_door door,
                                         const uint8_t *bytes, size_t n)
{
    for (size_t i = 0, step; i < n; i += step) {
        enum zmtp_what what;
        enum worker_intake_verdict verdict = WORKER_INTAKE_FINE;
        step = zmtp_take(&reader->zmtp, bytes + i, n - i, &what);
        if (what == ZMTP_BROKEN)
            return WORKER_INTAKE_NO_ZMTP;
        if (what == ZMTP_HEADER)
            verdict = begin_frame(sender, reader, door);
        if (what == ZMTP_BODY)
            take_body(sender, reader, bytes[i], step);
        if (verdict != WORKER_INTAKE_FINE)
            return verdict;
        if (what != ZMTP_NOTHING && reader->zmtp.left == 0)
            end_frame(sender, reader);
    }
    return sender->held <= WORKER_INTAKE_MAX ? WORKER_INTAKE_FINE : WORKER_INTAKE_BYTES;
}

/* ---- what libzmq calls ---- */

bool worker_intake_has(int fd)
{
    return fd >= 0 && fd < WORKER_INTAKE_FILES && intake.doors[fd] != 0;
}

/* Whether it may be read. Counts what came, if something did. */
static bool received(int fd, const void *bytes, size_t n)
{
    pthread_mutex_lock(&intake.lock);
    struct sender *sender = sender_of(intake.doors[fd]);
    struct reader *reader = &sender->readers[door_of(intake.doors[fd])];
    bool counts = reader->fd == fd; /* else it is a connection to the process before */
    if (counts && sender->verdict == WORKER_INTAKE_FINE && n > 0)
        sender->verdict = follow(sender, reader, door_of(intake.doors[fd]), bytes, n);
    bool stays = counts && sender->verdict == WORKER_INTAKE_FINE;
    pthread_mutex_unlock(&intake.lock);
    return stays;
}

ssize_t worker_intake_recv(int fd, void *bytes, size_t len, int flags)
{
    ssize_t n = -1;
    errno = ECONNRESET;
    if (received(fd, NULL, 0))
        n = syscall(SYS_recvfrom, fd, bytes, len, flags, NULL, NULL);
    if (n <= 0 || received(fd, bytes, (size_t)n))
        return n;
    errno = ECONNRESET;
    return -1;
}

static void end_connection(struct sender *sender, struct reader *reader)
{
    sender->held -= reader->under_way < sender->held ? reader->under_way : sender->held;
    reader->under_way = reader->frame = reader->n_parts = 0;
    reader->zmtp = (struct zmtp){0};
    reader->fd = 0;
}

void worker_intake_close(int fd)
{
    pthread_mutex_lock(&intake.lock);
    struct sender *sender = sender_of(intake.doors[fd]);
    struct reader *reader = &sender->readers[door_of(intake.doors[fd])];
    if (reader->fd == fd)
        end_connection(sender, reader);
    intake.doors[fd] = 0;
    pthread_mutex_unlock(&intake.lock);
}

/* The door that this is a connection to; 0: none of a worker's. */
static uint8_t number_of(const char *path)
{
    for (unsigned worker = 0; worker < WORKER_INTAKE_WORKERS; worker++)
        for (enum worker_door door = 0; door < WORKER_DOORS; door++)
            if (strcmp(intake.senders[worker].readers[door].path, path) == 0)
                return door_number(worker, door);
    return 0;
}

static void connected(int fd, const char *path)
{
    pthread_mutex_lock(&intake.lock);
    uint8_t number = number_of(path);
    intake.doors[fd] = number;
    if (number > 0) {
        struct sender *sender = sender_of(number);
        struct reader *reader = &sender->readers[door_of(number)];
        end_connection(sender, reader);
        reader->fd = fd;
    }
    pthread_mutex_unlock(&intake.lock);
}

int connect(int fd, const struct sockaddr *to, socklen_t len)
{
    struct sockaddr_un address = {0};
    if (len > sizeof(sa_family_t) && to->sa_family == AF_UNIX && fd >= 0 && fd < WORKER_INTAKE_FILES) {
        memcpy(&address, to, len < sizeof address ? len : sizeof address - 1);
        if (address.sun_path[0])
            connected(fd, address.sun_path);
    }
    return (int)syscall(SYS_connect, fd, to, len);
}
