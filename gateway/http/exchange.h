/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_EXCHANGE_H
#define GATEWAY_HTTP_EXCHANGE_H

/* One HTTP request and its answer.
 *
 *   RECEIVING ──the whole body──▶ WORKING ──exchange_reply, _refuse──▶ ANSWERED ──sent──▶ gone
 *                                    ├──exchange_reply_made──▶ ANSWERED, made as it is sent ──▶ gone
 *                                    └──exchange_stream──▶ STREAMING ──exchange_end, sent──▶ gone
 *
 * A handler is called once, with the whole body, and answers then or later. While there is nothing to send
 * the connection is suspended. The server creates exchanges, and frees them when the answer was sent or the
 * client has left; only in the second case does it tell the handler, through exchange_when_gone.
 *
 * Stream data waits in a buffer until the client takes it. A client whose socket takes no more and whose
 * buffer exceeds its bound is cut off, which is logged: no other client waits for it, and it never sees a
 * stream with a gap. Whole answers share a bound with streams: if clients together leave too much unread,
 * slow readers are cut off, and if there are none, new answers are rejected. */

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

/* Bounds on bytes that clients have not taken yet: of streams, whole answers, and their sources. */
struct stream_limits {
    size_t one;              /* limit of one stream */
    struct unread unread;    /* of all together; displaces with exchange_displace */
    uint64_t cut;            /* streams and answers cut off so far */
    struct exchange *late;   /* utlist: streams with more than `one` */
    struct exchange *makers; /* utlist: exchanges whose body is made while it is sent */
    size_t made;             /* bytes of such bodies since exchange_make_on */
    bool paced;              /* some of them wait for exchange_make_on */
};

/* Makes a body part by part. */
struct exchange_maker {
    bool (*make)(void *arg,
                 struct json_out *out); /* appends the next few kB; false: this was the last part */
    void (*free)(void *arg);            /* called once, when the exchange ends */
    void *arg;
};

struct exchange {
    struct gateway *gateway;
    struct MHD_Connection *connection;
    struct stream_limits *limits;
    const char *method, *path, *version; /* the client's; they live as long as the exchange */
    const char *rest;                    /* of the path, after the route's prefix */
    const char *route;                   /* the path of that route; NULL: no route has this path */
    char peer[64];                       /* the client, for the log: address and port */
    enum family family;
    exchange_handler *handler;
    uint64_t begun_ns;
    char traceparent[TRACEPARENT_BYTES]; /* the client's; "": none */
    char request_id[REQUEST_ID_BYTES];   /* the client's, or made here */
    struct key_quotas quotas;            /* of its key, as last reported by the pool */
    struct request_record record;        /* for the request log */
    struct key *key;                     /* its API key; NULL: there are no keys, or it needs none */
    struct key *held_key;                /* key whose place it holds, with `held_tokens`; NULL: none */
    uint64_t held_tokens;

    enum exchange_state state;
    struct buffer body;      /* of the request */
    size_t body_counted;     /* bytes of it that count in exchange_bodies */
    size_t received;         /* bytes of it, dropped ones included */
    bool refused;            /* before the body was complete */
    bool last;               /* no other request is read from its connection */
    struct refusal *refusal; /* why; NULL: not refused, or there was no memory for the reason */

    bool suspended;
    struct MHD_Response *response; /* made, but not passed to libmicrohttpd */
    bool queued;                   /* passed to it */
    bool counted;                  /* in gateway.working */
    unsigned status;
    char allowed[32]; /* with 405: the methods of the path */
    uint32_t retry_after_s;

    struct buffer out;          /* of a stream, or a whole answer */
    struct unread_share unread; /* bytes of `out` and `held` in memory */
    size_t held;                /* bytes that handlers keep for the answer, see exchange_hold */
    size_t taken;               /* bytes of `out` taken by the server */
    bool out_over;              /* nothing follows `out` */
    bool late;                  /* it is in stream_limits.late */
    struct exchange *next, *prev;
    bool gone; /* the client has left, or was cut off */

    struct exchange_maker maker; /* of the body; all NULL: none */
    struct json_out made;        /* the part being taken */
    size_t made_taken;           /* bytes of it already taken */
    bool made_over;              /* it is the last part */
    struct exchange *maker_next, *maker_prev;

    void (*on_gone)(void *arg);
    void *arg;
};

struct exchange *exchange_new(struct MHD_Connection *connection, struct stream_limits *limits);
struct exchange *exchange_free(struct exchange *exchange);

/* ---- for handlers ---- */

/* The value of a header of the request, or NULL. */
const char *exchange_request_header(const struct exchange *exchange, const char *name);

/* The value of an argument in the query string: "" if it has no value; NULL: the argument is absent. */
const char *exchange_argument(const struct exchange *exchange, const char *name);

/* Answers with a body and takes its memory. The buffer is empty afterwards. */
void exchange_reply(struct exchange *exchange, unsigned status, const char *content_type,
                    struct buffer *body_take);

/* The same with a body that outlives the exchange, and further headers, [n_headers]. */
void exchange_reply_lasting(struct exchange *exchange, unsigned status, const char *content_type,
                            struct bytes body, const struct exchange_header *headers, size_t n_headers);

/* The same with JSON; answers with an error if its memory ran out. */
void exchange_reply_json(struct exchange *exchange, unsigned status, struct json_out *json_take);

/* Answers with a body that is made in chunks while the client takes it. The exchange then owns the maker,
 * whose memory must have been counted with exchange_hold. */
void exchange_reply_made(struct exchange *exchange, unsigned status, const char *content_type,
                         const struct exchange_maker *maker);

/* Answers with an error in the form of the client's family. */
void exchange_refuse(struct exchange *exchange, const struct refusal *refusal);

/* Counts `bytes` more that are kept in memory for the answer, until it is sent (with a maker: until the
 * client has taken it). False: there is no room, even after slow readers were cut off; if this exchange was
 * itself displaced, it has been rejected, and its on_gone was called. */
bool exchange_hold(struct exchange *exchange, size_t bytes);

/* The error for a client when exchange_hold returned false. */
void exchange_no_room(struct refusal *refusal);

/* Begins a stream: status 200. */
void exchange_stream(struct exchange *exchange, const char *content_type);

/* Appends to the stream. False: the client has left or was just cut off, and its on_gone was called. */
bool exchange_write(struct exchange *exchange, const void *data, size_t len);

/* Ends the stream after what was written. */
void exchange_end(struct exchange *exchange);

/* Hands over the place of its key (key_take), to be released when the client has taken the whole answer or
 * has left. NULL: nothing. */
void exchange_hold_key(struct exchange *exchange, struct key *key_take, uint64_t tokens);

/* `fn` is called once when the client has left; the exchange must not be used after that. NULL: none.
 * Answering and ending unset it. */
void exchange_when_gone(struct exchange *exchange, void (*fn)(void *arg), void *arg);

/* ---- for the server ---- */

/* The client has left. */
void exchange_lost(struct exchange *exchange);

/* Nothing can be sent now: suspends the connection until there is something. */
void exchange_suspend(struct exchange *exchange);

/* Continues bodies that are made while they are sent: between two calls only a limited number of bytes is
 * made, so that other exchanges get their turn. */
void exchange_make_on(struct stream_limits *limits);

/* Makes room in stream_limits.unread: cuts the exchange off, or rejects it if its answer is still being made.
 */
void exchange_displace(struct unread_share *share);

/* Cuts off clients with too much unread, after sockets were given what they accept. If `drained`, sockets
 * took all they can; else cuts off only clients with several times their bound. */
void exchange_cut_late(struct stream_limits *limits, bool drained);

#endif
