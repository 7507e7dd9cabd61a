/* SPDX-License-Identifier: MIT */
/* The client's life: where the pool is, whether it may be trusted, the sockets, the session; and the end of
 * it all.
 *
 * Two sockets of a ZeroMQ context of its own: a DEALER for messages and answers, a SUB for frames. The SUB is
 * subscribed to the whole session before it is connected anywhere; where to, the broker says. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "client/lib/loop.h"
#include "client/lib/core/outgoing.h"
#include "client/lib/question.h"
#include "client/lib/session.h"
#include "common/files/certificate.h"
#include "common/files/rundir.h"

#define PATIENCE_DEFAULT_NS (30 * CLOCK_NS_PER_S)
#define PING_DEFAULT_NS     (1 * CLOCK_NS_PER_S)
#define PING_LEAST_MS       10
#define CONNECT_MS          1000 /* for TCP: else a lost SYN is repeated after 1, 2, 4 … s when a host is back */
#define RECONNECT_MS        100 /* at most: 20, 40 and 80 ms come first. A broker that is replaced is soon back */
#define SILENT_NS           (3 * CLOCK_NS_PER_S) /* without a word a broker counts as away */

struct keys { /* as the caller named them; NULL: none */
    const char *server, *client;
};

/* The endpoint of what the caller named. */
static int resolve(const char *wanted, char ret_endpoint[256], struct error *err)
{
    char folder[RUNDIR_PATH_MAX + 1];
    if (wanted && (strncmp(wanted, "ipc://", 6) == 0 || strncmp(wanted, "tcp://", 6) == 0)) {
        if (strlen(wanted) >= 256)
            return error_set(err, -ENAMETOOLONG, "endpoint %.80s… is too long", wanted);
        strcpy(ret_endpoint, wanted);
        return 0;
    }
    if (wanted && wanted[0] != '/' && wanted[0] != '.' && access(wanted, F_OK) < 0)
        return error_set(err, -EINVAL,
                         "%.200s is not an endpoint: ipc://PATH, tcp://HOST:PORT, or a run directory",
                         wanted);
    int r = rundir_path(wanted, folder, err);
    if (r < 0)
        return r;
    char socket_path[RUNDIR_PATH_MAX + 16];
    snprintf(socket_path, sizeof socket_path, "%s/frontend", folder);
    r = rundir_check(folder, err);
    if (r < 0 && r != -ENOENT)
        return r;
    if (r == 0 && access(socket_path, F_OK) < 0)
        r = -errno;
    if (r == -ENOENT)
        return error_set(err, r, "no pool is running in %s (%s does not exist)", folder, socket_path);
    if (r < 0)
        return error_set(err, r, "%s: %s", socket_path, strerror(-r));
    snprintf(ret_endpoint, 256, "ipc://%s", socket_path);
    return 0;
}

/* False, with errno, when libzmq does not take it. */
static bool set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

/* The key itself, or the one in the file of that name. */
static int find_server_key(const char *named, struct certificate *ret_server, struct error *err)
{
    if (access(named, F_OK) == 0 || !certificate_is_key(named)) {
        int r = certificate_read(named, ret_server, err);
        return r == -ENOENT
                   ? error_set(err, r, "server key \"%s\" is neither a file nor %d characters of Z85", named,
                               CERTIFICATE_KEY_LEN)
                   : r;
    }
    strcpy(ret_server->public_key, named);
    return 0;
}

/* The client's own pair: of its certificate, or one for this connection. */
static int find_own_key(const char *path, struct certificate *ret_own, struct error *err)
{
    char belongs[CERTIFICATE_KEY_LEN + 1];
    int r = path ? certificate_read_secret(path, ret_own, err) : 0;
    if (!path && zmq_curve_keypair(ret_own->public_key, ret_own->secret_key) < 0)
        return error_set(err, -errno, "CURVE: %s", zmq_strerror(errno));
    if (r < 0)
        return error_prefix(err, r, "client key");
    /* It would be refused, and nobody would know why. */
    if (path &&
        (zmq_curve_public(belongs, ret_own->secret_key) < 0 || strcmp(belongs, ret_own->public_key) != 0))
        return error_set(err, -EINVAL, "client key: the public and the secret key of %s are not a pair",
                         path);
    return 0;
}

/* A pool that does not know this client's key says so in the handshake, of which libzmq tells a monitor. */
static int watch_handshakes(struct quern *client, struct error *err)
{
    static const char endpoint[] = "inproc://handshakes";
    const int events = ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                       ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
    if (zmq_socket_monitor(client->dealer, endpoint, events) == 0)
        client->handshakes = zmq_socket(client->context, ZMQ_PAIR);
    if (!client->handshakes || zmq_connect(client->handshakes, endpoint) < 0)
        return error_set(err, -errno, "ZeroMQ: %s", zmq_strerror(errno));
    return 0;
}

/* Both sockets speak CURVE with the broker's key and a key pair of this client's own. */
static int encrypt(struct quern *client, const struct keys *keys, struct error *err)
{
    void *const sockets[] = {client->dealer, client->stream};
    struct certificate server = {0}, own = {0};
    if (strncmp(client->endpoint, "tcp://", 6) != 0)
        return error_set(err, -EINVAL, "%s is not a TCP endpoint and takes no key", client->endpoint);
    int r = find_server_key(keys->server, &server, err);
    if (r == 0)
        r = find_own_key(keys->client, &own, err);
    if (r == 0)
        r = watch_handshakes(client, err);
    for (int i = 0; i < 2 && r == 0; i++)
        if (zmq_setsockopt(sockets[i], ZMQ_CURVE_SERVERKEY, server.public_key, CERTIFICATE_KEY_LEN + 1) < 0 ||
            zmq_setsockopt(sockets[i], ZMQ_CURVE_PUBLICKEY, own.public_key, CERTIFICATE_KEY_LEN + 1) < 0 ||
            zmq_setsockopt(sockets[i], ZMQ_CURVE_SECRETKEY, own.secret_key, CERTIFICATE_KEY_LEN + 1) < 0)
            r = error_set(err, -errno, "CURVE: %s", zmq_strerror(errno));
    explicit_bzero(&server, sizeof server);
    explicit_bzero(&own, sizeof own);
    return r;
}

/* A machine that starts anew closes no connection. The DEALER finds out when it says something; the stream
 * never says anything, so TCP asks for it, well within the patience. */
static bool keep_alive(void *socket)
{
    return set_int(socket, ZMQ_TCP_KEEPALIVE, 1) && set_int(socket, ZMQ_TCP_KEEPALIVE_IDLE, 5) &&
           set_int(socket, ZMQ_TCP_KEEPALIVE_INTVL, 2) && set_int(socket, ZMQ_TCP_KEEPALIVE_CNT, 5);
}

/* Data that is not acknowledged for this long ends the connection, and another one is tried at once. TCP
 * alone would send it again at times that double: after a cut of ten seconds, up to ten seconds later. */
#define UNACKNOWLEDGED_MS 1000

/* What both sockets have. */
static bool set_common(void *socket, bool is_v6)
{
    const int64_t largest = PROTO_MAX_ANSWER_BYTES;
    return zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest) == 0 &&
           set_int(socket, ZMQ_CONNECT_TIMEOUT, CONNECT_MS) && set_int(socket, ZMQ_RECONNECT_IVL, 20) &&
           set_int(socket, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MS) && set_int(socket, ZMQ_IPV6, is_v6) &&
           set_int(socket, ZMQ_TCP_MAXRT, UNACKNOWLEDGED_MS) && keep_alive(socket);
}

/* None may be left out: without a limit of its own a socket holds up quern_free for as long as nobody takes
 * its last message. */
static bool set_options(const struct quern *client)
{
    /* For an address only: of a name that has one of each kind, libzmq would take the one of IPv6. */
    const bool is_v6 = strncmp(client->endpoint, "tcp://[", 7) == 0;
    return set_int(client->dealer, ZMQ_LINGER, 200) /* the goodbye */ &&
           set_int(client->dealer, ZMQ_SNDHWM, 4096) && set_int(client->dealer, ZMQ_RCVHWM, 4096) &&
           set_int(client->stream, ZMQ_LINGER, 0) && set_int(client->stream, ZMQ_RCVHWM, 65536) &&
           set_common(client->dealer, is_v6) && set_common(client->stream, is_v6);
}

static int make_sockets(struct quern *client, const struct keys *keys, struct error *err)
{
    client->context = zmq_ctx_new();
    if (client->context)
        client->dealer = zmq_socket(client->context, ZMQ_DEALER);
    if (client->dealer)
        client->stream = zmq_socket(client->context, ZMQ_SUB);
    if (!client->stream || !set_options(client) ||
        socket_news_init(client->dealer, &client->dealer_news) < 0 ||
        socket_news_init(client->stream, &client->stream_news) < 0)
        return error_set(err, -errno, "ZeroMQ: %s", zmq_strerror(errno));
    int r = keys->server ? encrypt(client, keys, err) : 0;
    if (!keys->server && keys->client)
        r = error_set(err, -EINVAL, "a client key requires the pool's server key");
    if (r < 0)
        return r;
    if (zmq_setsockopt(client->stream, ZMQ_SUBSCRIBE, &client->session, sizeof client->session) < 0 ||
        zmq_connect(client->dealer, client->endpoint) < 0)
        return error_set(err, -errno, "%s: %s", client->endpoint, zmq_strerror(errno));
    return 0;
}

/* Who cannot be decrypted is dropped without a word, so what it may have been is all that can be said. */
static int no_answer(const struct quern *client, bool encrypted, int timeout_ms, struct error *err)
{
    const char *hint = "";
    if (client->state == SESSION_JOIN)
        return error_set(err, -ETIMEDOUT,
                         "the broker at %s responds, but its stream %s does not (waited %d ms)",
                         client->endpoint, client->stream_endpoint, timeout_ms);
    if (encrypted)
        hint = "; the server key may belong to another pool";
    else if (strncmp(client->endpoint, "tcp://", 6) == 0)
        hint = "; it may require a server key";
    return error_set(err, -ETIMEDOUT, "no broker responds at %s (waited %d ms%s)", client->endpoint,
                     timeout_ms, hint);
}

static void begin_session(struct quern *client)
{
    client->now = client->heard_ns = client->answered_ns = client->timers_ns = clock_ns();
    session_start(client);
}

static int await_session(struct quern *client, int timeout_ms, struct error *err)
{
    uint64_t start = client->now;
    while (client->state != SESSION_OPEN) {
        int r = loop_round(client, 10);
        if (r < 0)
            return error_set(err, r, "%s", r == -EINTR ? "interrupted" : client->broken_err.text);
        if (clock_ns() - start >= (uint64_t)timeout_ms * CLOCK_NS_PER_MS)
            return no_answer(client, client->handshakes != NULL, timeout_ms, err);
    }
    return 0;
}

int quern_connect(const char *endpoint, int timeout_ms, struct quern **ret_client,
                  struct quern_error *ret_err)
{
    return quern_connect_curve(endpoint, NULL, NULL, timeout_ms, ret_client, ret_err);
}

/* Connects, and does not wait. The client is there on failure too, for quern_free. */
static int begin(const char *endpoint, struct keys keys, struct quern **ret_client, struct error *err)
{
    struct quern *client = *ret_client = calloc(1, sizeof *client);
    if (!client)
        return -ENOMEM;
    client->session = state_random_id();
    client->patience_ns = PATIENCE_DEFAULT_NS;
    client->ping_every_ns = PING_DEFAULT_NS;
    client->watched = -1;
    client->limits = PROTO_LIMITS; /* until the pool has told its own */
    int r = message_decoder_new(&client->decoder);
    if (r == 0)
        r = message_decoder_new(&client->frame_decoder);
    if (r == 0)
        r = resolve(endpoint, client->endpoint, err);
    if (r == 0)
        r = make_sockets(client, &keys, err);
    if (r == 0)
        begin_session(client);
    return r;
}

int quern_connect_curve(const char *endpoint, const char *server_key, const char *client_key, int timeout_ms,
                        struct quern **ret_client, struct quern_error *ret_err)
{
    struct error err = {0};
    struct quern *client;
    int r = begin(endpoint, (struct keys){server_key, client_key}, &client, &err);
    if (r == 0)
        r = await_session(client, timeout_ms, &err);
    if (r < 0) {
        quern_free(client);
        return state_say(ret_err, r, &err);
    }
    *ret_client = client;
    return 0;
}

int quern_connect_begin(const char *endpoint, const char *server_key, const char *client_key,
                        struct quern **ret_client, struct quern_error *ret_err)
{
    struct error err = {0};
    struct quern *client;
    int r = begin(endpoint, (struct keys){server_key, client_key}, &client, &err);
    if (r < 0) {
        quern_free(client);
        return state_say(ret_err, r, &err);
    }
    *ret_client = client;
    return 0;
}

bool quern_is_open(const struct quern *client)
{
    return client->state == SESSION_OPEN && client->now - client->heard_ns < SILENT_NS;
}

struct quern *quern_free(struct quern *client)
{
    if (!client)
        return NULL;
    if (client->dealer && client->opened_before)
        outgoing_bye(client);
    else if (client->dealer)
        set_int(client->dealer, ZMQ_LINGER, 0); /* there is no goodbye to wait for */
    questions_drop_all(client);
    struct request *request, *next;
    HASH_ITER(hh, client->requests, request, next)
    {
        state_remove_request(client, request);
    }
    if (client->handshakes)
        zmq_close(client->handshakes);
    if (client->stream)
        zmq_close(client->stream);
    if (client->dealer)
        zmq_close(client->dealer);
    if (client->context)
        zmq_ctx_term(client->context);
    message_decoder_free(client->decoder);
    message_decoder_free(client->frame_decoder);
    buffer_deinit(&client->out);
    buffer_deinit(&client->taken);
    session_forget_models(client);
    free(client->status_memory);
    free(client->trace_memory);
    free(client->profile_memory);
    free(client->trim_memory);
    ids_deinit(&client->tokens);
    buffer_deinit(&client->content);
    buffer_deinit(&client->spelled);
    buffer_deinit(&client->pieces);
    buffer_deinit(&client->hashes);
    buffer_deinit(&client->uses);
    buffer_deinit(&client->embedding);
    buffer_deinit(&client->awaited);
    free(client);
    return NULL;
}

void quern_set_patience(struct quern *client, uint32_t milliseconds)
{
    client->patience_ns = milliseconds * CLOCK_NS_PER_MS;
}

void quern_set_ping(struct quern *client, uint32_t milliseconds)
{
    client->ping_every_ns = (milliseconds < PING_LEAST_MS ? PING_LEAST_MS : milliseconds) * CLOCK_NS_PER_MS;
}

void quern_follow_load(struct quern *client)
{
    client->asks_load = true;
}

const struct quern_load *quern_load(const struct quern *client)
{
    return client->has_load ? &client->load : NULL;
}

uint64_t quern_silence(const struct quern *client)
{
    return (clock_ns() - client->answered_ns) / CLOCK_NS_PER_MS;
}

uint32_t quern_failed_handshakes(const struct quern *client)
{
    return client->failed_handshakes;
}

const struct quern_model *quern_models(const struct quern *client, size_t *ret_n)
{
    *ret_n = client->n_models;
    return client->models;
}

struct quern_id quern_session(const struct quern *client)
{
    struct quern_id id;
    memcpy(id.bytes, client->session.bytes, sizeof id.bytes);
    return id;
}
