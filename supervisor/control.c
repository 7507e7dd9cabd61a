/* SPDX-License-Identifier: MIT */
/* A few connections, each of which asks once. One that says nothing keeps its place until all are taken and
 * it is the one that has been silent for longest. */

#include "supervisor/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int control_open(struct control *control, const char *rundir, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *control = (struct control){.fd = -1};
    for (int i = 0; i < CONTROL_PEERS; i++)
        control->peers[i].fd = -1;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/" CONTROL_NAME, rundir);
    unlink(address.sun_path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(fd, CONTROL_PEERS) == 0) {
        control->fd = fd;
        return 0;
    }
    int r = -errno;
    if (fd >= 0)
        close(fd);
    return error_set(err, r, "%s: %s", address.sun_path, strerror(-r));
}

static void drop(struct control_peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    *peer = (struct control_peer){.fd = -1};
}

void control_close(struct control *control, int rundir_fd)
{
    if (control->fd < 0)
        return;
    for (int i = 0; i < CONTROL_PEERS; i++)
        drop(&control->peers[i]);
    close(control->fd);
    control->fd = -1;
    unlinkat(rundir_fd, CONTROL_NAME, 0);
}

nfds_t control_poll(const struct control *control, struct pollfd *ret_items)
{
    nfds_t n = 0;
    if (!control->deaf)
        ret_items[n++] = (struct pollfd){.fd = control->fd, .events = POLLIN};
    for (int i = 0; i < CONTROL_PEERS; i++)
        if (control->peers[i].fd >= 0)
            ret_items[n++] = (struct pollfd){.fd = control->peers[i].fd, .events = POLLIN};
    return n;
}

static void send_report(struct control_peer *peer, enum control_result result, const char *text)
{
    struct control_report report = {.version = CONTROL_VERSION, .result = result};
    snprintf(report.text, sizeof report.text, "%s", text);
    if (send(peer->fd, &report, sizeof report, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
        drop(peer);
    else if (result != CONTROL_PROGRESS)
        drop(peer);
}

void control_follow(struct control_peer *peer)
{
    peer->follows = true;
}

void control_refuse(struct control_peer *peer, const char *text)
{
    send_report(peer, CONTROL_FAILED, text);
}

void control_report(struct control *control, enum control_result result, const char *text)
{
    for (int i = 0; i < CONTROL_PEERS; i++)
        if (control->peers[i].fd >= 0 && control->peers[i].follows)
            send_report(&control->peers[i], result, text);
}

/* ---- who comes, and what they ask ---- */

/* A free place, or that of one who has not said what it wants; NULL: all of them wait for something. */
static struct control_peer *place_for_another(struct control *control)
{
    struct control_peer *silent = NULL;
    for (int i = 0; i < CONTROL_PEERS; i++) {
        struct control_peer *peer = &control->peers[i];
        if (peer->fd < 0)
            return peer;
        if (!peer->follows && (!silent || peer->order < silent->order))
            silent = peer;
    }
    if (silent)
        drop(silent);
    return silent;
}

/* accept4 is not libc's in this program: it is bounded, and made to wait, for the broker's clients. */
static void accept_others(struct control *control)
{
    int fd;
    control->deaf = false;
    while ((fd = accept(control->fd, NULL, NULL)) >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, O_NONBLOCK);
        struct control_peer *peer = place_for_another(control);
        if (peer)
            *peer = (struct control_peer){.fd = fd, .order = ++control->came};
        else
            close(fd);
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        control->deaf = true;
}

static bool is_known(const struct control_numbered_request *said, size_t size)
{
    uint32_t kind = said->request.kind;
    bool numbered = kind >= CONTROL_RELOAD_CONFIG && kind <= CONTROL_UNDRAIN;
    bool plain = kind == CONTROL_RELOAD || kind == CONTROL_RELOAD_GATEWAY;
    return size >= sizeof said->request && said->request.version == CONTROL_VERSION &&
           ((plain && size == sizeof said->request) || (numbered && size == sizeof *said));
}

/* True when it asks for something. */
static bool asks(struct control_peer *peer)
{
    struct control_numbered_request said = {.number = 0};
    ssize_t n = recv(peer->fd, &said, sizeof said, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        drop(peer);
        return false;
    }
    if (!is_known(&said, (size_t)n)) {
        control_refuse(peer, "unknown order: the pool is of a different version");
        return false;
    }
    if (peer->follows)
        return false;
    peer->kind = said.request.kind;
    peer->number = said.number;
    return true;
}

bool control_take(struct control *control, struct control_peer **ret_peer)
{
    accept_others(control);
    for (int i = 0; i < CONTROL_PEERS; i++) {
        if (control->peers[i].fd >= 0 && asks(&control->peers[i])) {
            *ret_peer = &control->peers[i];
            return true;
        }
    }
    return false;
}
