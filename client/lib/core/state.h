/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_CORE_STATE_H
#define CLIENT_LIB_CORE_STATE_H

/* Private to libquern: the state of a client, and the layers of client/lib/.
 *
 * Input changes states, and states determine the output to the broker and to the program that uses the
 * library. Each layer calls only those below it (scripts/check/layers.txt). request to delivery are in
 * requests/, the last two in core/.
 *
 *   client    life: connecting, freeing
 *   waiting   calls that wait: status, tokenize, generate_wait
 *   loop      one round: sockets, then timers
 *   incoming  dispatches messages of the DEALER and frames of the stream
 *   session   the states of the session
 *   question  answers to status, tokenize and detokenize
 *   request   the states of a request; request_encode encodes it, parameters its numbers
 *   sending   requests that the pool has not accepted: when each is sent
 *   stream    a request's frames: order, gaps, replay
 *   delivery  callbacks, and the end
 *   outgoing  messages to the broker
 *   state     the structs */

#include <quern.h>

#define HASH_NONFATAL_OOM 1 /* an element that was not added has no table */
#include <uthash.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/system/socket_news.h"
#include "proto/message.h"

/* Live frames of one request that are kept while a replay runs; further ones are dropped and replayed
 * later. */
#define HELD_MAX_FRAMES 8192
#define HELD_MAX_BYTES  (4u << 20)

#define TAKEN_AT_ONCE 256 /* ids of taken answers in one ping */

enum session_state {
    SESSION_HELLO, /* hello sent, waiting for hello_ok */
    SESSION_JOIN,  /* subscribed; joining until the welcome arrives on the stream */
    SESSION_OPEN,
    SESSION_BROKEN /* no common version, or the broker was silent for too long: final */
};

/* Bounds on requests that the pool has not accepted: bytes of all of them, and bytes of large messages in
 * flight. Brief messages do not count as in flight. */
#define UNACCEPTED_MAX_BYTES ((size_t)64 << 20)
#define UNDER_WAY_MAX_BYTES  ((size_t)8 << 20)
#define BRIEF_BYTES          ((size_t)16 << 10)

enum request_state {
    REQUEST_NEW,       /* to be sent, perhaps again: the session is not open, or it is not its turn */
    REQUEST_SENT,      /* generate sent, no verdict yet */
    REQUEST_ATTACHING, /* attach sent, no answer yet */
    REQUEST_LIVE
};

struct held_frame {
    struct held_frame *next;
    size_t len;
    uint8_t data[];
};

/* An encoded generate without id and seed; each request that uses it adds its own. References are counted. */
struct quern_encoded {
    unsigned refs;
    unsigned pending; /* requests of one client that use it and are not accepted yet, which count its bytes
                         once: */
    const struct quern *counted_by; /* that client; NULL: none */
    struct buffer bytes;
    size_t id_at, seed_at; /* offsets of the id's 16 bytes and the seed's 8; 0: none */
    size_t part_at;        /* offset of the flag `part`; 0: it has no limits */
    bool part;             /* the flag's value for the first request that uses it; true for the others */
    bool used;
    bool embeds, has_seed, tells_admitted;
    uint64_t seed;          /* for requests without one */
    uint64_t n_output, off; /* it resumes a request after these; 0: it begins one */
    bool resumes;
    char tenant[PROTO_MAX_NAME_BYTES + 1];
};

/* The requests of one tenant that the pool has not accepted (REQUEST_NEW, REQUEST_SENT). Exists while there
 * are any. */
struct sender {
    char tenant[PROTO_MAX_NAME_BYTES + 1];
    size_t n, bytes;            /* requests, and their bytes; a shared encoding counts once */
    struct request *unsent;     /* those in REQUEST_NEW; list by unsent_prev/next, in order */
    struct sender *prev, *next; /* list of turns, if `unsent` is not empty */
    UT_hash_handle hh;
};

struct request {
    struct id128 id;
    UT_hash_handle hh;
    enum request_state state;
    quern_output_fn *fn;
    void *arg;
    uint64_t seed;
    struct quern_encoded *encoded; /* kept to send it again; NULL: attached, or its output has begun */
    struct sender *sender;         /* until the pool has accepted it */
    bool counts_alone; /* another client counts its encoding's bytes, which are counted here too */
    bool unsent;       /* it is in the sender's list */
    bool was_sent;     /* the pool may know it */
    size_t parts_sent; /* if sent in parts: bytes sent so far */
    bool whole_sent;   /* all of its parts were sent once */
    size_t under_way;  /* its bytes counted in client->under_way */
    struct request *unsent_prev, *unsent_next;
    bool embeds;          /* it asked for an embedding */
    bool part;            /* its encoding was used before */
    bool tells_admitted;  /* its caller wants to know of its admission, and was not told yet */
    struct id128 session; /* attached: the session that owned it */
    bool attached;

    struct epoch epoch;
    uint64_t next;             /* ids delivered, or made before it was resumed */
    uint64_t off;              /* bytes of text likewise */
    uint64_t first, first_off; /* `next` and `off` before anything was delivered */
    bool over;                 /* the end was delivered */

    uint64_t sent_ns;  /* when generate or attach was last sent */
    uint64_t heard_ns; /* when the last message about it arrived */

    bool replaying;
    uint64_t replay_ns;    /* when replay was last sent */
    uint64_t asked_ns;     /* when it was first sent for the missing page */
    uint64_t page_wait_ns; /* from replay_ns until it is sent again */
    uint32_t fruitless;    /* completed replays in a row without new frames, after the end was known */
    bool cancel_wanted;    /* by the program, and not acknowledged yet */
    uint64_t cancel_ns;    /* when cancel was last sent */
    uint32_t cancels;      /* sent and unanswered: an unknown_request may answer one of them */
    struct held_frame *held, **held_tail;
    size_t held_frames, held_bytes;

    bool end_told; /* the DEALER's `end` has arrived */
    uint64_t end_count;
    struct quern_end end;
    char *end_text, *end_stop; /* texts that `end` points to; NULL: none, as usual before the end */
};

struct question {
    uint64_t ref;
    enum message_kind kind; /* kind of the question; only its answer, or an error, counts */
    struct buffer wire;     /* the message, to ask again */
    quern_answer_fn *fn;
    void *arg;
    uint64_t asked_ns, until_ns;
    uint64_t sent_ns, wait_ns; /* when it was last sent, and how long until the next time; 0: not yet */
    struct question *next, *prev;
};

struct quern {
    void *context, *dealer, *stream;
    struct socket_news dealer_news, stream_news;
    void *handshakes; /* monitor of the DEALER's handshakes, with CURVE; else NULL */
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
    uint64_t passed_ns;   /* when the timers of all requests were last checked */
    uint64_t heard_ns;    /* the last message from the broker */
    uint64_t closed_ns;   /* when the session was last lost */
    uint64_t answered_ns; /* the last answer to a ping or to an opening */
    uint64_t ping_every_ns;
    bool asks_load, has_load; /* pings ask for the load; the broker of this session reported it: */
    struct quern_load load;
    uint32_t failed_handshakes; /* in a row */
    uint64_t patience_ns;
    uint64_t page_ns; /* from a replay to its page: of the last full page, or of a slower one since */

    struct request *requests; /* hash by id */
    struct sender *senders;   /* hash by tenant */
    struct sender *turns;     /* list of senders with unsent requests, next one first */
    size_t unaccepted;        /* bytes of all senders */
    size_t under_way;         /* bytes of large messages that were sent and not accepted */
    _Atomic size_t piped;     /* bytes of large messages that libzmq holds; its thread counts down */
    struct request *parting;  /* the request whose parts are being sent; NULL: none */
    bool room_wanted;         /* a request was rejected for lack of room */
    bool room_made;           /* and the pool has accepted or rejected others since */
    struct buffer taken;      /* ids of requests whose last frame was delivered, to be reported */
    uint64_t taken_ns;        /* when the first of these was delivered */
    bool dispatching;
    int delivered; /* callbacks made in this dispatch */
    int watched;   /* the caller's descriptor; -1: none */
    bool seen;     /* `watched` is readable */

    struct message_decoder *decoder;       /* of messages */
    struct message_decoder *frame_decoder; /* of frames inside them */
    struct buffer out;

    struct question *questions; /* utlist: unanswered ones */
    uint64_t last_ref;
    struct quern_status status;
    struct quern_prefixes prefixes;
    struct buffer hashes; /* of that */
    char space[PROTO_MAX_SPACE_BYTES + 1];
    struct quern_tenants tenants;
    struct buffer uses; /* of those */
    bool knows_tenants; /* the pool answers questions about tenants */
    char *status_memory;
    struct quern_trace trace;
    char *trace_memory;
    struct quern_profile profile;
    char *profile_memory;
    struct quern_trim trim;
    char *trim_memory;
    struct ids tokens;
    struct buffer content;   /* text of a detokenize or a prompt */
    struct buffer spelled;   /* the bytes of all pieces of a tokenize */
    struct buffer pieces;    /* struct quern_piece of each token */
    struct buffer embedding; /* floats of the last delivered one */
    struct buffer awaited;   /* the same, for quern_embed_wait */
};

/* The unfinished request with this id, or NULL. */
struct request *state_find_request(struct quern *client, const struct id128 *id);
/* Adds a request to the table; NULL: out of memory. */
struct request *state_add_request(struct quern *client, struct id128 id, quern_output_fn *fn, void *arg);
/* Removes it from the table and frees it. */
void state_remove_request(struct quern *client, struct request *request);

/* Bytes of the encoding that a further request of this client would count. */
size_t state_bytes_to_count(const struct quern *client, const struct quern_encoded *encoded);

/* Bookkeeping of a request that the pool has not accepted. _waits: it becomes REQUEST_NEW, to be sent after
 * the others of its tenant; 0 or -ENOMEM. _sent: it becomes REQUEST_SENT. _settled: the pool has answered, or
 * the request ends; it no longer counts. A request that waits or is settled sends no more parts. */
int state_request_waits(struct quern *client, struct request *request);
void state_request_sent(struct quern *client, struct request *request);
void state_request_settled(struct quern *client, struct request *request);

/* Whether any of its output was delivered. */
static inline bool state_request_has_begun(const struct request *request)
{
    return request->next > request->first || request->off > request->first_off;
}

/* Frees the encoding of a request that will not be sent again: its output has begun, or it ends. */
void state_drop_encoded(struct request *request);

/* Notes for the next pings that the client has all of this request, which the broker had accepted. */
void state_note_taken(struct quern *client, const struct request *request);

/* Keeps a copy of a live frame, unless too many are kept already. */
void state_hold_frame(struct request *request, const void *data, size_t len);
/* Takes the kept frames, in order; the caller frees each. */
struct held_frame *state_take_held(struct request *request);
/* Frees them. */
void state_drop_held(struct request *request);

/* A random number or identity. */
uint64_t state_random_u64(void);
struct id128 state_random_id(void);

/* Copies the library's error into the caller's; if it has no text, the text of the code. Returns the code. */
int state_say(struct quern_error *ret, int code, const struct error *err);

#endif
