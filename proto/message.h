/* SPDX-License-Identifier: MIT */
#ifndef PROTO_MESSAGE_H
#define PROTO_MESSAGE_H

/* Every message of Quern: its kind and its fields; bounds.h has the bounds. PROTOCOL.md describes them as
 * sent on the wire.
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

/* Features that a request may `require`: `embed`, `document`, `continue_turn`, `suffix`, all samplers and bad
 * words, `ignore_eos`, `min_tokens`, `thinking_budget`, `output` and the fields that belong to it. */
#define PROTO_FEATURE_EMBED    "embed"
#define PROTO_FEATURE_RANK     "document"
#define PROTO_FEATURE_CONTINUE "continue_turn"
#define PROTO_FEATURE_INFILL   "suffix"
#define PROTO_FEATURE_SAMPLERS "samplers"
#define PROTO_FEATURE_ENDLESS  "ignore_eos"
#define PROTO_FEATURE_LEAST    "min_tokens"
#define PROTO_FEATURE_THINKING "thinking_budget"
#define PROTO_FEATURE_RESUME   "resume"
/* Additional features of brokers: it answers `tenants`. */
#define PROTO_FEATURE_TENANTS "tenants"

/* Sizes of identities. A session is a capability: knowing it grants access to its stream. */
struct id128 {
    uint8_t bytes[16];
};

/* The attempt at a request that a frame belongs to. It increases when the broker restarts and when the
 * request moves. */
struct epoch {
    uint64_t boot; /* the broker's persisted boot number */
    uint32_t move; /* moves of this request to another worker */
};

/* Negative, 0 or positive if a is older than, equal to or newer than b. */
int epoch_compare(struct epoch a, struct epoch b);

/* Topic of a frame on the streams: session ‖ request id. */
#define PROTO_TOPIC_BYTES 32

enum message_kind {
    MESSAGE_NONE,
    /* client → broker */
    MESSAGE_HELLO,         /* opens a session */
    MESSAGE_JOIN,          /* asks for a welcome on the stream; repeated until it comes */
    MESSAGE_GENERATE,      /* a request */
    MESSAGE_GENERATE_PART, /* a part of a request that is too large for one message */
    MESSAGE_CANCEL,        /* ends a request; also broker → worker */
    MESSAGE_REPLAY,        /* asks for frames again */
    MESSAGE_ATTACH,        /* binds a running request to this session */
    MESSAGE_STATUS,        /* asks for the pool's status */
    MESSAGE_TOKENIZE,      /* text → ids; also broker → worker */
    MESSAGE_DETOKENIZE,    /* ids → text; also broker → worker */
    MESSAGE_PREFIXES,      /* asks which prompts the pool has cached */
    MESSAGE_TENANTS,       /* reports what the tenants of a gateway use, and asks for others' reports */
    MESSAGE_TRACE,         /* asks what a worker does; also broker → worker */
    MESSAGE_PROFILE,       /* measures a worker's kernels; also broker → worker */
    MESSAGE_TRIM,          /* makes a worker give memory back; also broker → worker */
    MESSAGE_PING,          /* renews the lease; also worker liveness probe */
    MESSAGE_BYE,           /* closes the session */
    /* broker → client */
    MESSAGE_HELLO_OK,
    MESSAGE_WELCOME,   /* on the stream, topic = session */
    MESSAGE_ACCEPTED,  /* a generate was admitted */
    MESSAGE_ERROR,     /* a request or message was rejected */
    MESSAGE_CANCEL_OK, /* a cancel was accepted; end follows */
    MESSAGE_REPLAY_OK, /* a page of frames */
    MESSAGE_ATTACH_OK,
    MESSAGE_STATUS_OK,
    MESSAGE_TOKENIZE_OK,   /* also worker → broker */
    MESSAGE_DETOKENIZE_OK, /* also worker → broker */
    MESSAGE_PREFIXES_OK,   /* a part of all of them, or the changes */
    MESSAGE_TENANTS_OK,    /* what tenants use through other sessions */
    MESSAGE_TRACE_OK,      /* also worker → broker */
    MESSAGE_PROFILE_OK,    /* also worker → broker */
    MESSAGE_TRIM_OK,       /* also worker → broker */
    MESSAGE_PONG,          /* answers ping, and a worker's heartbeat */
    MESSAGE_BYE_OK,
    MESSAGE_END, /* a request ended, with its count; also on the stream */
    /* both, on the streams */
    MESSAGE_FRAME,
    MESSAGE_PROGRESS, /* how much of a prompt has been processed */
    /* worker → broker */
    MESSAGE_REGISTER,
    MESSAGE_READY, /* the worker saw the broker's subscription */
    MESSAGE_HEARTBEAT,
    MESSAGE_FINISHED, /* a request ended at the worker, with its count */
    /* broker → worker */
    MESSAGE_REGISTER_OK,
    MESSAGE_ASSIGN,
    MESSAGE_CREDIT, /* how many ids some requests may generate */
    MESSAGE_ACK,    /* frames up to wseq are in the journal */
    MESSAGE_RESEND, /* frames from wseq on are missing */
    MESSAGE_DRAIN,  /* finish running requests, or give them back, then exit 0 */
    MESSAGE_KIND_COUNT
};

/* The kind's name on the wire ("hello_ok"); never NULL for a valid kind. */
const char *message_kind_name(enum message_kind kind);

/* ---- the parts of messages ---- */

struct version_range {
    uint32_t min, max;
};

struct chat_message { /* one turn; all UTF-8; except for the first two, "" = absent */
    struct bytes role;
    struct bytes content;
    struct bytes name;         /* the speaker's, or that of the tool that returned the result */
    struct bytes tool_calls;   /* JSON: an array of calls, as OpenAI's clients write them */
    struct bytes tool_call_id; /* id of the call that returned the result */
    struct bytes thought;      /* the assistant's reasoning before the answer */
};

enum prompt_form { PROMPT_TEXT, PROMPT_IDS, PROMPT_CHAT };

struct prompt {
    enum prompt_form form;
    struct bytes text; /* PROMPT_TEXT: UTF-8 */
    bool special;      /* PROMPT_TEXT: parse control tokens in the text */
    bool has_suffix;   /* PROMPT_TEXT: the output goes between the text, which may be empty, and `suffix` */
    struct bytes suffix;
    struct bytes files;           /* with a suffix: JSON, [{"filename", "text"}]; "" = none */
    bool has_document;            /* PROMPT_TEXT: the text is a query; the output scores this document: */
    struct bytes document;        /* with embed */
    bool continue_turn;           /* PROMPT_CHAT: continue the last message, which is the assistant's */
    struct bytes template_kwargs; /* PROMPT_CHAT: JSON, an object of template variables; "" = none */
    bool has_thinking_budget;     /* thoughts have at most this many tokens: */
    uint32_t thinking_budget;
    struct id_list ids; /* PROMPT_IDS */
    struct {            /* PROMPT_CHAT */
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

/* A grammar that an output must match. An empty GBNF means no grammar: any output. */
struct grammar_text {
    enum grammar_text_kind kind;
    struct bytes text;
};

static inline bool grammar_text_is_none(const struct grammar_text *grammar)
{
    return grammar->kind == GRAMMAR_TEXT_GBNF && grammar->text.len == 0;
}

/* Limits of a tenant: requests and tokens per minute and per day; 0: unlimited. */
struct rates {
    uint64_t rpm, tpm, rpd, tpd;
};

static inline bool rates_any(const struct rates *rates)
{
    return rates->rpm || rates->tpm || rates->rpd || rates->tpd;
}

/* What remains of them, per minute or per day, whichever has less left. */
struct quota {
    uint64_t limit, remaining; /* limit 0: unlimited */
    uint64_t reset_ms;         /* until all of it is available again */
};

struct quotas {
    struct quota requests, tokens;
};

/* A bias added to the logits of the ids of a text. */
struct text_bias {
    struct bytes text;
    double bias;
};
struct text_bias_list {
    const struct text_bias *items;
    size_t n;
};

/* A client's request. fields.c has the bounds of its fields and the defaults of omitted ones
 * (common/sampling.h those of sampling parameters). The broker fixes the seed at admission, so that a move to
 * another worker changes nothing. */
struct generation {
    struct prompt prompt;
    bool embed;          /* the answer is the prompt's embedding, without tokens */
    struct bytes tools;  /* PROMPT_CHAT: JSON, an array of tools as OpenAI's clients write them; "" = none */
    bool marks;          /* write control tokens of the model's dialect in the text */
    struct bytes model;  /* "" = any */
    uint32_t max_tokens; /* 0: as many as fit */
    bool fit_context;    /* reduce max_tokens to what the prompt leaves, instead of rejecting the request */
    struct sampling sampling; /* its biases are in the decoder's memory; it has no other lists */
    bool has_seed;            /* sampling.seed was chosen by the client */
    struct text_bias_list logit_bias_text;
    struct text_list bad_words;    /* never generated */
    struct text_list dry_breakers; /* where repetitions end for DRY */
    bool has_dry_breakers;         /* false: the usual ones */
    struct text_list stop;
    struct id_list stop_ids;
    bool ignore_eos;     /* never generate the model's own end ids */
    uint32_t min_tokens; /* no stop ends the output before this many */
    struct grammar_text grammar;
    uint32_t logprobs; /* 0 = none; n ≤ PROTO_MAX_LOGPROBS + 1: the sampled id and n − 1 alternatives */
    bool pieces;       /* with logprobs: frames also contain the bytes of each of these ids */
    int32_t priority;  /* higher first */
    uint64_t deadline_ms; /* 0 = none; counts from arrival */
    enum disconnect_policy on_disconnect;
    uint32_t keep_s;          /* DISCONNECT_KEEP: seconds */
    struct bytes cache_salt;  /* separates prefix caches; "" = shared, or the tenant's */
    struct bytes cache_space; /* in an assign: the requests among which the salt applies; "" = all */
    bool cache_prompt;        /* false: do not use the prefix cache */
    struct bytes tenant;      /* the user for whom the client asks; "" = the client itself */
    struct rates rates;       /* of that tenant */
    bool part;                /* it belongs to an earlier request, which was counted */
    struct bytes request_id;  /* for people: in logs and the status; "" = none */
    bool progress;            /* send progress messages while the prompt is processed */
    struct text_list require; /* features without which the request makes no sense */
    /* For a request that began elsewhere and continues after this output. In an assign also for earlier
     * attempts in this pool. */
    struct id_list output;      /* ids so far */
    uint64_t off;               /* bytes of text published so far */
    uint32_t lost;              /* workers that died with it so far */
    struct bytes prompt_digest; /* of the prompt that `output` continues, from a frame; "" = any */
};

/* Sets the defaults; everything else is zero. */
void generation_defaults(struct generation *ret_generation);

struct usage {
    uint32_t prompt_tokens;
    uint32_t cached_tokens;
    uint32_t output_tokens;
    uint32_t drafted_tokens;  /* draft tokens that were verified */
    uint32_t accepted_tokens; /* those that are part of the output */
};

struct timing {        /* milliseconds; each measured by the clock of one process */
    double queue_ms;   /* arrival at the broker → assign */
    double prefill_ms; /* assign → first token */
    double decode_ms;  /* first → last token */
    /* Parts of prefill_ms, in this order; the rest is computation. */
    double prepare_ms; /* → its ids are known and within the limits */
    double wait_ms;    /* → its turn at the worker */
    double lookup_ms;  /* → its cached blocks are found or fetched, and it has a slot */
};

struct ending {
    enum end_reason reason;
    enum proto_error error; /* PROTO_OK unless reason is END_ERROR */
    struct bytes text;      /* of the error; UTF-8 */
    struct bytes stop;      /* END_STOP: the stop string that ended it; "" = none */
    enum end_limit limit;   /* END_LENGTH: which limit */
    uint32_t lost;          /* workers that died with the request, including those before it was resumed */
    struct usage usage;
    struct timing timing;
};

struct token_logprob {
    int32_t id;
    float logprob; /* natural logarithm */
};

/* Log probabilities of the ids of one frame: `width` entries per id, the sampled id first, then the most
 * likely ones. */
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
        size_t n;                  /* 0: not requested */
    } pieces;
    /* With the END_STOP of a request with `embed`: [n / 4] float 32, little-endian; else empty. If the model
     * ranks: a score for each label. */
    struct bytes embedding;
    struct bytes prompt_digest; /* in the first frame of an attempt: digest of the prompt's ids; else "" */
    uint64_t wseq;              /* the worker's count of its frames, from 1; clients ignore it */
    bool has_end;
    struct ending end;
};

struct limits {
    uint32_t request_bytes, prompt_ids, stops, stop_bytes, stop_ids, logprobs, logit_bias, grammar_bytes;
    uint32_t max_tokens;     /* of an answer; 0: no limit */
    uint32_t generate_bytes; /* of a whole generate; 0: the pool accepts no parts */
};
/* The limits of this version, for the largest possible context. */
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

/* The limits of a pool with this largest context; 0: not known yet, so any is possible. */
struct limits proto_limits(uint32_t context);

struct model_info {
    struct bytes name;
    struct bytes digest; /* 16 bytes */
    uint32_t context;    /* tokens */
    uint32_t workers;    /* ready now */
    bool chat;           /* has a chat template */
    uint32_t embedding;  /* numbers of an embedding; 0: its workers do not support embeddings */
    bool ranks;          /* the model ranks: those numbers are scores of a pair of texts */
};

/* What a tenant uses through one or several gateways. */
struct tenant_use {
    struct id128 id;           /* a hash of its name */
    uint64_t requests, tokens; /* being answered now; tokens: the most that they may generate */
    /* Recent requests and tokens: use at time t ago counts exp(-t / T), where T is a minute or a day. */
    double rpm, tpm, rpd, tpd;
    uint32_t gateways; /* in an answer: how many gateways report it */
};

struct tenant_uses {
    const struct tenant_use *items;
    size_t n;
};

/* A step of a worker, or an event of a request. Times are whole microseconds; 0: not known. */
struct trace_record {
    enum trace_what what;
    uint64_t at_us; /* since the worker started */
    uint64_t n;     /* for a step: its number, counted from 1; for an event: see enum trace_what */
    /* For a step: its rows; rows computed only as padding; ids that requests got from it; and its time: in
     * total, until its rows were embedded, in its layers and the head, and in sampling. */
    uint32_t decode_rows, prefill_rows, padding_rows, ids;
    uint32_t total_us, embed_us, layers_us, sample_us;
    struct id128 session, id; /* of an event: the request; session: worker → broker only */
    struct bytes request_id;  /* its client's name for it; "" = none, or not given here */
    enum end_reason reason;   /* of TRACE_END */
};

/* The cost of a worker's kernel, or of a phase of a pass, in some steps; 0: not measured on this device. */
struct kernel_profile {
    struct bytes name;
    uint64_t n, ns;       /* runs, and their total time */
    uint64_t bytes, macs; /* weights, keys and values to read; multiply-adds */
    /* On an emulated device: see struct backend_kernel. */
    uint64_t blocks, threads, shared_bytes, loaded, sectors, asked, passes, conflicts;
};

/* Memory of one kind that a worker gave back. */
struct given_memory {
    struct bytes kind;
    uint64_t bytes;
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
            uint32_t total, at; /* bytes of the whole generate; offset of this part */
            struct bytes data;
            struct bytes tenant; /* of the generate */
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
            uint64_t load;  /* tokens that the pool has to process and generate, for all clients */
            uint64_t own;   /* the part of it for this session */
            uint32_t slots; /* sequences that its ready workers decode at once */
            uint32_t kept;  /* estimate: of 1000 tokens that should be in its caches, how many still are */
            bool draining;  /* it takes no new requests */
        } pong;             /* the load and what follows: only if the ping asked for it */
        struct {
            uint64_t ref;
            uint32_t requests;       /* how many unfinished requests to list, oldest first; 0: none */
            struct bytes request_id; /* only requests with this name; "": all */
        } status;
        struct {
            uint64_t ref;
            struct {
                const struct bytes *items; /* 16 bytes each */
                size_t n;
            } taken;   /* requests whose last frame the client has received */
            bool load; /* the pong should include the load */
        } ping;
        struct {
            uint64_t ref;
            uint64_t boot,
                next;    /* from the last answer; 0: none, and the pieces are listed from the beginning */
            uint32_t at; /* from the last answer; 0: what changed */
            struct bytes secret; /* of the fleet */
        } prefixes;
        struct {
            uint64_t ref;
            uint64_t boot;
            uint64_t next;        /* number of the change with which the next question begins */
            uint32_t at;          /* more pieces follow from this place on; 0: no more */
            uint32_t pieces;      /* that the pool has in total */
            bool begins;          /* these are the first pieces of all: the client forgets earlier ones */
            struct bytes space;   /* of the client's prompts (proto/prompts/space.h) */
            struct bytes added;   /* hashes of pieces, 8 bytes each, little-endian */
            struct bytes dropped; /* likewise, of pieces that the pool no longer has */
        } prefixes_ok;
        struct {
            uint64_t ref;
            struct tenant_uses tenants; /* in ascending order of ids; all of the session */
        } tenants, tenants_ok;          /* ok: the sums over other sessions of the client */
        struct {
            uint64_t ref;
            struct bytes model, text;
            bool has_text;        /* tokenize `text`; else `prompt`, a conversation */
            struct prompt prompt; /* chat, continue_turn, template_kwargs */
            struct bytes tools;   /* of the conversation, as in a generation */
            bool special;         /* parse control tokens in the text */
            bool bare;            /* without BOS and EOS */
            bool pieces;          /* the answer contains the bytes of each id */
            bool written;         /* the answer contains the text of the rendered conversation */
        } tokenize;
        struct { /* begins like tokenize: code that only forwards questions reads nothing else of either */
            uint64_t ref;
            struct bytes model;
            struct id_list ids;
            bool special; /* write control tokens by name */
        } detokenize;
        struct {
            uint64_t ref;
            struct bytes worker; /* its name */
            uint64_t from;       /* number of the first record; 0: of the next new one */
            uint32_t most;       /* records of the answer; 0: as many as fit */
        } trace;
        struct { /* begins like trace: code that only forwards questions reads nothing else of either */
            uint64_t ref;
            struct bytes worker;
            uint64_t run; /* nonzero and random: names the profile, so that a repeated question finds it */
            uint32_t steps;
        } profile;
        struct { /* also begins like trace */
            uint64_t ref;
            struct bytes worker;
            uint64_t run;  /* nonzero and random: names the trim, which is executed only once */
            bool prefixes; /* also drop cached prefixes that no request uses */
        } trim;
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
        } accepted; /* again: it was already known; quotas: for a request with rates */
        struct {
            bool has_id;
            struct id128 id;
            uint64_t ref;
            enum proto_error error;
            struct bytes text;
            uint32_t retry_after_ms;
            enum message_kind of; /* the kind that it answers; MESSAGE_NONE: unknown */
            struct quotas quotas; /* for a generate with rates */
        } error;
        struct {
            struct id128 id;
        } cancel_ok;
        struct {
            struct id128 id;
            struct epoch epoch;
            uint64_t from, next;
            bool done; /* only live frames follow */
            struct {
                const struct bytes *items;
                size_t n;
            } frames; /* each a frame payload as sent */
        } replay_ok;
        struct {
            struct id128 id;
            struct epoch epoch;
            uint64_t next;
            uint64_t from, off;
        } attach_ok; /* next: number of ids so far; from, off: ids and bytes of text that the pool does not
                      * have, because the request was resumed after them */
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
                size_t n;                  /* 0: not requested */
            } pieces;
            struct bytes text; /* of the rendered prompt, if it was requested */
        } tokenize_ok;
        struct {
            uint64_t ref;
            struct bytes text; /* invalid UTF-8 in tokens becomes U+FFFD */
        } detokenize_ok;
        struct {
            uint64_t ref;
            uint32_t incarnation; /* of the worker: each new one numbers its records from the start */
            uint64_t next;        /* number of the record after these: `from` of the next question */
            uint64_t lost;        /* records from `from` on that were overwritten before they were read */
            struct {
                const struct trace_record *items;
                size_t n;
            } records;
        } trace_ok;
        struct {
            uint64_t ref;
            bool done;          /* complete; else it still waits for steps: */
            uint32_t steps;     /* measured so far */
            uint64_t bandwidth; /* of the device's memory, bytes per second; 0: not known */
            struct {
                const struct kernel_profile *items;
                size_t n;
            } kernels;
        } profile_ok;
        struct {
            uint64_t ref;
            uint64_t blocks; /* of cached prefixes that were dropped */
            /* Resident memory of the worker's process, and free memory of its device (0: it has no separate
             * memory), before and after. */
            uint64_t resident_before, resident_after, device_free_before, device_free_after;
            struct {
                const struct given_memory *items;
                size_t n;
            } given;
        } trim_ok;
        struct {
            struct id128 id;
            struct epoch epoch;
            uint64_t count;
            struct ending end;
        } end; /* count: number of ids in total */
        struct frame frame;
        struct {
            struct id128 id;
            struct epoch epoch;
            uint32_t total, cached, read; /* ids of the prompt; `read` includes the cached ones */
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
            struct bytes tools;   /* the format of its model's tool calls; "" = none */
            bool thinks;          /* its model thinks before it answers */
            struct bytes dialect; /* how the model does both: JSON (text/dialect/dialect.h); "" = unknown */
            struct bytes
                sampling; /* its sampling defaults, as text of common/sampling_defaults.h; "" = unknown */
            uint32_t kv_blocks, max_prompt; /* unused: the worker checks prompts itself */
            uint32_t embedding;             /* numbers of an embedding; 0: not available */
            bool ranks;                     /* the model ranks: those numbers are scores of a pair of texts */
            struct bytes device;
            /* GPU only: its number, UUID, driver, and compute capability, 10 · major + minor. */
            uint32_t device_number;
            struct bytes device_uuid, device_driver;
            uint32_t device_capability;
            struct bytes arithmetic; /* what ids depend on besides the file; "": not given */
            struct bytes choices;    /* the measurements by which kernels were chosen; "": none */
            uint64_t wseq, acked;    /* its last frame so far, the last acknowledged one */
        } register_;
        struct {
            uint32_t incarnation;
        } ready;
        struct {
            uint64_t ref;
            uint32_t active, waiting, kv_free;
            uint64_t wseq, waiting_tokens;
            bool draining; /* it was told to end and takes no new requests */
        } heartbeat;
        struct {
            struct id128 session, id;
            struct epoch epoch;
            uint64_t count;
            uint64_t wseq;
            struct ending end;
        } finished; /* wseq: of the request's last frame */
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
            uint64_t credit, most;
        } assign; /* deadline_left_ms: 0 = none; queue_us: time in the queue; credit: number of ids, including
                   * `output`, that it may have until a credit allows more, 0 = unlimited; most: the pool's
                   * limit of ids for an answer, 0 = unlimited */
        struct {
            struct {
                const struct bytes *items; /* PROTO_TOPIC_BYTES each */
                size_t n;
            } topics;
            struct id_list counts; /* one per topic: number of ids in total */
        } credit;
        struct {
            uint64_t wseq;
        } ack, resend;
        struct {
            bool hand_over; /* give back running requests, so that another worker can continue them */
        } drain;
    };
};

/* A decoder owns the memory of the messages it decodes; reuse one for the life of a socket. */
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
 * `data` lives. After a MESSAGE_E_MALFORMED whose id could be read, message_decoder_failed_id returns the
 * request. */
int message_decode(struct message_decoder *decoder, const void *data, size_t len, struct message *ret_message,
                   struct error *err);

/* The "id" of the message that failed last, if it had a well-formed one: an error reply can then name the
 * request. */
bool message_decoder_failed_id(const struct message_decoder *decoder, struct id128 *ret_id);

/* The kind of the message that failed last; MESSAGE_NONE if it could not be read. */
enum message_kind message_decoder_failed_kind(const struct message_decoder *decoder);

/* Finds the encoded values of n keys in an encoded message; those of missing keys have no data. Returns how
 * many were found. */
size_t message_find(struct bytes encoded, const char *const keys[], size_t n, struct bytes ret_values[]);

/* Appends the encoded message to `out`. 0, -ENOMEM, or -EINVAL for a message that could not be decoded (a
 * bound exceeded, no kind). */
int message_encode(const struct message *message, struct buffer *out);

/* The same, with the reason of an -EINVAL ("generate: top_p: 2 is out of range 0..1"). */
int message_encode_or_say(const struct message *message, struct buffer *out, struct error *err);

#endif
