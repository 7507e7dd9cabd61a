/* SPDX-License-Identifier: MIT */
/* See notify.h. What is told is how things are, not what happened: a manager whose socket was full learns the
 * newest state at the next turn, and nothing piles up. The address is kept and not connected to, because a
 * manager that was started anew has another socket at the same path. */

#include "supervisor/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/amount.h"
#include "common/clock.h"
#include "common/number.h"

#define AGAIN_NS   (100 * CLOCK_NS_PER_MS) /* until what could not be told is tried again */
#define NS_PER_US  1000u
#define USEC_MOST  (UINT64_MAX / NS_PER_US / 2)
#define TEXT_BYTES 160

/* A path, or behind "@" a name of Linux's abstract sockets, which fills the address without a zero. */
static int read_address(struct notify *notify, const char *text, struct error *err)
{
    size_t length = strlen(text);
    if (text[0] != '/' && text[0] != '@')
        return error_set(err, -EAFNOSUPPORT,
                         "NOTIFY_SOCKET: \"%s\" is neither a path nor an abstract socket (@NAME)", text);
    if (length < 2 || length >= sizeof notify->address.sun_path)
        return error_out_of_range(err, -EINVAL, "NOTIFY_SOCKET: length", (int64_t)length, 2,
                                  sizeof notify->address.sun_path - 1);
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, text, length);
    notify->address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (text[0] == '@')
        notify->address.sun_path[0] = 0;
    else
        notify->address_size++;
    return 0;
}

static int read_watchdog(struct notify *notify, const char *usec, const char *pid, struct error *err)
{
    uint64_t us, owner;
    int r;
    if (!usec)
        return 0;
    if ((r = number_read(usec, 1, USEC_MOST, &us, err)) < 0)
        return error_prefix(err, r, "WATCHDOG_USEC");
    if (pid && (r = number_read(pid, 1, INT32_MAX, &owner, err)) < 0)
        return error_prefix(err, r, "WATCHDOG_PID");
    if (!pid || owner == (uint64_t)getpid()) /* else another process is watched */
        notify->every_ns = us * NS_PER_US / 2;
    return 0;
}

int notify_init(struct notify *notify, struct error *err)
{
    const char *name = getenv("NOTIFY_SOCKET");
    int r = 0;
    *notify = (struct notify){.fd = -1, .behind = true};
    if (name && name[0]) {
        r = read_address(notify, name, err);
        if (r == 0)
            r = read_watchdog(notify, getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"), err);
        if (r == 0 && (notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) < 0)
            r = error_set(err, -errno, "NOTIFY_SOCKET: socket: %s", strerror(errno));
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    return r;
}

static bool tell(const struct notify *notify, const char *text)
{
    return sendto(notify->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
                  (const struct sockaddr *)&notify->address, notify->address_size) >= 0;
}

static void tell_state(struct notify *notify, const struct notify_state *state)
{
    char text[TEXT_BYTES];
    const struct notify_state *told = &notify->told;
    if (!notify->behind && state->ready == told->ready && state->stopping == told->stopping &&
        state->workers_ready == told->workers_ready && state->workers == told->workers)
        return;
    snprintf(text, sizeof text, "%s%sSTATUS=%s%u of %s ready\n", state->ready ? "READY=1\n" : "",
             state->stopping ? "STOPPING=1\n" : "", state->stopping ? "Ends what was asked; " : "",
             state->workers_ready, amount_of(state->workers, "worker").text);
    notify->behind = !tell(notify, text);
    if (!notify->behind)
        notify->told = *state;
}

void notify_turn(struct notify *notify, const struct notify_state *state, uint64_t now)
{
    if (notify->fd < 0)
        return;
    tell_state(notify, state);
    if (notify->every_ns > 0 && notify->next_ns <= now)
        notify->next_ns = now + (tell(notify, "WATCHDOG=1\n") ? notify->every_ns : AGAIN_NS);
}

uint64_t notify_due(const struct notify *notify, uint64_t now)
{
    if (notify->fd < 0)
        return UINT64_MAX;
    uint64_t due = notify->every_ns > 0 ? notify->next_ns : UINT64_MAX;
    return notify->behind && now + AGAIN_NS < due ? now + AGAIN_NS : due;
}

void notify_deinit(struct notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}
