/* SPDX-License-Identifier: MIT */
/* Sockets: options, endpoints, and who may reach them.
 *
 * The run directory is ours alone (mode 0700), so its ipc sockets need no other guard. TCP does: on a
 * loopback address anyone on this machine may connect, which the user asked for; elsewhere anyone on the
 * network could, so that takes a CURVE certificate, and clients must know its public key. libzmq copies a
 * socket's options when it binds, so the ipc endpoints are bound first, in the clear, and the keys are set
 * afterwards, for TCP alone. */

#include "broker/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <czmq.h>

/* Messages in flight to one client before its outbox fills, and from one before it is slowed down. */
#define CLIENT_HIGH_WATER 64

void sockets_prepare(void)
{
    zsys_handler_set(NULL);
}

static void set_int(void *socket, int option, int value)
{
    zmq_setsockopt(socket, option, &value, sizeof value);
}

static int make_router(struct broker *broker, void **ret_socket, int64_t largest, int mark, struct error *err)
{
    void *socket = zmq_socket(broker->context, ZMQ_ROUTER);
    if (!socket)
        return error_set(err, -errno, "socket: %s", zmq_strerror(errno));
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest);
    set_int(socket, ZMQ_ROUTER_MANDATORY, 1);
    set_int(socket, ZMQ_SNDHWM, mark);
    set_int(socket, ZMQ_LINGER, 500);
    *ret_socket = socket;
    return 0;
}

static int bind_to(void *socket, const char *endpoint, struct error *err)
{
    if (zmq_bind(socket, endpoint) < 0)
        return error_set(err, -errno, "%s: %s", endpoint, zmq_strerror(errno));
    return 0;
}

static int bind_ipc(struct broker *broker, struct error *err)
{
    const char *rundir = broker->options.rundir;
    snprintf(broker->frontend_endpoint, BROKER_ENDPOINT_MAX, "ipc://%s/frontend", rundir);
    snprintf(broker->backend_endpoint, BROKER_ENDPOINT_MAX, "ipc://%s/backend", rundir);
    snprintf(broker->stream_endpoints[0], BROKER_ENDPOINT_MAX, "ipc://%s/stream", rundir);
    broker->n_stream_endpoints = 1;
    int r = bind_to(broker->frontend, broker->frontend_endpoint, err);
    if (r == 0)
        r = bind_to(broker->backend, broker->backend_endpoint, err);
    if (r == 0)
        r = bind_to(broker->stream.socket, broker->stream_endpoints[0], err);
    return r;
}

static int set_keys(struct broker *broker, struct error *err)
{
    const char *path = broker->options.curve_key;
    if (!zmq_has("curve"))
        return error_set(err, -ENOTSUP, "curve-key: this libzmq was built without CURVE");
    zcert_t *certificate = zcert_load(path);
    static const uint8_t none[32];
    if (!certificate || memcmp(zcert_secret_key(certificate), none, sizeof none) == 0) {
        zcert_destroy(&certificate);
        return error_set(err, -EINVAL, "%s: not a CURVE certificate with a secret key", path);
    }
    void *sockets[] = {broker->frontend, broker->stream.socket};
    for (int i = 0; i < 2; i++) {
        set_int(sockets[i], ZMQ_CURVE_SERVER, 1);
        zmq_setsockopt(sockets[i], ZMQ_CURVE_SECRETKEY, zcert_secret_key(certificate), 32);
    }
    zcert_destroy(&certificate);
    return 0;
}

static int bind_tcp(struct broker *broker, struct error *err)
{
    char host[OPTIONS_TEXT_MAX + 1];
    uint16_t port;
    bool loopback;
    int r = options_split_tcp(broker->options.tcp, host, &port, &loopback, err);
    if (r < 0)
        return r;
    if (!loopback && broker->options.curve_key[0] == 0)
        return error_set(err, -EPERM, "tcp: %s is not a loopback address: give --curve-key or use 127.0.0.1",
                         broker->options.tcp);
    if (broker->options.curve_key[0])
        r = set_keys(broker, err);
    if (r < 0)
        return r;
    if (strcmp(host, "localhost") == 0)
        strcpy(host, "127.0.0.1"); /* a bind takes addresses, not names */
    char endpoint[BROKER_ENDPOINT_MAX];
    set_int(broker->frontend, ZMQ_IPV6, host[0] == '[');
    set_int(broker->stream.socket, ZMQ_IPV6, host[0] == '[');
    snprintf(endpoint, sizeof endpoint, "tcp://%s:%u", host, port);
    r = bind_to(broker->frontend, endpoint, err);
    snprintf(endpoint, sizeof endpoint, "tcp://%s:%u", host, port + 1u);
    if (r == 0)
        r = bind_to(broker->stream.socket, endpoint, err);
    if (r < 0)
        return r;
    /* Clients are told where the stream is: a wildcard would lead each to itself. */
    if (strcmp(host, "*") == 0 || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "[::]") == 0)
        gethostname(host, sizeof host - 1);
    snprintf(broker->stream_endpoints[1], BROKER_ENDPOINT_MAX, "tcp://%s:%u", host, port + 1u);
    broker->n_stream_endpoints = 2;
    return 0;
}

int sockets_bind(struct broker *broker, struct error *err)
{
    broker->context = zmq_ctx_new();
    if (!broker->context)
        return error_set(err, -errno, "libzmq: %s", zmq_strerror(errno));
    int r = make_router(broker, &broker->frontend, PROTO_MAX_REQUEST_BYTES, CLIENT_HIGH_WATER, err);
    if (r == 0)
        set_int(broker->frontend, ZMQ_RCVHWM, CLIENT_HIGH_WATER);
    /* Workers are bounded by what is assigned to them. */
    if (r == 0)
        r = make_router(broker, &broker->backend, PROTO_MAX_WORKER_BYTES, 0, err);
    if (r == 0)
        set_int(broker->backend, ZMQ_RCVHWM, 0);
    if (r == 0)
        r = stream_init(&broker->stream, broker->context, broker->secret, err);
    if (r == 0)
        r = bind_ipc(broker, err);
    if (r == 0 && broker->options.tcp[0])
        r = bind_tcp(broker, err);
    return r;
}

void sockets_clear(const char *rundir)
{
    DIR *dir = opendir(rundir);
    if (!dir)
        return;
    struct dirent *entry;
    while ((entry = readdir(dir)))
        if (strncmp(entry->d_name, "worker-", 7) == 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

void sockets_unlink(const struct broker *broker)
{
    const char *endpoints[] = {broker->frontend_endpoint, broker->backend_endpoint,
                               broker->stream_endpoints[0]};
    for (int i = 0; i < 3; i++)
        if (strncmp(endpoints[i], "ipc://", 6) == 0)
            unlink(endpoints[i] + 6);
}
