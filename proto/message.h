/* SPDX-License-Identifier: MIT */
#ifndef PROTO_MESSAGE_H
#define PROTO_MESSAGE_H

/* Every message of Quern: its kind and its fields; bounds.h has the bounds. PROTOCOL.md beside this file says
 * the same on the wire.
 *
 * A message is one msgpack map with short string keys; "k" holds the kind's name. Decoding is strict: missing
 * or mistyped keys are errors that name the key, trailing bytes are an error, every length is bounded;
 * unknown keys are skipped. Decoded messages borrow: their texts and byte strings point into the input, their
 * arrays into the decoder's memory, and both live until the decoder decodes its next message. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/sampling.h"
#include "proto/bounds.h"
#include "proto/codes.h"
#include "proto/lists.h"
#include "proto/status.h"

#define PROTO_VERSION_MIN 1
#define PROTO_VERSION_MAX 1

/* What a request may `require`: that `embed`, `continue_turn`, `suffix`, all samplers and bad words, or
 * `ignore_eos` are known. */
#define PROTO_FEATURE_EMBED    "embed"
#define PROTO_FEATURE_CONTINUE "continue_turn"
#define PROTO_FEATURE_INFILL   "suffix"
#define PROTO_FEATURE_SAMPLERS "samplers"
#define PROTO_FEATURE_ENDLESS  "ignore_eos"

/* Sizes of identities. A session is a capability: knowing it grants access to its stream. */
struct id128 {
    uint8_t bytes[16];
};

/* Which attempt at a request a frame belongs to: grows when the broker restarts and when a request moves. */
struct epoch {
    uint64_t boot; /* the broker's persisted boot number */
    uint32_t move; /* moves of this request to another worker */
};

/* <0, 0, >0 as a is older than, equal to, newer than b. */
int epoch_compare(struct epoch a, struct epoch b);

/* Topic of a frame on the streams: session ‖ request id. */
#define PROTO_TOPIC_BYTES 32

enum message_kind {
    MESSAGE_NONE,
    /* client → broker */
    MESSAGE_HELLO,         /* opens a session */
    MESSAGE_JOIN,          /* asks for a welcome on the stream; repeated until it came */
    MESSAGE_GENERATE,      /* a request */
    MESSAGE_GENERATE_PART, /* some bytes of one that is larger than a message may be */
    MESSAGE_CANCEL,        /* ends a request; also broker → worker */
    MESSAGE_REPLAY,        /* asks for frames again */
    MESSAGE_ATTACH,        /* binds a running request to this session */
    MESSAGE_STATUS,        /* asks how the pool is */
    MESSAGE_TOKENIZE,      /* text → ids; also broker → worker */
    MESSAGE_DETOKENIZE,    /* ids → text; also broker → worker */
    MESSAGE_PING,          /* renews the lease; also worker liveness probe */
    MESSAGE_BYE,           /* closes the session */
    /* broker → client */
    MESSAGE_HELLO_OK,
    MESSAGE_WELCOME,   /* on the stream, topic = session */
    MESSAGE_ACCEPTED,  /* a generate was admitted */
    MESSAGE_ERROR,     /* a request or message was refused */
    MESSAGE_CANCEL_OK, /* a cancel was taken; end follows */
    MESSAGE_REPLAY_OK, /* a page of frames */
    MESSAGE_ATTACH_OK,
    MESSAGE_STATUS_OK,
    MESSAGE_TOKENIZE_OK,   /* also worker → broker */
    MESSAGE_DETOKENIZE_OK, /* also worker → broker */
    MESSAGE_PONG,          /* answers ping, and a worker's heartbeat */
    MESSAGE_BYE_OK,
    MESSAGE_END, /* a request ended, with its count; the stream says it too */
    /* both, on the streams */
    MESSAGE_FRAME,
    MESSAGE_PROGRESS, /* how much of a prompt is read */
    /* worker → broker */
    MESSAGE_REGISTER,
    MESSAGE_READY, /* the worker saw the broker's subscription */
    MESSAGE_HEARTBEAT,
    MESSAGE_FINISHED, /* a request ended at the worker, with its count */
    /* broker → worker */
    MESSAGE_REGISTER_OK,
    MESSAGE_ASSIGN,
    MESSAGE_CREDIT, /* these requests may make so many ids */
    MESSAGE_ACK,    /* frames up to wseq are safe */
    MESSAGE_RESEND, /* frames from wseq are missing */
    MESSAGE_DRAIN,  /* finish what runs, or give it back, then exit 0 */
    MESSAGE_KIND_COUNT
};

/* The kind's name on the wire ("hello_ok"); never NULL for a valid kind. */
const char *message_kind_name(enum message_kind kind);

/* ---- the parts of messages ---- */

struct version_range {
    uint32_t min, max;
};

struct chat_message { /* one turn; all UTF-8, "" = not there but for the first two */
    struct bytes role;
    struct bytes content;
    struct bytes name;         /* of the speaker; of the tool whose result it is */
    struct bytes tool_calls;   /* JSON: an array of calls, as OpenAI's clients write them */
    struct bytes tool_call_id; /* of the call whose result it is */
    struct bytes thought;      /* what the assistant thought before it answered */
};

enum prompt_form { PROMPT_TEXT, PROMPT_IDS, PROMPT_CHAT };

struct prompt {
    enum prompt_form form;
    struct bytes text; /* PROMPT_TEXT: UTF-8 */
    bool special;      /* PROMPT_TEXT: parse control tokens in the text */
    bool has_suffix;   /* PROMPT_TEXT, which may be empty then: what is made stands between it and */
    struct bytes suffix;
    struct bytes files;           /* with a suffix: JSON, [{"filename", "text"}]; "" = none */
    bool continue_turn;           /* PROMPT_CHAT: the last message is the assistant's, and goes on */
    struct bytes template_kwargs; /* PROMPT_CHAT: JSON, an object of variables of the template; "" = none */
    struct id_list ids;           /* PROMPT_IDS */
    struct {                      /* PROMPT_CHAT */
        const struct chat_message *items;
        size_t n;
    } chat;
};

enum disconnect_policy { DISCONNECT_CANCEL, DISCONNECT_KEEP };

/* How a grammar is written. */
enum grammar_text_kind {
    GRAMMAR_TEXT_GBNF,
    GRAMMAR_TEXT_JSON, /* any JSON object; its text is empty */
    GRAMMAR_TEXT_SCHEMA,
    GRAMMAR_TEXT_REGEX,
    GRAMMAR_TEXT_KIND_COUNT
};

/* What an output must match. An empty GBNF means no grammar: any output. */
struct grammar_text {
    enum grammar_text_kind kind;
    struct bytes text;
};

static inline bool grammar_text_is_none(const struct grammar_text *grammar)
{
    return grammar->kind == GRAMMAR_TEXT_GBNF && grammar->text.len == 0;
}

/* How many requests and tokens a tenant may have, a minute and a day; 0: no bound. */
struct rates {
    uint64_t rpm, tpm, rpd, tpd;
};

static inline bool rates_any(const struct rates *rates)
{
    return rates->rpm || rates->tpm || rates->rpd || rates->tpd;
}

/* What is left of them: of the minute or the day, whichever has less left. */
struct quota {
    uint64_t limit, remaining; /* limit 0: there is none */
    uint64_t reset_ms;         /* until all of it is there again */
};

struct quotas {
    struct quota requests, tokens;
};

/* What is added to the logits of the ids of a text. */
struct text_bias {
    struct bytes text;
    double bias;
};
struct text_bias_list {
    const struct text_bias *items;
    size_t n;
};

/* What a client asks for. Bounds of its fields, and the defaults that optional ones decode to when a client
 * leaves them out, stand in fields.c (those of sampling in common/sampling.h). The broker fixes the seed at
 * admission, so that a move changes nothing. */
struct generation {
    struct prompt prompt;
    bool embed;          /* the answer is the prompt's embedding, and no token */
    struct bytes tools;  /* PROMPT_CHAT: JSON, an array of tools as OpenAI's clients write them; "" = none */
    bool marks;          /* control tokens of the model's dialect are written out in the text */
    struct bytes model;  /* "" = any */
    uint32_t max_tokens; /* 0: not said, as many as there is room for */
    bool fit_context;    /* max_tokens is reduced to what the prompt leaves; else refused */
    struct sampling sampling; /* its biases point into the decoder's memory; it has no other list */
    bool has_seed;            /* sampling.seed was chosen by the client */
    struct text_bias_list logit_bias_text;
    struct text_list bad_words;    /* none of them is completed */
    struct text_list dry_breakers; /* where repeats end for DRY; */
    bool has_dry_breakers;         /* false: the usual ones */
    struct text_list stop;
    struct id_list stop_ids;
    bool ignore_eos; /* the model's own end ids are not made */
    struct grammar_text grammar;
    uint32_t logprobs; /* 0 = none; n ≤ PROTO_MAX_LOGPROBS + 1: the chosen one and n − 1 alternatives */
    bool pieces;       /* with logprobs: frames tell the bytes of each of those ids too */
    int32_t priority;  /* higher first */
    uint64_t deadline_ms; /* 0 = none; counts from arrival */
    enum disconnect_policy on_disconnect;
    uint32_t keep_s;          /* DISCONNECT_KEEP: seconds */
    struct bytes cache_salt;  /* separates prefix caches; "" = shared, or the tenant's */
    struct bytes cache_space; /* in an assign: for whose requests that salt is; "" = everybody's */
    bool cache_prompt;        /* false: no prefix cache is used for it */
    struct bytes tenant;      /* on whose behalf the client asks; "" = its own */
    struct rates rates;       /* of that tenant */
    bool part;                /* it goes with an earlier one, which was counted */
    struct bytes request_id;  /* for people: in logs and the status; "" = none */
    bool progress;            /* it is told how much of the prompt is read */
    struct text_list require; /* features without which the request makes no sense */
};

/* Writes those defaults; everything else is zero. */
void generation_defaults(struct generation *ret_generation);

struct usage {
    uint32_t prompt_tokens;
    uint32_t cached_tokens;
    uint32_t output_tokens;
};

struct timing {        /* milliseconds; one process's clock each */
    double queue_ms;   /* arrival at the broker → assign */
    double prefill_ms; /* assign → first token */
    double decode_ms;  /* first → last token */
    /* Of prefill_ms, in this order; the rest is computing. */
    double prepare_ms; /* → its ids are known, and not too many */
    double wait_ms;    /* → its turn at the worker */
    double lookup_ms;  /* → what is cached of it is found, or brought, and it has a slot */
};

struct ending {
    enum end_reason reason;
    enum proto_error error; /* PROTO_OK unless reason is END_ERROR */
    struct bytes text;      /* of the error; UTF-8 */
    struct bytes stop;      /* END_STOP: the stop string that ended it; "" = none did */
    enum end_limit limit;   /* END_LENGTH: which limit that was */
    struct usage usage;
    struct timing timing;
};

struct token_logprob {
    int32_t id;
    float logprob; /* natural logarithm */
};

/* Log probabilities of the ids of one frame: per id `width` entries, the sampled id first, then the most
 * likely. */
struct frame_logprobs {
    uint32_t width;                    /* 0: none */
    const struct token_logprob *items; /* [n_ids][width] */
};

struct frame {
    struct id128 id;
    struct epoch epoch;
    uint64_t seq; /* index of the first id in the output of the request */
    uint64_t off; /* byte offset of `text` in its output text */
    struct id_list ids;
    struct bytes text; /* whole UTF-8 sequences */
    struct frame_logprobs logprobs;
    struct {
        const struct bytes *items; /* as many as there are logprobs, in their order */
        size_t n;                  /* 0: not told */
    } pieces;
    /* With an end that is END_STOP, of a request with `embed`: [n / 4] float 32, little-endian; else empty.
     */
    struct bytes embedding;
    uint64_t wseq; /* the worker's own count of its frames, from 1; clients ignore it */
    bool has_end;
    struct ending end;
};

struct limits {
    uint32_t request_bytes, prompt_ids, stops, stop_bytes, stop_ids, logprobs, logit_bias, grammar_bytes;
    uint32_t max_tokens;     /* of an answer; 0: the pool sets none */
    uint32_t generate_bytes; /* of a whole generate; 0: the pool takes none in parts */
};
/* Those of this version, for the largest context that there may be. */
#define PROTO_LIMITS                                                                                         \
    ((struct limits){.request_bytes = PROTO_MAX_REQUEST_BYTES,                                               \
                     .prompt_ids = PROTO_MAX_PROMPT_IDS,                                                     \
                     .generate_bytes = PROTO_MAX_GENERATE_BYTES,                                             \
                     .stops = PROTO_MAX_STOPS,                                                               \
                     .stop_bytes = PROTO_MAX_STOP_BYTES,                                                     \
                     .stop_ids = PROTO_MAX_STOP_IDS,                                                         \
                     .logprobs = PROTO_MAX_LOGPROBS,                                                         \
                     .logit_bias = SAMPLING_MAX_BIASES,                                                      \
                     .grammar_bytes = PROTO_MAX_GRAMMAR_BYTES})

/* Those of a pool whose largest context is this; 0: it is not known yet, and any may come. */
struct limits proto_limits(uint32_t context);

struct model_info {
    struct bytes name;
    struct bytes digest; /* 16 bytes */
    uint32_t context;    /* tokens */
    uint32_t workers;    /* ready now */
    bool chat;           /* has a chat template */
    uint32_t embedding;  /* numbers of an embedding that its workers make; 0: they make none */
};

/* ---- messages ---- */

struct message {
    enum message_kind kind;
    union {
        struct {
            struct version_range proto;
            struct text_list features;
            struct id128 session;
        } hello;
        struct {
            uint64_t nonce;
        } join, welcome;
        struct {
            struct generation generation; /* first, as in assign: one table serves both */
            struct id128 id;
        } generate;
        struct {
            struct id128 id;    /* of the generate */
            uint32_t total, at; /* bytes of all of it, and of those that came before */
            struct bytes data;
            struct bytes tenant; /* that of the generate */
        } generate_part;
        struct {
            struct id128 session, id;
        } cancel; /* session: broker → worker only */
        struct {
            struct id128 id;
            struct epoch epoch;
            uint64_t next;
        } replay;
        struct {
            struct id128 session, id;
            uint64_t next;
        } attach; /* session: the one that owned it */
        struct {
            uint64_t ref;
        } pong;
        struct {
            uint64_t ref;
            uint32_t requests;       /* so many of those that have not ended, the oldest first; 0: none */
            struct bytes request_id; /* only those of that name; "": all */
        } status;
        struct {
            uint64_t ref;
            struct {
                const struct bytes *items; /* 16 bytes each */
                size_t n;
            } taken; /* requests of which the client has the last frame */
        } ping;
        struct {
            uint64_t ref;
            struct bytes model, text;
            bool has_text;        /* else it is about `prompt`, a conversation */
            struct prompt prompt; /* chat, continue_turn, template_kwargs */
            struct bytes tools;   /* of the conversation, as in a generation */
            bool special;         /* control tokens written out in the text become their ids */
            bool bare;            /* without BOS and EOS */
            bool pieces;          /* the answer tells what each id stands for */
            bool written;         /* and the text of the prompt that the conversation becomes */
        } tokenize;
        struct { /* begins as tokenize does: who only carries questions looks at no more of them */
            uint64_t ref;
            struct bytes model;
            struct id_list ids;
            bool special; /* control tokens are written out by their names */
        } detokenize;
        struct {
            struct version_range proto;
            struct text_list features;
            uint64_t boot;
            struct text_list stream;
            struct limits limits;
            uint32_t lease_ms;
            struct {
                const struct model_info *items;
                size_t n;
            } models;
        } hello_ok;
        struct {
            struct id128 id;
            struct epoch epoch;
            uint64_t seed;
            bool again;
            struct quotas quotas;
        } accepted; /* again: it was known already; quotas: of a request with rates */
        struct {
            bool has_id;
            struct id128 id;
            uint64_t ref;
            enum proto_error error;
            struct bytes text;
            uint32_t retry_after_ms;
            enum message_kind of; /* what it answers; MESSAGE_NONE: not said */
            struct quotas quotas; /* of a generate with rates */
        } error;
        struct {
            struct id128 id;
        } cancel_ok;
        struct {
            struct id128 id;
            struct epoch epoch;
            uint64_t from, next;
            bool done; /* done: nothing follows but live frames */
            struct {
                const struct bytes *items;
                size_t n;
            } frames; /* each a frame payload as it was sent */
        } replay_ok;
        struct {
            struct id128 id;
            struct epoch epoch;
            uint64_t next;
        } attach_ok; /* next: ids made so far */
        struct {
            uint64_t ref;
            POOL_STATUS_FIELDS(STATUS_MEMBER)
            struct {
                const struct worker_status *items;
                size_t n;
            } workers;
            struct {
                const struct request_status *items;
                size_t n;
            } requests;
        } status_ok;
        struct {
            uint64_t ref;
            struct id_list ids;
            struct {
                const struct bytes *items; /* as many as there are ids */
                size_t n;                  /* 0: not asked for */
            } pieces;
            struct bytes text; /* of the prompt, if it was asked for */
        } tokenize_ok;
        struct {
            uint64_t ref;
            struct bytes text; /* bytes of the tokens that are no UTF-8 are U+FFFD */
        } detokenize_ok;
        struct {
            struct id128 id;
            struct epoch epoch;
            uint64_t count;
            struct ending end;
        } end; /* count: ids in all */
        struct frame frame;
        struct {
            struct id128 id;
            struct epoch epoch;
            uint32_t total, cached, read; /* ids of the prompt; `read` includes what was cached */
        } progress;
        struct {
            struct version_range proto;
            struct text_list features;
            struct bytes name;
            uint32_t incarnation, pid, slots;
            struct bytes stream; /* endpoint of the worker's stream */
            struct bytes model;
            struct bytes digest;
            uint32_t context;
            bool chat;
            struct bytes tools;   /* the form in which its model calls tools; "" = it has none */
            bool thinks;          /* its model thinks before it answers */
            struct bytes dialect; /* how it does both: JSON (text/dialect/dialect.h); "" = not told */
            struct bytes
                sampling; /* what requests that do not say get: text of sampling_defaults.h; "" = not told */
            uint32_t kv_blocks, max_prompt; /* told, and not needed: it is the worker that judges prompts */
            uint32_t embedding;             /* numbers of an embedding; 0: not available */
            struct bytes device;
            uint64_t wseq, acked; /* last frame made so far, last one acknowledged */
        } register_;
        struct {
            uint32_t incarnation;
        } ready;
        struct {
            uint64_t ref;
            uint32_t active, waiting, kv_free;
            uint64_t wseq, waiting_tokens;
            bool draining; /* it was told to end, and takes nothing new */
        } heartbeat;
        struct {
            struct id128 session, id;
            struct epoch epoch;
            uint64_t count;
            uint64_t wseq;
            struct ending end;
        } finished; /* wseq: of its last frame */
        struct {
            uint64_t boot;
            struct id128 subscription;
            uint32_t heartbeat_ms;
        } register_ok;
        struct {
            struct generation generation;
            struct id128 session, id;
            struct epoch epoch;
            uint64_t deadline_left_ms;
            uint64_t queue_us;
            struct id_list output;
            uint64_t off;
            uint64_t credit, most;
        } assign; /* deadline_left_ms: 0 = none; queue_us: time it has waited; output, off: the ids and bytes
                   * of text that earlier attempts have published; credit: ids that it may make, those
                   * included, until a credit says more, 0 = any number; most: ids that the pool lets an
                   * answer have, 0 = any number */
        struct {
            struct {
                const struct bytes *items; /* PROTO_TOPIC_BYTES each */
                size_t n;
            } topics;
            struct id_list counts; /* as many: ids in all */
        } credit;
        struct {
            uint64_t wseq;
        } ack, resend;
        struct {
            bool hand_over; /* what runs is given back as it is, for another worker to go on with */
        } drain;
    };
};

/* A decoder owns the memory of what it decodes; reuse one for the life of a socket. */
struct message_decoder;
int message_decoder_new(struct message_decoder **ret_decoder); /* -ENOMEM */
struct message_decoder *message_decoder_free(struct message_decoder *decoder);

/* Positive codes of message_decode. */
enum {
    /* Not one msgpack map within the bounds, or a missing, mistyped or out-of-range key. */
    MESSAGE_E_MALFORMED = 1,
    MESSAGE_E_UNKNOWN_KIND
};

/* Decodes exactly `len` bytes. 0; a positive code above with the reason in `err` ("generate: max_tokens:
 * expected an integer"); or -ENOMEM. *ret_message is valid until the next call with this decoder, and while
 * `data` lives. On a MESSAGE_E_MALFORMED whose id could be read, message_decoder_failed_id says for which
 * request. */
int message_decode(struct message_decoder *decoder, const void *data, size_t len, struct message *ret_message,
                   struct error *err);

/* The "id" of the message that failed last, if it had a well-formed one: an error reply can then name the
 * request. */
bool message_decoder_failed_id(const struct message_decoder *decoder, struct id128 *ret_id);

/* Its kind; MESSAGE_NONE when that could not be read. */
enum message_kind message_decoder_failed_kind(const struct message_decoder *decoder);

/* The encoded value of a key in an encoded message; false when there is none. */
bool message_find(struct bytes encoded, const char *key, struct bytes *ret_value);

/* Appends the encoded message to `out`. 0, -ENOMEM, or -EINVAL for a message that would not decode again (a
 * bound exceeded, a kind unset). */
int message_encode(const struct message *message, struct buffer *out);

/* The same, with the reason of an -EINVAL ("generate: top_p: 2 is out of range 0..1"). */
int message_encode_or_say(const struct message *message, struct buffer *out, struct error *err);

#endif
