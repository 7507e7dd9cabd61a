/* SPDX-License-Identifier: MIT */
/* CurveZMQ as a client speaks it (RFC 26), with libsodium's boxes. S and C are the long-term keys of server
 * and client, S' and C' those of this connection:
 *
 *     greeting  ◀──▶  greeting
 *     HELLO      ──▶            C', a box of zeros from C' to S
 *                ◀──  WELCOME   in a box from S to C': S', a cookie
 *     INITIATE   ──▶            the cookie, in a box from C' to S': C, a box of C' and S from C to S'
 *                ◀──  READY     in a box; or ERROR where C is not known
 *     MESSAGE   ◀──▶  MESSAGE   each a frame without flags, which are inside
 */

#include "tests/integration/hostile/door.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>
#include <zmq.h>

#include "common/clock.h"
#include "tests/integration/support/zmtp.h"

#define KEY_BYTES      crypto_box_PUBLICKEYBYTES
#define NONCE_BYTES    crypto_box_NONCEBYTES
#define BOX_BYTES      crypto_box_MACBYTES /* that a box takes besides what is in it */
#define GREETING_BYTES 64
#define HELLO_BYTES    200
#define WELCOME_BYTES  168
#define COOKIE_BYTES   96
#define CURVE_BYTES    (8 + 8 + BOX_BYTES + 1) /* that a message takes besides its body */
#define WAIT_MS        10000

static const uint8_t ready_name[] = "\5READY";

static void be_gone(struct wire *wire)
{
    if (wire->fd >= 0)
        close(wire->fd);
    wire->fd = -1;
}

struct wire wire_connect(const struct door *door, const char *name)
{
    if (door->kind == DOOR_RUNDIR)
        return (struct wire){.fd = zmtp_connect(door->rundir, name)};
    const int port = door->port + (strcmp(name, "stream") == 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct wire wire = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const int at_once = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(wire.fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    if (wire.fd >= 0 && connect(wire.fd, (struct sockaddr *)&address, sizeof address) < 0)
        be_gone(&wire);
    return wire;
}

static bool read_whole(int fd, uint8_t *ret_bytes, size_t len)
{
    uint64_t until = clock_ns() + WAIT_MS * CLOCK_NS_PER_MS;
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    for (size_t at = 0; at < len;) {
        uint64_t now = clock_ns();
        if (now >= until || poll(&readable, 1, (int)((until - now) / CLOCK_NS_PER_MS) + 1) <= 0)
            return false;
        ssize_t n = recv(fd, ret_bytes + at, len - at, 0);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

/* ---- the handshake ---- */

static bool greet(struct wire *wire, const char *mechanism)
{
    uint8_t greeting[GREETING_BYTES] = {0xff, [9] = 0x7f, 3, 0};
    memcpy(greeting + 12, mechanism, strlen(mechanism));
    return zmtp_write(wire->fd, greeting, sizeof greeting);
}

/* A nonce of the bytes that its use prescribes and those that are sent along. */
static void make_nonce(uint8_t ret_nonce[NONCE_BYTES], const char *use, const uint8_t *sent)
{
    size_t len = strlen(use);
    memcpy(ret_nonce, use, len);
    memcpy(ret_nonce + len, sent, NONCE_BYTES - len);
}

/* The next number of those that are never used twice. */
static void count_nonce(struct wire *wire, uint8_t ret_sent[8])
{
    wire->nonce++;
    for (int i = 0; i < 8; i++)
        ret_sent[7 - i] = (uint8_t)(wire->nonce >> 8 * i);
}

struct curve_keys {
    uint8_t server[KEY_BYTES], own_public[KEY_BYTES], own_secret[KEY_BYTES]; /* long-term */
    uint8_t their_public[KEY_BYTES], public[KEY_BYTES], secret[KEY_BYTES];   /* of this connection */
    uint8_t cookie[COOKIE_BYTES];
};

static bool say_hello(struct wire *wire, const struct curve_keys *keys)
{
    static const uint8_t zeros[64];
    uint8_t hello[HELLO_BYTES] = "\5HELLO\1", nonce[NONCE_BYTES];
    memcpy(hello + 80, keys->public, KEY_BYTES);
    count_nonce(wire, hello + 112);
    make_nonce(nonce, "CurveZMQHELLO---", hello + 112);
    return crypto_box_easy(hello + 120, zeros, sizeof zeros, nonce, keys->server, keys->secret) == 0 &&
           zmtp_send(wire->fd, ZMTP_COMMAND, hello, sizeof hello);
}

static bool hear_welcome(struct wire *wire, struct curve_keys *keys)
{
    uint8_t frame[2 + WELCOME_BYTES], nonce[NONCE_BYTES], inside[KEY_BYTES + COOKIE_BYTES];
    if (!read_whole(wire->fd, frame, sizeof frame) || memcmp(frame + 2, "\7WELCOME", 8) != 0)
        return false;
    make_nonce(nonce, "WELCOME-", frame + 10);
    if (crypto_box_open_easy(inside, frame + 26, sizeof inside + BOX_BYTES, nonce, keys->server,
                             keys->secret) != 0)
        return false;
    memcpy(keys->their_public, inside, KEY_BYTES);
    memcpy(keys->cookie, inside + KEY_BYTES, COOKIE_BYTES);
    return crypto_box_beforenm(wire->key, keys->their_public, keys->secret) == 0;
}

static bool initiate(struct wire *wire, const struct curve_keys *keys, const char *type, bool falsely)
{
    uint8_t initiate[512] = "\10INITIATE", inside[256], vouched[2 * KEY_BYTES], nonce[NONCE_BYTES];
    uint8_t *metadata = inside + KEY_BYTES + 16 + sizeof vouched + BOX_BYTES;
    size_t len = strlen(type), at = 9 + COOKIE_BYTES, n = (size_t)(metadata - inside) + 12 + 4 + len;
    memcpy(inside, keys->own_public, KEY_BYTES);
    randombytes_buf(inside + KEY_BYTES, 16);
    make_nonce(nonce, "VOUCH---", inside + KEY_BYTES);
    memcpy(vouched, keys->public, KEY_BYTES);
    memcpy(vouched + KEY_BYTES, keys->server, KEY_BYTES);
    if (crypto_box_easy(inside + KEY_BYTES + 16, vouched, sizeof vouched, nonce, keys->their_public,
                        keys->own_secret) != 0)
        return false;
    memcpy(metadata, "\13Socket-Type\0\0\0", 15);
    metadata[15] = (uint8_t)len;
    memcpy(metadata + 16, type, len);
    memcpy(initiate + 9, keys->cookie, COOKIE_BYTES);
    count_nonce(wire, initiate + at);
    make_nonce(nonce, "CurveZMQINITIATE", initiate + at);
    if (crypto_box_easy_afternm(initiate + at + 8, inside, n, nonce, wire->key) != 0)
        return false;
    if (falsely)
        randombytes_buf(initiate + at + 8, n);
    return zmtp_send(wire->fd, ZMTP_COMMAND, initiate, at + 8 + n + BOX_BYTES);
}

static bool shake_curve(const struct door *door, struct wire *wire, const char *type, enum handshake far)
{
    uint8_t theirs[GREETING_BYTES];
    struct curve_keys keys;
    zmq_z85_decode(keys.server, door->server.public_key);
    zmq_z85_decode(keys.own_public, door->own.public_key);
    zmq_z85_decode(keys.own_secret, door->own.secret_key);
    crypto_box_keypair(keys.public, keys.secret);
    bool goes_on = greet(wire, "CURVE") && read_whole(wire->fd, theirs, sizeof theirs);
    if (far >= SHAKE_HELLO && goes_on)
        goes_on = say_hello(wire, &keys) && hear_welcome(wire, &keys);
    if (far >= SHAKE_FALSE_INITIATE && goes_on)
        goes_on = initiate(wire, &keys, type, far == SHAKE_FALSE_INITIATE);
    return goes_on;
}

/* Without waiting. */
static bool shake_in_the_clear(struct wire *wire, const char *type, enum handshake far)
{
    uint8_t ready[64] = "\5READY\13Socket-Type\0\0\0";
    size_t len = strlen(type), at = 6 + 12 + 4;
    ready[at - 1] = (uint8_t)len;
    memcpy(ready + at, type, len);
    if (!greet(wire, "NULL") || far < SHAKE_FALSE_INITIATE)
        return wire->fd >= 0;
    if (far == SHAKE_FALSE_INITIATE)
        randombytes_buf(ready, at);
    return zmtp_send(wire->fd, ZMTP_COMMAND, ready, at + len);
}

/* Whether it says READY now, and not ERROR. */
static bool hear_ready(int fd)
{
    uint8_t header[2], body[256];
    return read_whole(fd, header, sizeof header) && header[0] == ZMTP_COMMAND &&
           read_whole(fd, body, header[1]) && memcmp(body, ready_name, sizeof ready_name - 1) == 0;
}

/* The rest of a greeting in the clear comes before. */
static bool is_let_in(const struct door *door, struct wire *wire)
{
    uint8_t theirs[GREETING_BYTES];
    if (door->kind == DOOR_RUNDIR && !read_whole(wire->fd, theirs, sizeof theirs))
        return false;
    return hear_ready(wire->fd);
}

struct wire wire_shake(const struct door *door, const char *name, const char *type, enum handshake far)
{
    bool has_key = door->kind == DOOR_KNOWN_KEY || door->kind == DOOR_UNKNOWN_KEY;
    struct wire wire = wire_connect(door, name);
    bool shook = wire.fd >= 0 &&
                 (has_key ? shake_curve(door, &wire, type, far) : shake_in_the_clear(&wire, type, far));
    if (shook && far == SHAKE_ALL && !door_is_shut(door))
        shook = wire.let_in = is_let_in(door, &wire);
    wire.encrypts = has_key && far == SHAKE_ALL;
    if (!shook)
        be_gone(&wire);
    return wire;
}

struct wire wire_open(const struct door *door, const char *name, const char *type)
{
    return wire_shake(door, name, type, SHAKE_ALL);
}

/* ---- afterwards ---- */

bool wire_send(struct wire *wire, uint8_t flags, const void *body, size_t len)
{
    if (wire->fd < 0)
        return false;
    if (!wire->encrypts)
        return zmtp_send(wire->fd, flags, body, len);
    uint8_t nonce[NONCE_BYTES];
    uint8_t *inside = malloc(1 + len), *message = malloc(CURVE_BYTES + len);
    bool sent = inside && message;
    if (sent) {
        inside[0] = flags;
        memcpy(inside + 1, body, len);
        memcpy(message, "\7MESSAGE", 8);
        count_nonce(wire, message + 8);
        make_nonce(nonce, "CurveZMQMESSAGEC", message + 8);
        sent = crypto_box_easy_afternm(message + 16, inside, 1 + len, nonce, wire->key) == 0 &&
               zmtp_send(wire->fd, 0, message, CURVE_BYTES + len);
    }
    free(inside);
    free(message);
    return sent;
}

bool wire_promise(struct wire *wire, uint8_t flags, uint64_t len)
{
    return wire->fd >= 0 && zmtp_promise(wire->fd, flags, wire->encrypts ? CURVE_BYTES + len : len);
}

bool wire_write(struct wire *wire, const void *bytes, size_t len)
{
    return wire->fd >= 0 && zmtp_write(wire->fd, bytes, len);
}

bool wire_closes(struct wire *wire, int ms)
{
    uint8_t heard[4096];
    uint64_t until = clock_ns() + (uint64_t)ms * CLOCK_NS_PER_MS;
    struct pollfd readable = {.fd = wire->fd, .events = POLLIN};
    while (wire->fd >= 0) {
        uint64_t now = clock_ns();
        if (poll(&readable, 1, now < until ? (int)((until - now) / CLOCK_NS_PER_MS) : 0) <= 0)
            return false;
        ssize_t n = recv(wire->fd, heard, sizeof heard, 0);
        if (n <= 0)
            return true;
        wire->let_in |= memmem(heard, (size_t)n, ready_name, sizeof ready_name - 1) != NULL;
    }
    return true;
}

void wire_close(struct wire *wire)
{
    be_gone(wire);
    *wire = (struct wire){.fd = -1};
}
