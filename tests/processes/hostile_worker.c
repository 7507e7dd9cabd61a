/* SPDX-License-Identifier: MIT */
/* See hostile_worker.h. */

#include "tests/processes/hostile_worker.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/integration/support/zmtp.h"

#define PIECE ((size_t)16 << 10)

static int take_connection(int door, const char *type)
{
    for (;;) {
        int fd = accept(door, NULL, NULL); /* the broker comes again and again */
        if (fd >= 0 && zmtp_greet(fd, type))
            return fd;
        if (fd >= 0)
            close(fd);
        else
            usleep(1000);
    }
}

static void __attribute__((noreturn)) end(void)
{
    raise(SIGKILL);
    for (;;)
        pause();
}

void hostile_parts(int door, const char *type)
{
    static const char part[PIECE];
    int fd = take_connection(door, type);
    for (size_t sent = 0; sent < HOSTILE_BYTES && zmtp_send(fd, ZMTP_MORE, part, PIECE); sent += PIECE)
        ;
    pause(); /* until the broker has it killed */
    end();
}

void hostile_beginnings(int door, const char *type)
{
    static const char begins[4u << 20];
    for (int i = 0; i < 24; i++) { /* in all more than may be held */
        int fd = take_connection(door, type);
        zmtp_promise(fd, 0, PROTO_MAX_ANSWER_BYTES);
        zmtp_write(fd, begins, sizeof begins);
        close(fd);
    }
    end();
}

void hostile_frames(int door, const uint8_t topic[PROTO_TOPIC_BYTES], struct bytes frame)
{
    static uint8_t many[1u << 20];
    size_t one = 2 + PROTO_TOPIC_BYTES + 2 + frame.len, n = 0;
    if (frame.len > 255)
        abort();
    for (; n + one <= sizeof many; n += one) {
        uint8_t *at = many + n;
        at[0] = ZMTP_MORE;
        at[1] = PROTO_TOPIC_BYTES;
        memcpy(at + 2, topic, PROTO_TOPIC_BYTES);
        at += 2 + PROTO_TOPIC_BYTES;
        at[0] = 0;
        at[1] = (uint8_t)frame.len;
        memcpy(at + 2, frame.data, frame.len);
    }
    int fd = take_connection(door, "XPUB");
    for (size_t sent = 0; sent < HOSTILE_BYTES && zmtp_write(fd, many, n); sent += n)
        ;
    end();
}
