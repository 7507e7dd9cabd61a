/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_EXCHANGE_H
#define GATEWAY_HTTP_EXCHANGE_H

/* One request of HTTP and its answer.
 *
 *   RECEIVING ──the whole body──▶ WORKING ──exchange_reply, _refuse──▶ ANSWERED ──sent──▶ gone
 *                                    ├──exchange_reply_made──▶ ANSWERED, made as it is sent ──▶ gone
 *                                    └──exchange_stream──▶ STREAMING ──exchange_end, sent──▶ gone
 *
 * A handler is called once, with the whole body, and answers then or later. While there is nothing to be sent
 * the connection is suspended. The server makes exchanges and frees them: when the answer was sent, or when
 * the client has gone; a worker on it hears of the second by exchange_when_gone, and of the first not at all.
 *
 * What is streamed waits in a buffer until the client takes it. One that leaves more than its bound there
 * when its socket takes no more is cut off, with a line in the log, and then it is gone: nobody else waits
 * for it, and it is never shown a stream with a hole. Whole answers have a bound in common with streams: when
 * clients together leave too much unread, those that read slowly are cut off, and if there are none, what is
 * new is refused. */

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "gateway/json/refusal.h"
#include "gateway/http/quotas.h"
#include "gateway/http/request_id.h"
#include "gateway/http/request_log.h"
#include "gateway/http/traceparent.h"
#include "gateway/http/unread.h"

struct gateway;
struct key;
struct exchange;

struct exchange_header {
    const char *name, *value;
};

typedef void exchange_handler(struct exchange *exchange);

enum exchange_state { EXCHANGE_RECEIVING, EXCHANGE_WORKING, EXCHANGE_ANSWERED, EXCHANGE_STREAMING };

/* Bytes that clients have not taken yet: of streams, of whole answers, and of what those are made from. */
struct stream_limits {
    size_t one;              /* most of one stream */
    struct unread unread;    /* of all together; it displaces by exchange_displace */
    uint64_t cut;            /* streams and answers that were cut off, so far */
    struct exchange *late;   /* utlist: streams with more than `one` */
    struct exchange *makers; /* utlist: those with a body that is made while it is taken */
    size_t made;             /* bytes of such bodies, since exchange_make_on */
    bool paced;              /* some of them wait for exchange_make_on */
};

/* What a body is made from, a part at a time. */
struct exchange_maker {
    bool (*make)(void *arg, struct json_out *out); /* appends the next few kB; false: those are the last */
    void (*free)(void *arg);                       /* called once, when the exchange ends */
    void *arg;
};

struct exchange {
    struct gateway *gateway;
    struct MHD_Connection *connection;
    struct stream_limits *limits;
    const char *method, *path, *version; /* the client's; they live as long as the exchange */
    const char *rest;                    /* of the path, behind the route's prefix */
    char peer[64];                       /* the client, for the log: address and port */
    enum family family;
    exchange_handler *handler;
    uint64_t begun_ns;
    char traceparent[TRACEPARENT_BYTES]; /* the client's; "": none */
    char request_id[REQUEST_ID_BYTES];   /* the client's, or made here */
    struct key_quotas quotas;            /* of its key, as the pool told them last */
    struct request_record record;        /* what was done for it */
    struct key *key;                     /* its API key; NULL: there are no keys, or it needs none */
    struct key *held_key;                /* of which it holds a place, for `held_tokens`; NULL: of none */
    uint64_t held_tokens;

    enum exchange_state state;
    struct buffer body;  /* of the request */
    size_t body_counted; /* bytes of it that count in exchange_bodies */
    size_t received;     /* bytes of it, dropped ones included */
    bool refused;        /* before the body has come: by this */
    bool last;           /* no other request is read from its connection */
    struct refusal refusal;

    bool suspended;
    struct MHD_Response *response; /* made, and not handed over */
    bool queued;                   /* handed over */
    bool counted;                  /* among those that are being worked on */
    unsigned status;
    char allowed[32]; /* with 405: the methods that there are */
    uint32_t retry_after_s;

    struct buffer out;          /* of a stream, or a whole answer */
    struct unread_share unread; /* what of `out` and `held` is in memory */
    size_t held;                /* bytes that handlers keep for the answer, see exchange_hold */
    size_t taken;               /* of `out`, by the server */
    bool out_over;              /* nothing follows */
    bool late;                  /* it is in the list of those */
    struct exchange *next, *prev;
    bool gone; /* the client is, or was cut off */

    struct exchange_maker maker; /* of the body; all NULL: there is none */
    struct json_out made;        /* its part that is being taken */
    size_t made_taken;           /* of that */
    bool made_over;              /* it is the last */
    struct exchange *maker_next, *maker_prev;

    void (*on_gone)(void *arg);
    void *arg;
};

struct exchange *exchange_new(struct MHD_Connection *connection, struct stream_limits *limits);
struct exchange *exchange_free(struct exchange *exchange);

/* ---- for handlers ---- */

/* The value of a header of the request, or NULL. */
const char *exchange_request_header(const struct exchange *exchange, const char *name);

/* Answers with a body, whose memory is taken. The buffer is empty afterwards. */
void exchange_reply(struct exchange *exchange, unsigned status, const char *content_type,
                    struct buffer *body_take);

/* The same with a body that outlives the exchange, and more headers, [n_headers]. */
void exchange_reply_lasting(struct exchange *exchange, unsigned status, const char *content_type,
                            struct bytes body, const struct exchange_header *headers, size_t n_headers);

/* The same with JSON; where its memory ran out, with an error. */
void exchange_reply_json(struct exchange *exchange, unsigned status, struct json_out *json_take);

/* Answers with a body that is made while the client takes it, in chunks. The maker is the exchange's from
 * here on; what it holds in memory was counted by exchange_hold. */
void exchange_reply_made(struct exchange *exchange, unsigned status, const char *content_type,
                         const struct exchange_maker *maker);

/* Answers with an error in the form of the client's family. */
void exchange_refuse(struct exchange *exchange, const struct refusal *refusal);

/* Counts so many more bytes that are kept in memory for the answer, until there is one (with a maker: until
 * the client has taken it). False: there is no room, even after slow readers were cut off; where this was the
 * one to make room, it has been refused, and its on_gone was called. */
bool exchange_hold(struct exchange *exchange, size_t bytes);

/* What a client is told when it returned false. */
void exchange_no_room(struct refusal *refusal);

/* Begins a stream: status 200. */
void exchange_stream(struct exchange *exchange, const char *content_type);

/* Adds to it. False when the client is gone or has just been cut off; its on_gone was called then. */
bool exchange_write(struct exchange *exchange, const void *data, size_t len);

/* Ends it after what was written. */
void exchange_end(struct exchange *exchange);

/* The answer is on its way, and with it goes the place of its key (key_take), which is given back when the
 * client has taken it all or is gone. NULL: nothing. */
void exchange_hold_key(struct exchange *exchange, struct key *key_take, uint64_t tokens);

/* `fn` is called once when the client is gone; the exchange must not be used after that. NULL: none.
 * Answering and ending unset it. */
void exchange_when_gone(struct exchange *exchange, void (*fn)(void *arg), void *arg);

/* ---- for the server ---- */

/* The client went away. */
void exchange_lost(struct exchange *exchange);

/* Nothing can be sent now: waits until there is. */
void exchange_suspend(struct exchange *exchange);

/* Bodies that are made while they are taken may go on: between two calls only so much of all of them is made
 * that others get their turn. */
void exchange_make_on(struct stream_limits *limits);

/* Makes room in stream_limits.unread: cuts the exchange off, or refuses it while its answer is being made. */
void exchange_displace(struct unread_share *share);

/* Cuts off clients that have left too much unread, after sockets were given what they accept: all of it if
 * `drained`, else only those with several times their bound. */
void exchange_cut_late(struct stream_limits *limits, bool drained);

#endif
