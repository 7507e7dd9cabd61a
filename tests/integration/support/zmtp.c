/* SPDX-License-Identifier: MIT */
/* ZMTP 3.0 without security: a greeting of 64 bytes, a READY command, then frames. */

#include "tests/integration/support/zmtp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"

#define GREETING_BYTES 64
#define WAIT_MS        10000

int zmtp_connect(const char *rundir, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", rundir, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

bool zmtp_write(int fd, const void *bytes, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, (const char *)bytes + at, len - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool zmtp_promise(int fd, uint8_t flags, uint64_t len)
{
    uint8_t header[9] = {flags | ZMTP_LARGE};
    for (int i = 0; i < 8; i++)
        header[8 - i] = (uint8_t)(len >> 8 * i);
    return zmtp_write(fd, header, sizeof header);
}

bool zmtp_send(int fd, uint8_t flags, const void *body, size_t len)
{
    uint8_t header[2] = {flags, (uint8_t)len};
    bool sent = len < 256 ? zmtp_write(fd, header, sizeof header) : zmtp_promise(fd, flags, len);
    return sent && zmtp_write(fd, body, len);
}

static bool read_some(int fd, void *bytes, size_t len, int ms)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    return poll(&readable, 1, ms) > 0 && recv(fd, bytes, len, 0) > 0;
}

bool zmtp_greet(int fd, const char *type)
{
    uint8_t greeting[GREETING_BYTES] = {0xff, [9] = 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    uint8_t ready[64] = "\5READY\13Socket-Type\0\0\0", sink[256];
    size_t len = strlen(type), at = 6 + 12 + 4, heard = 0;
    ready[at - 1] = (uint8_t)len;
    memcpy(ready + at, type, len);
    if (!zmtp_write(fd, greeting, sizeof greeting) || !zmtp_send(fd, ZMTP_COMMAND, ready, at + len))
        return false;
    /* Its READY comes last, and only then does it take in what is not a handshake. */
    while (heard < GREETING_BYTES + 2 && read_some(fd, sink, 1, WAIT_MS))
        heard++;
    return heard == GREETING_BYTES + 2;
}

int zmtp_open(const char *rundir, const char *name, const char *type)
{
    int fd = zmtp_connect(rundir, name);
    if (fd >= 0 && zmtp_greet(fd, type))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

bool zmtp_closes(int fd, int ms)
{
    uint8_t sink[4096];
    uint64_t until = clock_ns() + (uint64_t)ms * CLOCK_NS_PER_MS;
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    for (;;) {
        uint64_t now = clock_ns();
        if (poll(&readable, 1, now < until ? (int)((until - now) / CLOCK_NS_PER_MS) : 0) <= 0)
            return false;
        if (recv(fd, sink, sizeof sink, 0) <= 0)
            return true;
    }
}
