/* SPDX-License-Identifier: MIT */
/* See server.h.
 *
 * What is watched: libmicrohttpd's own epoll, the reader of bodies, and each connection once more, for its
 * client's leaving (connection.c). Whatever changes here for libmicrohttpd, a connection resumed above all,
 * is seen by its next run, and the loop runs it before it waits. */

#include "gateway/server.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/system/listen.h"
#include "common/log.h"
#include "gateway/core/reclaim.h"
#include "gateway/forms/body_reader.h"
#include "gateway/head.h"
#include "gateway/receive.h"
#include "gateway/http/tls.h"

#define CONNECTION_BYTES (32u << 10) /* of libmicrohttpd for one: bounds the head of a request */
#define IDLE_S           120         /* a client that takes nothing of its answer for so long is cut off */
#define TLS_PRIORITIES   "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"
#define EVENTS           64
#define RESERVE          64 /* descriptors of our own: the pool's sockets, and the next ones; files */
#define ROUNDS           64 /* of libmicrohttpd, which gives each socket 32 kB at most, before the pool's turn */
#define ROUNDS_NS        (5 * CLOCK_NS_PER_MS) /* the same, where many sockets have something */
#define HANDSHAKE_ROUNDS 8                     /* instead, while a handshake of TLS is incomplete … */
#define HANDSHAKE_MS     2                     /* … and so long a pause after them */
#define LOOK_NS          CLOCK_NS_PER_S        /* between two looks whether memory can be returned */

struct server {
    struct MHD_Daemon *daemon;
    int mhd_epoll, listen_fd;
    bool listens;
    char address[LISTEN_ADDRESS];
    char machine[HOST_NAME_MAX + 1]; /* its name */
    struct tls tls;                  /* libmicrohttpd keeps pointers to it */
    uint64_t looked_ns;              /* the last look at our memory */
    struct reclaim reclaim;
    struct receiver receiver;
};

static void log_mhd(void *cls, const char *format, va_list args)
{
    char line[512];
    vsnprintf(line, sizeof line, format, args);
    line[strcspn(line, "\n")] = 0;
    log_debug("libmicrohttpd: %s", line);
}

/* What libmicrohttpd is told besides; without TLS nothing. */
static int tls_options(struct server *server, struct MHD_OptionItem ret_items[4], struct error *err)
{
    const struct options *options = &server->receiver.gateway->options;
    ret_items[0] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    if (!options->tls_cert)
        return 0;
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return error_set(err, -ENOTSUP, "this libmicrohttpd was built without TLS");
    int r = tls_read(options->tls_cert, options->tls_key, &server->tls, err);
    if (r < 0)
        return r;
    ret_items[0] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, server->tls.certificate.text};
    ret_items[1] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, server->tls.key.text};
    ret_items[2] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, TLS_PRIORITIES};
    ret_items[3] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    return 0;
}

/* How many connections there can be: the limit of open files is raised as far as it may be, and what it then
 * leaves is said if it is less. Nobody's connection may be the last descriptor, or the pool's session could
 * not be opened again. */
static unsigned room_for(unsigned connections)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)connections + RESERVE;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return connections;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return connections;
    rlim_t reserve = limit.rlim_cur / 2 < RESERVE ? limit.rlim_cur / 2 : RESERVE;
    unsigned room = (unsigned)(limit.rlim_cur - reserve);
    log_warn("room for %u connections, not %u: the limit of open files is low (ulimit -n, LimitNOFILE)", room,
             connections);
    return room;
}

static int start_daemon(struct server *server, struct error *err)
{
    const struct options *options = &server->receiver.gateway->options;
    struct MHD_OptionItem tls[4];
    int r = tls_options(server, tls, err);
    if (r < 0)
        return r;
    unsigned flags = options->tls_cert ? MHD_USE_TLS : 0;
    struct connections *connections = &server->receiver.connections;
    connections->counters = &server->receiver.gateway->counters;
    connections->most = room_for(options->connections);
    connections->addresses.most = options->address_connections == OPTIONS_HALF ? (connections->most + 1) / 2
                                                                               : options->address_connections;
    /* clang-format off */
    server->daemon = MHD_start_daemon(
        flags | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0,
        receive_accept, &server->receiver, receive_access, &server->receiver,
        MHD_OPTION_EXTERNAL_LOGGER, log_mhd, NULL,
        MHD_OPTION_LISTEN_SOCKET, server->listen_fd,
        MHD_OPTION_NOTIFY_COMPLETED, receive_completed, &server->receiver,
        MHD_OPTION_NOTIFY_CONNECTION, receive_connection, &server->receiver,
        MHD_OPTION_URI_LOG_CALLBACK, head_target, NULL,
        MHD_OPTION_STRICT_FOR_CLIENT, head_strictness(),
        MHD_OPTION_CONNECTION_LIMIT, connections->most,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_ARRAY, tls,
        MHD_OPTION_END);
    /* clang-format on */
    if (!server->daemon && options->tls_cert)
        return error_set(err, -EINVAL, "%s and %s are not a matching certificate and key", options->tls_cert,
                         options->tls_key);
    if (!server->daemon)
        return error_set(err, -EIO, "libmicrohttpd cannot be started");
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (!info)
        return error_set(err, -EIO, "libmicrohttpd has no epoll");
    const int epoll_fd = server->receiver.connections.epoll_fd;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, info->epoll_fd, &event) < 0 ||
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, body_reader_fd(server->receiver.gateway->body_reader), &event) < 0)
        return error_set(err, -errno, "epoll_ctl: %s", strerror(errno));
    server->mhd_epoll = info->epoll_fd;
    server->listens = true;
    return 0;
}

/* The socket, which is the server's from here on. -errno with a reason. */
static int take_socket(const struct gateway *gateway, char ret_address[LISTEN_ADDRESS], struct error *err)
{
    bool open = gateway->options.open || gateway->keys.n > 0;
    int fd = (int)gateway->options.listen_fd, r = fd > 0 ? 0 : listen_passed(&fd, err);
    if (r < 0)
        return r;
    if (fd <= 0)
        return listen_on(gateway->options.listen, open, ret_address, err);
    r = listen_adopt(fd, open, ret_address, err);
    return r < 0 ? r : fd;
}

/* The names under which it is reached, for requests from browsers. */
static void know_names(struct server *server)
{
    const struct options *options = &server->receiver.gateway->options;
    struct origin_authority address;
    if (gethostname(server->machine, sizeof server->machine - 1) < 0)
        server->machine[0] = 0;
    server->receiver.origins = (struct origin_rules){
        .cors = options->cors,
        .hosts = options->hosts,
        .listen = options->listen,
        .machine = server->machine[0] ? server->machine : NULL,
        .loopback = origin_parse(bytes_of_string(server->address), &address) && address.loopback};
}

int server_start(struct gateway *gateway, struct server **ret_server, struct error *err)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server)
        return error_set(err, -ENOMEM, "out of memory");
    server->receiver.gateway = gateway;
    server->receiver.connections.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->listen_fd = take_socket(gateway, server->address, err);
    if (getrandom(&server->receiver.connections.addresses.seed, sizeof(uint64_t), 0) < 0)
        server->receiver.connections.addresses.seed = clock_ns();
    know_names(server);
    int r = server->listen_fd;
    if (server->receiver.connections.epoll_fd < 0)
        r = error_set(err, -errno, "epoll: %s", strerror(errno));
    if (r >= 0)
        r = start_daemon(server, err);
    if (r < 0) {
        server_stop(server);
        return r;
    }
    *ret_server = server;
    return 0;
}

struct server *server_stop(struct server *server)
{
    if (!server)
        return NULL;
    if (server->daemon) {
        /* Those that are suspended may not be there when it stops. */
        server_refuse_connections(server);
        server->receiver.closing = true;
        connections_lose_all(&server->receiver.connections);
        MHD_run(server->daemon);
        MHD_stop_daemon(server->daemon);
    } else if (server->listen_fd >= 0) {
        close(server->listen_fd);
    }
    if (server->receiver.connections.epoll_fd >= 0)
        close(server->receiver.connections.epoll_fd);
    tls_deinit(&server->tls);
    free(server);
    return NULL;
}

const char *server_address(const struct server *server)
{
    return server->address;
}

int server_watched(const struct server *server)
{
    return server->receiver.connections.epoll_fd;
}

/* It is only closed here, as others may listen on it. */
void server_refuse_connections(struct server *server)
{
    if (!server->listens)
        return;
    server->listens = false;
    int fd = MHD_quiesce_daemon(server->daemon);
    if (fd >= 0)
        close(fd);
}

void server_retire(struct server *server)
{
    server_refuse_connections(server);
    connections_retire(&server->receiver.connections, clock_ns());
}

bool server_is_deserted(const struct server *server)
{
    return server->receiver.connections.list == NULL;
}

/* What bursts took is returned to the system. */
static void give_memory_back(struct server *server, uint64_t now)
{
    if (now - server->looked_ns < LOOK_NS)
        return;
    server->looked_ns = now;
    if (reclaim_is_due(&server->reclaim, reclaim_held(), now))
        body_reader_tidy(server->receiver.gateway->body_reader);
}

/* Whether a handshake of TLS may be incomplete. As long as one is, libmicrohttpd 0.9 asks to be run again at
 * once even if nothing has arrived, so the loop would never wait. */
static bool shakes_hands(const struct receiver *receiver)
{
    return receiver->gateway->options.tls_cert && receiver->connections.queued[CONNECTION_FIRST_HEAD] > 0;
}

int server_run(struct server *server)
{
    const uint64_t begun = clock_ns();
    struct epoll_event events[EVENTS];
    struct stream_limits *streams = &server->receiver.gateway->streams;
    struct connections *connections = &server->receiver.connections;
    int n = epoll_wait(connections->epoll_fd, events, EVENTS, 0);
    for (int i = 0; i < n; i++)
        if (events[i].data.ptr)
            connection_hung_up(events[i].data.ptr);
    int timeout_ms = 0;
    body_reader_deliver(server->receiver.gateway->body_reader);
    exchange_make_on(streams);
    const int rounds = shakes_hands(&server->receiver) ? HANDSHAKE_ROUNDS : ROUNDS;
    for (int round = 0; timeout_ms == 0 && round < rounds && clock_ns() - begun < ROUNDS_NS; round++) {
        MHD_UNSIGNED_LONG_LONG left;
        bool full = connections->n >= connections->most;
        MHD_run(server->daemon);
        timeout_ms = MHD_get_timeout(server->daemon, &left) == MHD_YES && left < 1000 ? (int)left : 1000;
        if (full && connections->n < connections->most)
            timeout_ms = 0; /* it listens again when it runs the next time, and nothing else would wake us */
    }
    exchange_cut_late(streams, timeout_ms > 0);
    if (timeout_ms == 0 && rounds == HANDSHAKE_ROUNDS)
        timeout_ms = HANDSHAKE_MS; /* what comes meanwhile ends the pause */
    connections_expire(connections, begun, server->receiver.gateway->options.request_seconds);
    give_memory_back(server, begun);
    return streams->paced ? 0 : timeout_ms;
}
