/* SPDX-License-Identifier: MIT */
/* See zap.h.
 *
 * libzmq's thread puts a question to inproc://zeromq.zap.01 in the middle of a handshake and goes on with
 * others until the answer is there, so the loop may take its time. A connection that is refused gets an error
 * and is closed; that of a client that has not shown to own its key never comes so far.
 *
 * A question has eight parts on the wire: a delimiter, version, number, domain, address, routing id,
 * mechanism and the key. */

#include "broker/links/zap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amount.h"
#include "common/clock.h"
#include "common/log.h"

#define ENDPOINT "inproc://zeromq.zap.01"
#define DOMAIN   "quern"
#define VERSION  "1.0"
#define BATCH    256

enum { SENDER, DELIMITER, ASKED_VERSION, NUMBER, ASKED_DOMAIN, ADDRESS, ROUTING_ID, MECHANISM, KEY, PARTS };

int zap_init(struct zap *zap, void *context, struct client_keys *keys, struct error *err)
{
    *zap = (struct zap){.keys = keys, .socket = zmq_socket(context, ZMQ_ROUTER)};
    int r = zap->socket ? socket_news_init(zap->socket, &zap->news) : -errno;
    if (r == 0 && zmq_bind(zap->socket, ENDPOINT) < 0)
        r = -errno;
    return r < 0 ? error_set(err, r, ENDPOINT ": %s", zmq_strerror(-r)) : 0;
}

void zap_deinit(struct zap *zap)
{
    if (zap->socket)
        zmq_close(zap->socket);
    *zap = (struct zap){0};
}

int zap_guard(void *socket, struct error *err)
{
    if (zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, DOMAIN, sizeof DOMAIN - 1) < 0)
        return error_set(err, -errno, "client-keys: %s", zmq_strerror(errno));
    return 0;
}

static bool is(zmq_msg_t *part, const char *text)
{
    size_t len = strlen(text);
    return zmq_msg_size(part) == len && memcmp(zmq_msg_data(part), text, len) == 0;
}

/* NULL: it is refused. */
static const struct client_key *judge(struct zap *zap, zmq_msg_t *parts)
{
    if (!is(&parts[ASKED_VERSION], VERSION) || !is(&parts[ASKED_DOMAIN], DOMAIN) ||
        !is(&parts[MECHANISM], "CURVE") || zmq_msg_size(&parts[KEY]) != CLIENT_KEY_BYTES)
        return NULL;
    return client_keys_find(zap->keys, zmq_msg_data(&parts[KEY]));
}

static void send_text(void *socket, const char *text, int more)
{
    zmq_send(socket, text, strlen(text), more | ZMQ_DONTWAIT);
}

/* Whoever is gone meanwhile is sent nothing: the socket drops it. */
static void reply(struct zap *zap, zmq_msg_t *parts, const struct client_key *key)
{
    char number[16] = "";
    if (key)
        snprintf(number, sizeof number, "%" PRIu32, key->number);
    zmq_send(zap->socket, zmq_msg_data(&parts[SENDER]), zmq_msg_size(&parts[SENDER]),
             ZMQ_SNDMORE | ZMQ_DONTWAIT);
    send_text(zap->socket, "", ZMQ_SNDMORE);
    send_text(zap->socket, VERSION, ZMQ_SNDMORE);
    zmq_send(zap->socket, zmq_msg_data(&parts[NUMBER]), zmq_msg_size(&parts[NUMBER]),
             ZMQ_SNDMORE | ZMQ_DONTWAIT);
    send_text(zap->socket, key ? "200" : "400", ZMQ_SNDMORE);
    send_text(zap->socket, key ? "OK" : "no such client", ZMQ_SNDMORE);
    send_text(zap->socket, number, ZMQ_SNDMORE);
    send_text(zap->socket, "", 0);
}

static void count_refused(struct zap *zap, zmq_msg_t *address)
{
    int len = (int)(zmq_msg_size(address) < sizeof zap->from ? zmq_msg_size(address) : sizeof zap->from - 1);
    snprintf(zap->from, sizeof zap->from, "%.*s", len, (const char *)zmq_msg_data(address));
    zap->refused++;
}

/* The parts that come, all of them read; those beyond PARTS are dropped. False when there is no message. */
static bool receive(struct zap *zap, zmq_msg_t parts[PARTS], int *ret_n)
{
    int n = 0, more = 1;
    for (; more; n++) {
        zmq_msg_t beyond, *part = n < PARTS ? &parts[n] : &beyond;
        if (n >= PARTS)
            zmq_msg_init(&beyond);
        int r = zmq_msg_recv(part, zap->socket, ZMQ_DONTWAIT);
        if (r < 0 && n == 0)
            socket_news_over(&zap->news);
        more = r >= 0 && zmq_msg_more(part);
        if (n >= PARTS)
            zmq_msg_close(&beyond);
        if (r < 0)
            break;
    }
    *ret_n = n;
    return n > 0;
}

static bool answer_one(struct zap *zap)
{
    zmq_msg_t parts[PARTS];
    int n;
    for (int i = 0; i < PARTS; i++)
        zmq_msg_init(&parts[i]);
    bool any = receive(zap, parts, &n);
    if (n == PARTS) {
        const struct client_key *key = judge(zap, parts);
        if (!key)
            count_refused(zap, &parts[ADDRESS]);
        reply(zap, parts, key);
    }
    for (int i = 0; i < PARTS; i++)
        zmq_msg_close(&parts[i]);
    return any;
}

bool zap_answer(struct zap *zap)
{
    int n = 0;
    while (zap->socket && n < BATCH && answer_one(zap))
        n++;
    return n == BATCH;
}

void zap_report(struct zap *zap, uint64_t now)
{
    if (zap->refused == zap->said || now - zap->said_ns < CLOCK_NS_PER_S)
        return;
    log_warn("rejected %s of clients whose keys are not in %s, the last from %s",
             amount_of(zap->refused - zap->said, "connection").text, zap->keys->folder, zap->from);
    zap->said = zap->refused;
    zap->said_ns = now;
}

uint32_t zap_key_of(zmq_msg_t *message)
{
    const char *number = zmq_msg_gets(message, "User-Id");
    return number ? (uint32_t)strtoul(number, NULL, 10) : 0;
}
