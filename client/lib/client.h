/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_CLIENT_H
#define CLIENT_LIB_CLIENT_H

/* Private to libquern: the client's state and what its files call of one another.
 *
 *   client.c     life, the loop, timers
 *   session.c    opening the session, again after a restart; messages that are not about one request
 *   request.c    generate, cancel, attach; verdicts of the broker
 *   stream.c     frames: order, gaps, replay, delivery
 *   question.c   status and tokenize */

#include <uthash.h>

#include "client/lib/quern.h"
#include "common/bytes.h"
#include "common/clock.h"
#include "common/error.h"
#include "proto/message.h"

/* Live frames kept of one request while a replay runs; beyond, they are dropped and replayed later. */
#define HELD_MAX_FRAMES 8192
#define HELD_MAX_BYTES  (4u << 20)

#define PING_NS    (1 * CLOCK_NS_PER_S)
#define HELLO_NS   (1 * CLOCK_NS_PER_S)
#define SILENCE_NS (1 * CLOCK_NS_PER_S)    /* without a frame: ask */
#define END_NS     (100 * CLOCK_NS_PER_MS) /* from the DEALER's end to the last frame */
/* From asking for a page to asking again: the broker skips pages for a client that has not read what it was
 * sent, and a whole second of waiting was most of the time that a repair took. */
#define PAGE_NS   (50 * CLOCK_NS_PER_MS)
#define TIMERS_NS (20 * CLOCK_NS_PER_MS) /* how often timers are looked at */

enum session_state {
    SESSION_HELLO, /* hello sent, hello_ok awaited */
    SESSION_JOIN,  /* subscribed; joining until the welcome comes on the stream */
    SESSION_OPEN,
    SESSION_BROKEN /* no common version, or the broker was silent for too long: nothing works any more */
};

enum request_state {
    REQUEST_NEW,       /* made while the session was not open: not sent yet */
    REQUEST_SENT,      /* generate sent, no verdict yet */
    REQUEST_ATTACHING, /* attach sent, no answer yet */
    REQUEST_LIVE
};

struct held_frame {
    struct held_frame *next;
    size_t len;
    uint8_t data[];
};

struct request {
    struct id128 id;
    UT_hash_handle hh;
    enum request_state state;
    quern_output_fn *fn;
    void *arg;
    uint64_t seed;
    struct buffer wire;   /* the encoded generate, to send again; empty for an attached one */
    struct id128 session; /* attached: the session that owned it */
    bool attached;

    struct epoch epoch;
    uint64_t next; /* ids delivered */
    uint64_t off;  /* bytes of text delivered */
    bool over;     /* the end was delivered */

    uint64_t sent_ns;  /* when generate or attach was sent last */
    uint64_t heard_ns; /* when anything came for it */

    bool replaying;
    uint64_t replay_ns; /* when replay was sent last */
    uint32_t fruitless; /* replays in a row that were done and brought nothing, after the end was told */
    uint32_t cancels;   /* sent and not answered: an unknown_request may be theirs */
    bool cancel_lost;   /* one of them got no answer before the session broke: it is said again */
    struct held_frame *held, **held_tail;
    size_t held_frames, held_bytes;

    bool end_told; /* the DEALER's end came */
    uint64_t end_count;
    struct quern_end end;
    char end_text[PROTO_MAX_TEXT_BYTES + 1];
};

struct question {
    uint64_t ref; /* of the one that waits; 0: none */
    bool answered;
    int code; /* of a refusal */
    struct error err;
};

struct quern {
    void *context, *dealer, *stream;
    char endpoint[256];
    char stream_endpoint[PROTO_MAX_NAME_BYTES + 1];
    struct id128 session;

    enum session_state state;
    int broken; /* SESSION_BROKEN: the code, with its text */
    struct error broken_err;
    bool opened_before;
    struct limits limits;
    struct quern_model *models;
    size_t n_models;
    uint64_t nonce, join_ns, join_wait_ns;
    uint64_t now; /* clock_ns when this round of the loop began */
    uint64_t hello_ns, ping_ns, timers_ns;
    uint64_t heard_ns; /* anything from the broker */
    uint64_t patience_ns;

    struct request *requests; /* hash by id */
    bool dispatching;
    int delivered; /* callbacks made in this dispatch */

    struct message_decoder *decoder;       /* of messages */
    struct message_decoder *frame_decoder; /* of frames inside them */
    struct buffer out;

    struct question question;
    uint64_t last_ref;
    struct quern_status status;
    char *status_memory;
    struct ids tokens;
};

/* session.c */
void session_start(struct quern *client);  /* hello */
void session_timers(struct quern *client); /* hello, join, ping again when it is time */
void session_hello_ok(struct quern *client, const struct message *message);
void session_welcome(struct quern *client, uint64_t nonce);
void session_break(struct quern *client, int code, const char *text);
void session_forget_models(struct quern *client);
/* Encodes and sends; 0, -EAGAIN when the socket is full, -EINVAL or -EMSGSIZE with a reason. */
int session_send(struct quern *client, const struct message *message, struct error *err);
/* The broker drops larger messages without a word. 0 or -EMSGSIZE. */
int session_check_size(const struct quern *client, size_t len, struct error *err);
int session_send_bytes(struct quern *client, const struct buffer *bytes, struct error *err);

/* request.c */
struct request *request_find(struct quern *client, const struct id128 *id);
void request_free(struct quern *client, struct request *request);
void requests_opened(struct quern *client, bool again); /* the session is open: send, or attach again */
void requests_timers(struct quern *client);
void requests_end_all(struct quern *client, const char *error, const char *text);
void request_end_locally(struct quern *client, struct request *request, const char *error, const char *text);
void request_accepted(struct quern *client, const struct message *message);
void request_attached(struct quern *client, const struct message *message);
void request_refused(struct quern *client, struct request *request, const struct message *message);
void request_end_told(struct quern *client, const struct message *message);

/* stream.c */
void stream_frame(struct quern *client, const struct frame *frame, const void *data, size_t len);
void stream_page(struct quern *client, const struct message *message);
void stream_ask(struct quern *client, struct request *request); /* sends a replay */
void stream_drop_held(struct request *request);
void request_set_end(struct request *request, const struct ending *ending);
void stream_finish(struct quern *client, struct request *request); /* delivers request->end, then frees it */

/* question.c */
void question_answer(struct quern *client, const struct message *message);

/* A fresh random number or identity. */
uint64_t random_u64(void);
struct id128 random_id(void);

/* Copies our error into the caller's. */
int client_say(struct quern_error *ret, int code, const struct error *err);

#endif
