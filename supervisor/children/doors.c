/* SPDX-License-Identifier: MIT */
/* Unix sockets, made without libzmq, which takes them over in the worker (ZMQ_USE_FD).
 *
 * A broker may connect as soon as they listen: it waits in the kernel's queue until the model is loaded, and
 * so does each broker that comes after one that was killed meanwhile. */

#include "supervisor/children/doors.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SCHEME  "ipc://"
#define BACKLOG 64 /* brokers that came while one model was loaded */

static_assert(SUPERVISION_ENDPOINT_MAX > sizeof SCHEME + sizeof((struct sockaddr_un *)0)->sun_path,
              "an endpoint holds any path that a socket can have");

void doors_name(struct place_record *record, const char *rundir, uint64_t boot)
{
    snprintf(record->link, sizeof record->link, SCHEME "%s/link-%u-%llu-%u", rundir, record->index,
             (unsigned long long)boot, record->incarnation);
    snprintf(record->stream, sizeof record->stream, SCHEME "%s/worker-%u-%llu-%u", rundir, record->index,
             (unsigned long long)boot, record->incarnation);
}

static int listen_at(const char *endpoint, int *ret_fd, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = endpoint + strlen(SCHEME);
    if (strlen(path) >= sizeof address.sun_path)
        return error_set(err, -ENAMETOOLONG, "%s: %s", path, strerror(ENAMETOOLONG));
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        listen(fd, BACKLOG) < 0) {
        int r = -errno;
        if (fd >= 0)
            close(fd);
        return error_set(err, r, "%s: %s", path, strerror(-r));
    }
    *ret_fd = fd;
    return 0;
}

int doors_open(const struct place_record *record, struct doors *ret_doors, struct error *err)
{
    struct doors doors = {-1, -1};
    int r = listen_at(record->link, &doors.link_fd, err);
    if (r == 0)
        r = listen_at(record->stream, &doors.stream_fd, err);
    if (r == 0)
        *ret_doors = doors;
    else
        doors_close(&doors);
    return r;
}

void doors_close(struct doors *doors)
{
    if (doors->link_fd >= 0)
        close(doors->link_fd);
    if (doors->stream_fd >= 0)
        close(doors->stream_fd);
    *doors = (struct doors){-1, -1};
}

static void remove_path(const char *endpoint, int rundir_fd)
{
    if (strncmp(endpoint, SCHEME, strlen(SCHEME)) == 0)
        unlinkat(rundir_fd, strrchr(endpoint, '/') + 1, 0);
}

void doors_remove(const struct place_record *record, int rundir_fd)
{
    remove_path(record->link, rundir_fd);
    remove_path(record->stream, rundir_fd);
}
