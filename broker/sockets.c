/* SPDX-License-Identifier: MIT */
/* Sockets: options, endpoints, and who may reach them.
 *
 * The run directory is ours alone (mode 0700), so its ipc sockets need no other guard. TCP does: on a
 * loopback address anyone on this machine may connect, which the user asked for; elsewhere anyone on the
 * network could, so that takes a CURVE certificate, by which clients know the server, and the keys of the
 * clients that it lets in, unless the user says that whoever knows the server's key may come. libzmq copies a
 * socket's options when it binds, so the ipc endpoints are bound first, in the clear, and the keys are set
 * afterwards, for TCP alone. */

#include "broker/settings/options_check.h"
#include "broker/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

#include "broker/wire/intake.h"
#include "broker/wire/worker_intake.h"
#include "common/files/certificate.h"
#include "common/system/listen.h"

/* Messages in flight to one client, of which fewer are handed over: a socket learns late what was taken. */
#define CLIENT_SEND_HIGH_WATER (4 * CREDIT_MESSAGES)

/* What the kernel may hold of one TCP connection, each way (it doubles this); left alone it goes up to
 * megabytes, of which a client at the end of a slow link has the oldest first. */
#define TCP_BUFFER_BYTES (256 << 10)

/* What CURVE adds to a message: its name, a nonce, a code of authentication, flags. libzmq's bound is of what
 * comes, not of what was said. */
#define CURVE_BYTES (8 + 8 + 16 + 1)

/* For a connection to say who it is; one that stays silent gives its descriptor back. */
#define HANDSHAKE_MS 10000

#define CLIENT_LINGER_MS    500
#define WORKER_RECONNECT_MS 10 /* its doors may be made a moment after we are told of them */

/* Of TCP: a client that vanished without a word (a lid that closed, a cable) is asked after a minute of
 * silence, and gone half a minute later. Its descriptors would be taken for good otherwise. */
#define KEEPALIVE_IDLE_S  60
#define KEEPALIVE_EVERY_S 10
#define KEEPALIVE_PROBES  3

/* What is refused is an error: bounds and rights rest on each of them. */
static int set_option(void *socket, int option, const void *value, size_t len, struct error *err)
{
    if (zmq_setsockopt(socket, option, value, len) < 0)
        return error_set(err, -errno, "socket option %d: %s", option, zmq_strerror(errno));
    return 0;
}

struct number_option {
    int option, value;
};

static int set_numbers(void *socket, const struct number_option *options, size_t n, struct error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = set_option(socket, options[i].option, &options[i].value, sizeof options[i].value, err);
    return r;
}

static int set_number(void *socket, int option, int value, struct error *err)
{
    return set_numbers(socket, &(struct number_option){option, value}, 1, err);
}

static int make_router(struct broker *broker, void **ret_socket, struct socket_news *ret_news,
                       int64_t largest, const struct number_option *options, size_t n, struct error *err)
{
    void *socket = zmq_socket(broker->context, ZMQ_ROUTER);
    if (!socket)
        return error_set(err, -errno, "socket: %s", zmq_strerror(errno));
    *ret_socket = socket;
    int r = socket_news_init(socket, ret_news);
    if (r < 0)
        return error_set(err, r, "socket: %s", zmq_strerror(-r));
    r = set_option(socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest, err);
    return r < 0 ? r : set_numbers(socket, options, n, err);
}

static int make_routers(struct broker *broker, struct error *err)
{
    const struct number_option clients[] = {{ZMQ_ROUTER_MANDATORY, 1},
                                            {ZMQ_SNDHWM, CLIENT_SEND_HIGH_WATER},
                                            {ZMQ_RCVHWM, INTAKE_MAX_AHEAD},
                                            {ZMQ_LINGER, CLIENT_LINGER_MS},
                                            {ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS}};
    /* Workers are bounded by broker/wire/worker_intake.h; and one that loads its model greets when it has. */
    const struct number_option workers[] = {
        {ZMQ_ROUTER_MANDATORY, 1}, {ZMQ_SNDHWM, 0},
        {ZMQ_RCVHWM, 0},           {ZMQ_LINGER, WORKER_LINK_LINGER_MS},
        {ZMQ_HANDSHAKE_IVL, 0},    {ZMQ_RECONNECT_IVL, WORKER_RECONNECT_MS}};
    int r = make_router(broker, &broker->client_link.router, &broker->client_link.news,
                        PROTO_MAX_REQUEST_BYTES, clients, sizeof clients / sizeof *clients, err);
    return r < 0 ? r
                 : make_router(broker, &broker->worker_link.router, &broker->worker_link.news,
                               PROTO_MAX_ANSWER_BYTES, workers, sizeof workers / sizeof *workers, err);
}

static int prepare_tcp(void *socket, bool is_v6, struct error *err)
{
    const struct number_option options[] = {{ZMQ_IPV6, is_v6},
                                            {ZMQ_RCVBUF, TCP_BUFFER_BYTES},
                                            {ZMQ_SNDBUF, TCP_BUFFER_BYTES},
                                            {ZMQ_TCP_KEEPALIVE, 1},
                                            {ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S},
                                            {ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_EVERY_S},
                                            {ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_PROBES}};
    return set_numbers(socket, options, sizeof options / sizeof *options, err);
}

static int bind_to(void *socket, const char *endpoint, enum intake_kind kind, struct error *err)
{
    intake_listen_for(kind);
    int r = zmq_bind(socket, endpoint) < 0 ? -errno : 0;
    intake_listen_for(INTAKE_ANYTHING);
    return r < 0 ? error_set(err, r, "%s: %s", endpoint, zmq_strerror(-r)) : 0;
}

/* All shards take connections from one socket that listens, each by a descriptor of its own: what is bound
 * for the first is shared with the others. */
static int bind_stream(struct stream *stream, const char *endpoint, enum intake_kind kind, struct error *err)
{
    int r = bind_to(stream->shards[0], endpoint, kind, err);
    for (unsigned i = 1; i < stream->n_shards && r == 0; i++) {
        int fd = intake_share_listener(i);
        if (fd < 0)
            return error_set(err, fd, "%s: %s", endpoint, strerror(-fd));
        r = set_number(stream->shards[i], ZMQ_USE_FD, fd, err);
        if (r < 0)
            close(fd);
        else
            r = bind_to(stream->shards[i], endpoint, kind, err);
    }
    return r;
}

static bool is_socket(int dir, const char *path)
{
    struct stat st;
    return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
}

static const char *path_of(const char *endpoint)
{
    return endpoint + strlen("ipc://");
}

/* libzmq removes what stands in the way of an ipc socket, whatever it is. */
static int check_free(const char *endpoint, struct error *err)
{
    const char *path = path_of(endpoint);
    if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 && !is_socket(AT_FDCWD, path))
        return error_set(err, -EEXIST, "%s exists and is not a socket of ours", path);
    return 0;
}

static int bind_ipc(struct broker *broker, struct error *err)
{
    const char *rundir = broker->options.rundir;
    snprintf(broker->endpoints.frontend, BROKER_ENDPOINT_MAX, "ipc://%s/frontend", rundir);
    snprintf(broker->endpoints.streams[0], BROKER_ENDPOINT_MAX, "ipc://%s/stream", rundir);
    broker->endpoints.n_streams = 1;
    int r = check_free(broker->endpoints.frontend, err);
    if (r == 0)
        r = check_free(broker->endpoints.streams[0], err);
    if (r == 0)
        r = bind_to(broker->client_link.router, broker->endpoints.frontend, INTAKE_MESSAGES, err);
    if (r == 0)
        r = bind_stream(&broker->stream, broker->endpoints.streams[0], INTAKE_SUBSCRIPTIONS, err);
    return r;
}

static int set_key(void *socket, const struct certificate *server, struct error *err)
{
    int r = set_number(socket, ZMQ_CURVE_SERVER, 1, err);
    if (r == 0)
        r = set_option(socket, ZMQ_CURVE_SECRETKEY, server->secret_key, CERTIFICATE_KEY_LEN + 1, err);
    return r < 0 ? error_prefix(err, r, "curve-key") : 0;
}

static int set_keys(struct broker *broker, struct error *err)
{
    const char *path = broker->options.curve_key;
    if (!zmq_has("curve"))
        return error_set(err, -ENOTSUP, "curve-key: this libzmq was built without CURVE");
    struct certificate server = {0};
    char belongs[CERTIFICATE_KEY_LEN + 1];
    const int64_t largest = PROTO_MAX_REQUEST_BYTES + CURVE_BYTES;
    int r = certificate_read_secret(path, &server, err);
    if (r < 0)
        return error_prefix(err, r, "curve-key");
    /* Clients that were given a public key of another pair would never hear from us, nor why. */
    if (zmq_curve_public(belongs, server.secret_key) < 0 || strcmp(belongs, server.public_key) != 0)
        r = error_set(err, -EINVAL, "curve-key: the public and the secret key of %s are not a pair", path);
    if (r == 0)
        r = set_key(broker->client_link.router, &server, err);
    if (r == 0)
        r = set_option(broker->client_link.router, ZMQ_MAXMSGSIZE, &largest, sizeof largest, err);
    for (unsigned i = 0; i < broker->stream.n_shards && r == 0; i++)
        r = set_key(broker->stream.shards[i], &server, err);
    explicit_bzero(&server, sizeof server);
    return r;
}

/* From here on only clients with keys of that folder get in. */
static int set_guard(struct broker *broker, struct error *err)
{
    int r = client_keys_init(&broker->client_keys, broker->options.client_keys, broker->now, err);
    if (r == 0)
        r = zap_init(&broker->zap, broker->context, &broker->client_keys, err);
    if (r == 0)
        r = zap_guard(broker->client_link.router, err);
    for (unsigned i = 0; i < broker->stream.n_shards && r == 0; i++)
        r = zap_guard(broker->stream.shards[i], err);
    if (r == 0)
        stream_guard(&broker->stream, &broker->client_keys, &broker->allowance);
    return r;
}

static int bind_tcp(struct broker *broker, struct error *err)
{
    char host[OPTIONS_TEXT_MAX + 1];
    uint16_t port;
    bool loopback;
    int r = options_split_tcp(broker->options.tcp, host, &port, &loopback, err);
    if (r < 0)
        return r;
    if (!loopback)
        r = options_check_guarded(&broker->options, err);
    if (r == 0 && broker->options.curve_key[0])
        r = set_keys(broker, err);
    if (r == 0 && broker->options.client_keys[0])
        r = set_guard(broker, err);
    if (r < 0)
        return r;
    if (strcmp(host, "localhost") == 0)
        strcpy(host, "127.0.0.1"); /* a bind takes addresses, not names */
    char endpoint[BROKER_ENDPOINT_MAX];
    enum intake_kind subscriptions = broker->options.client_keys[0] ? INTAKE_SUBSCRIPTIONS_KEYS
                                     : broker->options.curve_key[0] ? INTAKE_SUBSCRIPTIONS_CURVE
                                                                    : INTAKE_SUBSCRIPTIONS;
    enum intake_kind messages = broker->options.curve_key[0] ? INTAKE_MESSAGES_CURVE : INTAKE_MESSAGES;
    r = prepare_tcp(broker->client_link.router, host[0] == '[', err);
    for (unsigned i = 0; i < broker->stream.n_shards && r == 0; i++)
        r = prepare_tcp(broker->stream.shards[i], host[0] == '[', err);
    snprintf(endpoint, sizeof endpoint, "tcp://%s:%u", host, port);
    if (r == 0)
        r = bind_to(broker->client_link.router, endpoint, messages, err);
    snprintf(endpoint, sizeof endpoint, "tcp://%s:%u", host, port + 1u);
    if (r == 0)
        r = bind_stream(&broker->stream, endpoint, subscriptions, err);
    if (r < 0)
        return r;
    /* Clients are told where the stream is: a wildcard would lead each to itself. */
    if (broker->options.public_host[0])
        strcpy(host, broker->options.public_host);
    else if (listen_is_wildcard(bytes_of_string(host)))
        gethostname(host, sizeof host - 1);
    snprintf(broker->endpoints.streams[1], BROKER_ENDPOINT_MAX, "tcp://%s:%u", host, port + 1u);
    broker->endpoints.n_streams = 2;
    return 0;
}

int sockets_bind(struct broker *broker, struct error *err)
{
    broker->context = zmq_ctx_new();
    if (!broker->context)
        return error_set(err, -errno, "libzmq: %s", zmq_strerror(errno));
    worker_intake_prepare(broker->context);
    int r = make_routers(broker, err);
    if (r == 0)
        r = stream_init(&broker->stream, broker->context, stream_shards_for(broker->most_connections),
                        broker->secret, err);
    for (unsigned i = 0; i < broker->stream.n_shards && r == 0; i++)
        r = set_number(broker->stream.shards[i], ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS, err);
    if (r == 0)
        r = bind_ipc(broker, err);
    if (r == 0 && broker->options.tcp[0])
        r = bind_tcp(broker, err);
    return r;
}

static bool is_of_a_pool(const char *name)
{
    return strncmp(name, "worker-", 7) == 0 || strncmp(name, "link-", 5) == 0 ||
           strcmp(name, "frontend") == 0 || strcmp(name, "stream") == 0;
}

void sockets_clear(int rundir_fd)
{
    int fd = openat(rundir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    if (!dir)
        return;
    struct dirent *entry;
    while ((entry = readdir(dir)))
        if (is_of_a_pool(entry->d_name) && is_socket(dirfd(dir), entry->d_name))
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

void sockets_unlink(const struct broker *broker)
{
    const char *endpoints[] = {broker->endpoints.frontend, broker->endpoints.streams[0]};
    for (int i = 0; i < 2; i++) {
        const char *name = endpoints[i][0] ? strrchr(endpoints[i], '/') + 1 : NULL;
        if (name && is_socket(broker->supervisor.rundir_fd, name))
            unlinkat(broker->supervisor.rundir_fd, name, 0);
    }
}
