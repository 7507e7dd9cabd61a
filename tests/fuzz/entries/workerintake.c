/* SPDX-License-Identifier: MIT */
/* Any bytes as what a worker sends, in pieces of any length: the broker's counting of them
 * (broker/wire/worker_intake.h) changes none, and what it holds against the worker, and judges of it, is what
 * a reading of the whole says. The first byte says how it is cut, and to which door the connection goes. */

#include "tests/fuzz/driver.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/wire/worker_intake.h"

#define WORKER   7
#define GREETING 64

static const enum worker_door doors[] = {WORKER_DOOR_LINK, WORKER_DOOR_STREAM};

static struct {
    struct sockaddr_un address;
    int fd;
} listeners[WORKER_DOORS];

static void remove_doors(void)
{
    for (int i = 0; i < WORKER_DOORS; i++)
        unlink(listeners[i].address.sun_path);
}

static void make_door(int i)
{
    listeners[i].address.sun_family = AF_UNIX;
    snprintf(listeners[i].address.sun_path, sizeof listeners[i].address.sun_path, "/tmp/quern-fuzz-%d-%d",
             (int)getpid(), i);
    listeners[i].fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(listeners[i].address.sun_path);
    if (listeners[i].fd < 0 ||
        bind(listeners[i].fd, (struct sockaddr *)&listeners[i].address, sizeof listeners[i].address) < 0 ||
        listen(listeners[i].fd, 1) < 0)
        abort();
}

struct reading {
    enum worker_intake_verdict verdict;
    size_t held;
};

/* What there is of one frame at data[at]; false: not even its header. */
struct frame {
    uint8_t flags;
    size_t header, there; /* bytes of its body */
    bool whole;
};

static bool read_frame(const uint8_t *data, size_t len, size_t at, struct frame *ret_frame)
{
    uint64_t body = 0;
    size_t header = data[at] & 2 ? 9 : 2;
    if (len - at < header)
        return false;
    for (size_t i = 1; i < header; i++)
        body = body << 8 | data[at + i];
    size_t left = len - at - header;
    *ret_frame = (struct frame){data[at], header, body < left ? (size_t)body : left, body <= left};
    return true;
}

static struct reading read_all(const uint8_t *data, size_t len, enum worker_door door)
{
    struct reading reading = {WORKER_INTAKE_FINE, 0};
    struct frame frame;
    unsigned parts = 0, most = door == WORKER_DOOR_LINK ? 1 : 2;
    if ((len > 0 && data[0] != 0xff) || (len > 9 && data[9] % 2 == 0) || (len > 10 && data[10] < 3))
        return (struct reading){WORKER_INTAKE_NO_ZMTP, 0};
    for (size_t at = GREETING; at < len && read_frame(data, len, at, &frame);
         at += frame.header + frame.there) {
        bool command = frame.flags & 4, more = frame.flags & 1;
        const uint8_t *body = data + at + frame.header;
        bool kept = frame.there > 0 && (body[0] == strlen("SUBSCRIBE") || body[0] == strlen("CANCEL"));
        parts += !command;
        if (!command && parts + more > most)
            reading.verdict =
                door == WORKER_DOOR_LINK ? WORKER_INTAKE_LINK_PARTS : WORKER_INTAKE_STREAM_PARTS;
        if (reading.verdict != WORKER_INTAKE_FINE)
            return reading;
        if (!command || !frame.whole || kept)
            reading.held += WORKER_INTAKE_PART_BYTES + frame.there;
        if (!command && frame.whole && !more)
            parts = 0;
    }
    return reading;
}

/* Sends a piece and reads what of it is let through. False when nothing is any more. */
static bool pass(int from, int to, const uint8_t *piece, size_t len)
{
    uint8_t got[4096];
    if (send(from, piece, len, MSG_NOSIGNAL) != (ssize_t)len)
        abort();
    for (size_t received = 0; received < len;) {
        ssize_t n = recv(to, got, sizeof got, MSG_DONTWAIT);
        if (n < 0 && errno == ECONNRESET)
            return false;
        if (n <= 0 || (size_t)n > len - received || memcmp(got, piece + received, (size_t)n) != 0)
            abort();
        received += (size_t)n;
    }
    return true;
}

static void begin(int i)
{
    char endpoint[128];
    if (listeners[0].fd == 0) {
        atexit(remove_doors);
        for (int k = 0; k < WORKER_DOORS; k++)
            make_door(k);
    }
    worker_intake_begin(WORKER);
    snprintf(endpoint, sizeof endpoint, "ipc://%s", listeners[i].address.sun_path);
    worker_intake_expect(WORKER, doors[i], endpoint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    int i = data[0] & 1;
    unsigned cut = data[0] >> 1;
    bool stays = true;
    size_t at = 1;
    begin(i);
    int to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(to, (struct sockaddr *)&listeners[i].address, sizeof listeners[i].address) < 0)
        abort();
    int from = accept(listeners[i].fd, NULL, NULL);
    while (stays && at < len) {
        size_t most = 1 + (cut = (cut * 75 + 74) & 0xffff) % 2000;
        size_t piece = len - at < most ? len - at : most;
        stays = pass(from, to, data + at, piece);
        at += piece;
    }
    struct reading reading = read_all(data + 1, at - 1, doors[i]);
    if (worker_intake_judge(WORKER) != reading.verdict || stays != (reading.verdict == WORKER_INTAKE_FINE))
        abort();
    if (stays && worker_intake_held(WORKER) != reading.held)
        abort();
    worker_intake_taken(WORKER, reading.held, 0);
    close(to);
    close(from);
    if (stays && worker_intake_held(WORKER) != 0)
        abort();
    return 0;
}
