/* SPDX-License-Identifier: MIT */
/* The bounds of what clients send.
 *
 * libzmq reads on its own thread, and its reading, listening and closing are ours: every byte of a client's
 * connection passes through recv() below. On the frontend we follow the frames (zmtp.h) just far enough to
 * know how much came of a message under way, and how much is complete:
 *
 *     under way ──the last byte came──▶ not taken ──the loop took the message──▶ gone
 *         └──the connection ends──▶ gone   └──the connection ends──▶ orphaned ──the loop saw the end──▶ gone
 *
 * A loop that is behind holds up large messages: their connections are not read. When all messages together
 * are too much nevertheless, the connection goes that has held most of a message for longest: whoever sends a
 * request has sent it soon.
 *
 * Parts of a message are one message here: libzmq would keep them without end, unseen by the loop, and takes
 * up to 8 KiB for the smallest. In a CURVE connection they cannot be seen, and count as messages not taken.
 *
 * A descriptor may be used again while messages of its last connection are not taken. Taking those is put
 * down to the new connection, which has so much more to send, once.
 *
 * With a subscriber's connection libzmq forgets where its subscriptions came from, those too that the loop
 * has not taken yet: accepting one of them then leaves an entry behind for a connection that is not there. So
 * the loop asks here first, and the descriptor of such a connection is not used again before the loop has
 * caught up.
 *
 * Subscriptions are counted in bytes (subscriber.h). Nothing gives those back but the connection's end, and
 * new ones are let in at a rate: 140,000 a second, with connections that come and go, kept the loop busy with
 * libzmq's books. Over CURVE a PING is not seen, and whose key it is only the loop can say. */

#include "broker/wire/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker/wire/intake_table.h"
#include "broker/wire/reader.h"
#include "broker/wire/worker_intake.h"
#include "common/clock.h"

#define SMALL_BYTES 4096 /* a message that is in nobody's way */

/* Frame headers are not counted, what CURVE adds to a message is; so that a message takes off no less than it
 * put on, it takes off a little more. */
#define TAKEN_SLACK 64

/* Not taken since the loop last saw the end: from here on it is behind. It takes connections in turn, so a
 * small message waits for one of each connection that has one: a few large ones, not one of everybody's. */
#define BEHIND_BYTES ((size_t)8 << 20)

_Static_assert(WORKER_INTAKE_FILES == INTAKE_MAX_FILES, "workers' connections have descriptors like others");

static bool has_messages(const struct connection *connection)
{
    return connection->kind == INTAKE_MESSAGES || connection->kind == INTAKE_MESSAGES_CURVE;
}

static size_t own_share(const struct connection *connection)
{
    return connection->kind == INTAKE_SUBSCRIPTIONS ? INTAKE_SUBSCRIBER_BYTES : INTAKE_SUBSCRIBER_CURVE_BYTES;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- messages ---- */

static struct connection *held_longest(void)
{
    struct connection *longest = NULL;
    for (struct connection *c = intake_table; c < intake_table + intake.end; c++)
        if (intake_held(c) > SMALL_BYTES && (!longest || c->held_ns < longest->held_ns))
            longest = c;
    return longest;
}

/* False when the connection itself must go. */
static bool make_room(struct connection *connection)
{
    while (intake.held > INTAKE_MAX_BYTES) {
        struct connection *longest = held_longest();
        if (!longest || longest == connection)
            return intake_refuse(connection, INTAKE_ALL_BYTES);
        intake_refuse(longest, INTAKE_ALL_BYTES);
        intake_close(longest);
        shutdown((int)(longest - intake_table), SHUT_RDWR);
    }
    return intake_held(connection) <= INTAKE_MAX_CONNECTION_BYTES ||
           intake_refuse(connection, INTAKE_CONNECTION_BYTES);
}

/* A frame begins, or so many bytes of it came. */
static void take_frame(struct connection *connection, size_t n)
{
    connection->under_way += n;
    intake.held += n;
    if (connection->zmtp.left > 0 || connection->n_parts > 0)
        return;
    connection->not_taken += connection->under_way;
    intake.behind += connection->under_way;
    connection->under_way = 0;
}

/* Of a frame that begins: libzmq would keep any of them for who has no right to be here. */
static bool says_too_much(const struct connection *connection)
{
    return connection->kind == INTAKE_MESSAGES_CURVE && !connection->handshake.let_in &&
           (intake_held(connection) > HANDSHAKE_MAX_BYTES || connection->zmtp.left > HANDSHAKE_MAX_BYTES);
}

/* False when the connection must go. */
static bool follow(struct connection *connection, const uint8_t *bytes, size_t n)
{
    enum zmtp_what what;
    for (size_t i = 0, step; i < n; i += step) {
        step = zmtp_take(&connection->zmtp, bytes + i, n - i, &what);
        if (what == ZMTP_BROKEN)
            return intake_refuse(connection, INTAKE_NO_ZMTP);
        if (what == ZMTP_HEADER) {
            connection->n_parts = connection->zmtp.flags & ZMTP_MORE ? (uint8_t)(connection->n_parts + 1) : 0;
            if (connection->n_parts >= INTAKE_MAX_PARTS)
                return intake_refuse(connection, INTAKE_PARTS);
            if (says_too_much(connection))
                return intake_refuse(connection, INTAKE_NOT_LET_IN);
            if (intake_held(connection) <= SMALL_BYTES)
                connection->held_ns = clock_ns();
        }
        if (what != ZMTP_NOTHING)
            take_frame(connection, what == ZMTP_BODY ? step : 0);
    }
    return make_room(connection);
}

/* True when the connection is not to be read now. */
static bool waits(const struct connection *connection)
{
    return has_messages(connection) && !connection->closed && connection->under_way > SMALL_BYTES &&
           intake.behind > BEHIND_BYTES;
}

/* ---- both ---- */

/* How many bytes may be read now; *ret_why if none. */
static size_t allowed(struct connection *connection, enum intake_reason *ret_why)
{
    enum subscriber_bound bound = SUBSCRIBER_OF_ALL;
    if (connection->closed)
        return 0;
    if (has_messages(connection))
        return SIZE_MAX;
    size_t may = subscriber_may_send(&intake.subscribers, &connection->subscriber, clock_ns(), &bound);
    *ret_why = bound == SUBSCRIBER_OF_ALL   ? INTAKE_SUBSCRIPTIONS_BYTES
               : bound == SUBSCRIBER_OF_KEY ? INTAKE_KEY_BYTES
                                            : INTAKE_NO_KEY;
    return may;
}

static bool received(struct connection *connection, const void *bytes, size_t n)
{
    if (has_messages(connection))
        return follow(connection, bytes, n);
    size_t allowance = 0;
    if (connection->kind == INTAKE_SUBSCRIPTIONS) {
        enum ping_verdict verdict = ping_look(&connection->ping, &connection->zmtp, bytes, n, &allowance);
        if (verdict != PING_FINE)
            return intake_refuse(connection, verdict == PING_TIMED ? INTAKE_TIMED_PING : INTAKE_NO_ZMTP);
    }
    subscriber_sent(&intake.subscribers, &connection->subscriber, n, allowance);
    return true;
}

static void forget(struct connection *connection)
{
    intake.held -= connection->under_way;
    intake.orphaned += connection->not_taken;
    if (intake_is_subscriber(connection)) {
        subscriber_leave(&intake.subscribers, &connection->subscriber);
        intake.shards[connection->shard]--;
    }
    *connection = (struct connection){0};
}

/* The bytes that may be read now; else -errno. */
static ssize_t before_reading(struct connection *connection, size_t len)
{
    pthread_mutex_lock(&intake.lock);
    bool must_wait = waits(connection);
    enum intake_reason why = INTAKE_OTHER;
    size_t may = smaller(smaller(len, allowed(connection, &why)), SSIZE_MAX);
    if (may == 0 && !connection->closed && why == INTAKE_NO_KEY &&
        subscriber_is_awaited(&intake.subscribers, clock_ns())) {
        must_wait = true;
    } else if (may == 0 && !connection->closed) {
        intake_refuse(connection, why);
        intake_close(connection);
    }
    pthread_mutex_unlock(&intake.lock);
    return must_wait ? -EAGAIN : may == 0 ? -ECONNRESET : (ssize_t)may;
}

/* Whether the connection may stay. */
static bool after_reading(struct connection *connection, const void *bytes, size_t n)
{
    pthread_mutex_lock(&intake.lock);
    bool stays = !connection->closed && received(connection, bytes, n);
    if (!stays && !connection->closed)
        intake_close(connection);
    pthread_mutex_unlock(&intake.lock);
    return stays;
}

static atomic_uint ended; /* listeners, since the loop had caught up */

/* Whether the connection may be seen to be over. It is asked for again at once, and says the same. */
static bool may_end(struct connection *connection)
{
    if (!connection || has_messages(connection) || connection->ends)
        return true;
    if (atomic_load(&ended) >= INTAKE_ENDS_AT_ONCE)
        return false;
    atomic_fetch_add(&ended, 1);
    connection->ends = true;
    return true;
}

/* Whatever comes of a connection that subscribed may end it: a frame that is none, a byte too many. Those
 * that come do not wait for those that go. */
static bool may_be_read(const struct connection *connection)
{
    return !connection || !connection->heard || connection->ends || atomic_load(&ended) < INTAKE_ENDS_AT_ONCE;
}

/* ---- what libzmq calls ---- */

/* What is to come is asked for again at once. */
static ssize_t fail(int error)
{
    if (error == EAGAIN)
        reader_pause();
    errno = error;
    return -1;
}

ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
    if (worker_intake_has(fd))
        return worker_intake_recv(fd, bytes, len, flags);
    struct connection *connection = intake_counted(fd);
    if (connection)
        reader_is_here();
    if (!may_be_read(connection))
        return fail(EAGAIN);
    ssize_t may = connection ? before_reading(connection, len) : (ssize_t)len;
    if (may < 0)
        return fail((int)-may);
    ssize_t n = syscall(SYS_recvfrom, fd, bytes, (size_t)may, flags, NULL, NULL);
    if ((n == 0 || (n < 0 && errno == ECONNRESET)) && !may_end(connection))
        return fail(EAGAIN);
    if (connection && n > 0 && !after_reading(connection, bytes, (size_t)n))
        return fail(ECONNRESET);
    return n;
}

/* On the thread that reads the connection. */
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    struct connection *connection = intake_counted(fd);
    ssize_t n = syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
    if (n > 0 && connection && connection->kind == INTAKE_MESSAGES_CURVE && !connection->handshake.let_in)
        handshake_sent(&connection->handshake, bytes, (size_t)n);
    return n;
}

int listen(int fd, int backlog)
{
    if (fd >= 0 && fd < INTAKE_MAX_FILES)
        intake_table[fd] = (struct connection){.kind = intake.listening_for, .listens = true};
    intake.last_listener = fd;
    return (int)syscall(SYS_listen, fd, backlog);
}

int intake_share_listener(unsigned shard)
{
    struct connection *listener = intake_counted(intake.last_listener);
    if (!listener)
        return -EBADF;
    /* libzmq's are not, as a connection that it is told of is always there; here another may have it. */
    int flags = fcntl(intake.last_listener, F_GETFL);
    if (flags < 0 || fcntl(intake.last_listener, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    int fd = fcntl(intake.last_listener, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (fd >= INTAKE_MAX_FILES) {
        close(fd);
        return -EMFILE;
    }
    intake_table[fd] = *listener;
    intake_table[fd].shard = (uint8_t)shard;
    intake.n_shards = shard >= intake.n_shards ? shard + 1 : intake.n_shards;
    return fd;
}

bool intake_is_next(int listener)
{
    struct connection *connection = intake_counted(listener);
    if (!connection || has_messages(connection))
        return true;
    unsigned least = 0;
    pthread_mutex_lock(&intake.lock);
    for (unsigned i = 1; i < intake.n_shards; i++)
        if (intake.shards[i] < intake.shards[least])
            least = i;
    pthread_mutex_unlock(&intake.lock);
    return connection->shard == least;
}

int close(int fd)
{
    if (worker_intake_has(fd))
        worker_intake_close(fd);
    struct connection *connection = intake_counted(fd);
    bool subscriber = connection && intake_is_subscriber(connection);
    if (subscriber && !connection->ends)
        atomic_fetch_add(&ended, 1);
    if (connection) {
        pthread_mutex_lock(&intake.lock);
        forget(connection);
        if (subscriber) {
            connection->next_parted = intake.parted;
            intake.parted = fd + 1;
        }
        pthread_mutex_unlock(&intake.lock);
    }
    if (!subscriber)
        return (int)syscall(SYS_close, fd);
    shutdown(fd, SHUT_RDWR); /* for the other end this is all */
    return 0;
}

/* What parted before the last time has been seen by the loop in the turn since. */
static void close_parted(void)
{
    pthread_mutex_lock(&intake.lock);
    int fd = intake.parted_before - 1;
    intake.parted_before = intake.parted;
    intake.parted = 0;
    pthread_mutex_unlock(&intake.lock);
    while (fd >= 0) {
        int next = intake_table[fd].next_parted - 1;
        syscall(SYS_close, fd);
        fd = next;
    }
}

void intake_caught_up(void)
{
    atomic_store(&ended, 0);
    close_parted();
}

bool intake_stands(int fd)
{
    if (fd < 0 || fd >= INTAKE_MAX_FILES)
        return true;
    pthread_mutex_lock(&intake.lock);
    bool stands = intake_is_subscriber(&intake_table[fd]);
    intake_table[fd].heard |= stands;
    pthread_mutex_unlock(&intake.lock);
    return stands;
}

void intake_listen_for(enum intake_kind kind)
{
    intake.listening_for = kind;
}

void intake_accepted(int fd, int listener)
{
    if (!intake_counted(listener) || fd < 0 || fd >= INTAKE_MAX_FILES)
        return;
    pthread_mutex_lock(&intake.lock);
    struct connection *connection = &intake_table[fd];
    *connection = (struct connection){.kind = intake_counted(listener)->kind,
                                      .shard = intake_counted(listener)->shard,
                                      .used_ns = clock_ns()};
    intake.shards[connection->shard] += intake_is_subscriber(connection);
    if (intake_is_subscriber(connection))
        subscriber_enter(&connection->subscriber, own_share(connection),
                         connection->kind == INTAKE_SUBSCRIPTIONS_KEYS);
    intake.end = fd >= intake.end ? fd + 1 : intake.end;
    pthread_mutex_unlock(&intake.lock);
}

void intake_taken(int fd, size_t bytes)
{
    if (fd < 0 || fd >= INTAKE_MAX_FILES || worker_intake_has(fd))
        return;
    pthread_mutex_lock(&intake.lock);
    struct connection *connection = &intake_table[fd];
    size_t off = smaller(connection->not_taken, bytes + TAKEN_SLACK);
    connection->not_taken -= off;
    intake.held -= off;
    intake.behind -= smaller(intake.behind, bytes);
    if (intake_held(connection) > SMALL_BYTES)
        connection->held_ns = clock_ns();
    pthread_mutex_unlock(&intake.lock);
}

void intake_emptied(void)
{
    /* What was orphaned before the loop last saw the end, the loop has seen now, or libzmq dropped it. */
    pthread_mutex_lock(&intake.lock);
    intake.held -= intake.orphaned_before;
    intake.orphaned_before = intake.orphaned;
    intake.orphaned = 0;
    intake.behind = 0;
    pthread_mutex_unlock(&intake.lock);
}
