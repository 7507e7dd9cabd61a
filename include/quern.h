/* SPDX-License-Identifier: MIT */
#ifndef QUERN_H
#define QUERN_H

/* libquern: the C client of a Quern pool.
 *
 *     struct quern *client;
 *     struct quern_error err;
 *     if (quern_connect(NULL, 5000, &client, &err) != 0)
 *         …err.text says why…
 *     struct quern_message question = {.role = "user", .content = "What is Quern?"};
 *     struct quern_request request;
 *     quern_request_init(&request);
 *     request.messages = &question;
 *     request.n_messages = 1;
 *     quern_generate_wait(client, &request, on_output, NULL, &err);
 *     quern_free(client);
 *
 * A client is one session with one pool. It can run any number of requests at once. Each request's callback
 * gets its outputs inside quern_dispatch, in order, without gaps or repetition, and then exactly one end. The
 * library requests frames that the stream lost again; when the broker restarts, it reopens the session and
 * resumes its requests. No function blocks longer than its timeout. A client belongs to one thread at a time;
 * several clients may live in several threads.
 *
 * Return values: 0 is success; a negative -errno is a failure of the client or the connection. On failure a
 * `struct quern_error`, which may be NULL, gets one line that says what is wrong. Outputs named ret_… are
 * unchanged on failure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quern;

struct quern_error {
    char text[512];
};

struct quern_id {
    uint8_t bytes[16];
};

/* ---- the connection ---- */

/* Connects and opens a session. `endpoint` is "ipc://PATH", "tcp://HOST:PORT", a pool's run directory (also
 * relative, or a symbolic link to it), or NULL for the default one: $XDG_RUNTIME_DIR/quern or /tmp/quern-UID.
 * -ENOENT: no pool runs there; -EPERM: the run directory belongs to another user, or others may enter it;
 * -ETIMEDOUT: the pool does not answer within timeout_ms; -EPROTO: it shares no protocol version with this
 * library; -EAGAIN: it accepts no more sessions at present. */
int quern_connect(const char *endpoint, int timeout_ms, struct quern **ret_client, struct quern_error *err);

/* The same over TCP to a broker that encrypts with CURVE. `server_key` is its public key: 40 characters of
 * Z85, or the path of a certificate that holds it (as `quern keys`, czmq and pyzmq write them); NULL: without
 * encryption. `client_key` is the path of this client's own certificate with its secret key, for a pool that
 * accepts only known clients; NULL: a key pair made for this connection. A client with the wrong server key
 * gets no answer: -ETIMEDOUT. -EACCES: the pool does not know this client's key. -EINVAL: no key found; the
 * text names the file and line. -EPERM: others can read the secret key. */
int quern_connect_curve(const char *endpoint, const char *server_key, const char *client_key, int timeout_ms,
                        struct quern **ret_client, struct quern_error *err);

/* The same without waiting: the session opens inside quern_dispatch, and quern_is_open says when. Requests
 * made before are sent then. Both keys may be NULL. -ENOENT, -EPERM and -EINVAL as above; quern_dispatch
 * returns -ETIMEDOUT, -EACCES, -EPROTO and -EAGAIN. */
int quern_connect_begin(const char *endpoint, const char *server_key, const char *client_key,
                        struct quern **ret_client, struct quern_error *err);

/* Whether the session is open: false while it opens, and when, as of the last dispatch, the broker has been
 * silent for three seconds. */
bool quern_is_open(const struct quern *client);

/* Closes the session and frees the client. The pool ends running requests after their `keep_s`; they get no
 * further callback. Takes NULL; returns NULL. Not from inside a callback. */
struct quern *quern_free(struct quern *client);

/* How long to wait for a broker that does not answer; then every request ends with the error "worker_lost"
 * and quern_dispatch returns -ETIMEDOUT. Default 30,000. */
void quern_set_patience(struct quern *client, uint32_t milliseconds);

struct quern_model {
    const char *name;
    uint8_t digest[16];
    uint32_t context;   /* tokens */
    uint32_t workers;   /* ready ones when the session opened */
    bool chat;          /* has a chat template */
    uint32_t embedding; /* numbers of an embedding (quern_embed_wait); 0: embeddings are not available */
    bool ranks;         /* the model ranks: those numbers are scores of a pair of texts, not an embedding */
};

/* The models that the pool serves, [*ret_n]. Valid until the session is reopened, which quern_dispatch may
 * do. */
const struct quern_model *quern_models(const struct quern *client, size_t *ret_n);

/* This session's identity, for quern_attach from another client. Keep it secret: it grants access to the
 * outputs. */
struct quern_id quern_session(const struct quern *client);

/* ---- requests ---- */

struct quern_message {
    const char *role; /* "system", "user", "assistant", "tool" */
    const char *content;
    const char *name;         /* the speaker's, or that of the tool that returned the result; NULL: none */
    const char *tool_calls;   /* the assistant's: JSON, as OpenAI's clients write them; NULL: none */
    const char *tool_call_id; /* id of the call that returned the result; NULL: none */
    const char *thought;      /* the assistant's reasoning before the answer; NULL: none */
};

struct quern_logit_bias {
    int32_t id;
    float bias; /* −100 … 100, or −INFINITY: never */
};

struct quern_text_bias {
    const char *text;
    float bias; /* −100 … 100 */
};

/* How a grammar is written. */
enum quern_grammar {
    QUERN_GBNF,   /* rules in GBNF; `root` is the output. NULL or "": no grammar */
    QUERN_JSON,   /* any JSON object; takes no text */
    QUERN_SCHEMA, /* a JSON Schema */
    QUERN_REGEX   /* a regular expression that the whole output matches */
};

/* Values of sampling parameters that a request does not set: NaN, and the smallest number. */
#define QUERN_LEFT       ((double)__builtin_nanf(""))
#define QUERN_LEFT_COUNT INT32_MIN

struct quern_request {
    /* The prompt: exactly one of these three. */
    const char *text; /* UTF-8; text_len bytes, or zero-terminated when text_len is 0 */
    size_t text_len;
    const int32_t *ids; /* [n_ids] */
    size_t n_ids;
    const struct quern_message *messages; /* [n_messages], through the model's chat template */
    size_t n_messages;
    /* With messages: the last one is the assistant's, and the output continues it. */
    bool continue_turn;
    /* With text, which may then be "": the output fills the gap between `text` and `suffix`; NULL: it follows
     * `text`. Rejected if the model has no tokens for infilling. `files`: further files as context, a JSON
     * array of objects with `filename` and `text`; NULL: none. If not all of them fit, the first ones are
     * left out. */
    const char *suffix, *files;
    /* With text and `embed`: `text` is a query, and a model that ranks scores how well `document` answers it.
     * The output has these scores in place of an embedding; sort by the first. NULL: none. */
    const char *document;
    /* With messages: the tools that the model may call, JSON in OpenAI's form; NULL: none. Calls appear in
     * the output text, in the model's own dialect (struct quern_worker). */
    const char *tools;
    /* With messages: variables of the chat template, a JSON object, such as {"enable_thinking": false}; NULL:
     * none. */
    const char *template_kwargs;
    /* With messages: the output text includes the control tokens that the model writes around calls, thoughts
     * and its answer. Requests with tools always get them. */
    bool marks;
    bool special; /* default true; parse control tokens in `text`. Those in messages always stay text */
    /* Text and ids only: the only output is the prompt's embedding, which comes with the end. Excludes
     * max_tokens, stops, grammar and logprobs; sampling parameters are ignored. */
    bool embed;

    const char *model;   /* NULL: any */
    uint32_t max_tokens; /* 0: as many as the context has room for */
    bool fit_context;    /* reduce max_tokens to what the prompt leaves */
    /* Parameters left as quern_request_init sets them (QUERN_LEFT, QUERN_LEFT_COUNT) take the pool's value,
     * else the model's, else 1 for the temperature and off for the others. */
    double temperature;                        /* 0 = greedy */
    int32_t top_k;                             /* 0 = off */
    double top_p;                              /* 1 = off */
    double min_p;                              /* 0 = off */
    double repetition_penalty;                 /* 1 = off */
    double presence_penalty;                   /* 0 = off; for ids in the output */
    double frequency_penalty;                  /* 0 = off; the same for each occurrence */
    const struct quern_logit_bias *logit_bias; /* [n_logit_bias] added to the logits of these ids */
    size_t n_logit_bias;
    /* The same for every id of a text, as the tokenizer splits it. */
    const struct quern_text_bias *logit_bias_text; /* [n_logit_bias_text] */
    size_t n_logit_bias_text;
    const char *const *bad_words; /* [n_bad_words] texts that the output never completes */
    size_t n_bad_words;
    int32_t repeat_last_n;    /* the penalties count this many last ids; −1: all, 0 = off */
    double top_n_sigma;       /* standard deviations below the largest logit; 0 = off */
    double typical_p;         /* 1 = off */
    double xtc_probability;   /* 0 = off */
    double xtc_threshold;     /* for XTC */
    double dynatemp_range;    /* temperature ± this, by the entropy; 0 = off */
    double dynatemp_exponent; /* for dynatemp_range */
    double dry_multiplier;    /* 0 = off */
    double dry_base;          /* for DRY, as are the next three */
    int32_t dry_allowed_length;
    int32_t dry_penalty_last_n;               /* −1: all, 0 = off */
    const char *const *dry_sequence_breakers; /* [n_dry_sequence_breakers]; NULL: the usual ones */
    size_t n_dry_sequence_breakers;
    bool has_seed; /* false: a random one is chosen */
    uint64_t seed;
    const char *const *stop; /* [n_stop] strings; the output ends before them */
    size_t n_stop;
    const int32_t *stop_ids; /* [n_stop_ids] */
    size_t n_stop_ids;
    bool ignore_eos;     /* never generate the model's own end ids; not with a grammar */
    uint32_t min_tokens; /* no stop ends the output before this many; not with a grammar */
    /* A thought has at most thinking_budget tokens; then it is closed the way the model's chat template
     * closes one, and the output continues freely. 0: no thought, if the template has a switch for that, else
     * a thought that is closed at once. For messages, and for prompts that open a thought. Rejected if it is
     * not known how the model's thoughts end. has_thinking_budget false: thoughts of any length. */
    bool has_thinking_budget;
    uint32_t thinking_budget;
    const char *grammar;             /* the output must match it; NULL: none */
    enum quern_grammar grammar_kind; /* how it is written */
    uint32_t logprobs;               /* 0 = none; n: for the sampled id and the n − 1 most likely ones */
    bool pieces;                     /* with logprobs: outputs also contain the bytes of these ids */
    int32_t priority;                /* −8 … 8, higher first */
    uint64_t deadline_ms;            /* 0 = none */
    uint32_t keep_s; /* 0: ends with the session; else it lives this many seconds without it */
    /* Cached prefixes are shared only among requests with the same salt; NULL: among those of the same
     * tenant. A client that has its own key shares them with nobody else (SECURITY.md). */
    const char *cache_salt;
    bool cache_prompt; /* default true; false: neither look up nor keep the prompt in the prefix cache */
    /* For a program that serves several users: the name of the user, at most 128 bytes. The pool divides
     * turns and shares among tenants. NULL: the request counts towards the session. */
    const char *tenant;
    /* Limits of that tenant: requests, and tokens of prompts and answers, per minute and per day; 0: none.
     * The pool counts them over all clients that name the tenant. Requires a client in the run directory or
     * with its own key. Requests beyond a limit end as "overloaded". All outputs of one quern_encoded count
     * as one request. */
    uint64_t rpm, tpm, rpd, tpd;
    bool part; /* with limits: part of a request that was already counted; only its tokens count */
    /* A name for logs and quern_requests: printable ASCII without blanks, at most 128 bytes; NULL: none. It
     * need not be unique. */
    const char *request_id;
    /* Resuming: this request began earlier, perhaps in another pool, and continues after `output` as if it
     * had never stopped. Penalties, stops, grammar and thoughts see the whole output, and the counters of the
     * end include it. Outputs begin at index n_output. Everything else must be as in the original request; in
     * particular has_seed and `seed` are required. max_tokens includes `output`: set it, and any sampling
     * parameters that matter, since the pool chooses those that are left out. If the output is already
     * complete, the answer is its end. Not for embeddings. An encoded request that resumes can be sent only
     * once. The pool ends it with the error "conflict" if its prompt does not match prompt_digest, and with
     * "unsupported" if it cannot resume. */
    const int32_t *output; /* [n_output] all ids so far */
    size_t n_output;
    uint64_t off;  /* bytes of text so far, in whole characters; text of `output` beyond them comes again */
    uint32_t lost; /* workers that died with it so far, from quern_end; at most 2 */
    const uint8_t *prompt_digest; /* [16] received with `output` (struct quern_output); NULL: any prompt */
    bool progress;      /* outputs also report how much of the prompt is processed (struct quern_progress) */
    bool tell_admitted; /* an output also reports that the pool has accepted it (struct quern_admitted) */
};

/* Sets the defaults given above. */
void quern_request_init(struct quern_request *request);

/* Describes a numeric member of struct quern_request, for programs that offer it to their users. */
struct quern_parameter {
    const char *name;   /* the member's: "top_k" */
    const char *letter; /* placeholder for its value in option help: "K"; NULL: not a user option */
    const char *help;   /* "sample from the K most likely; 0 = off, 1 = greedy" */
    double initial;     /* default; an unset seed is random */
    bool of_model;      /* the pool's or the model's value takes precedence over `initial` */
};

/* The i-th parameter; false beyond the last. */
bool quern_parameter(size_t i, struct quern_parameter *ret_parameter);

/* Sets a parameter by name, from text; a NULL value sets its default. -ENOENT: unknown name; -EINVAL: not a
 * number, or out of range; the text names the range. */
int quern_request_set(struct quern_request *request, const char *name, const char *value,
                      struct quern_error *err);

/* Writes the value of a parameter in the form that quern_request_set takes; "" if it is unset, so that the
 * pool chooses. -ENOENT: unknown name. */
#define QUERN_VALUE_BYTES 32
int quern_request_get(const struct quern_request *request, const char *name,
                      char ret_value[QUERN_VALUE_BYTES]);

/* Why a request ended. */
enum quern_reason { QUERN_STOP, QUERN_LENGTH, QUERN_CANCELLED, QUERN_DEADLINE, QUERN_ERROR };
const char *quern_reason_name(enum quern_reason reason); /* "stop", … */

/* What remains of a limit, per minute or per day, whichever has less left. */
struct quern_quota {
    uint64_t limit, remaining; /* limit 0: none */
    uint64_t reset_ms;         /* until all of it is available again */
};

struct quern_end {
    enum quern_reason reason;
    const char *error;       /* QUERN_ERROR: its name in the protocol ("overloaded"); else "" */
    const char *text;        /* an explanation for people; else "" */
    const char *stop;        /* QUERN_STOP: the stop string that ended it; else "" */
    const char *limit;       /* QUERN_LENGTH: which limit: "max_tokens", "context" or "pool"; else "" */
    uint32_t retry_after_ms; /* with "overloaded" */
    uint64_t seed;
    uint32_t prompt_tokens, cached_tokens, output_tokens;
    /* With --draft: draft tokens that were verified, and those that became output. Counted only by the worker
     * that ended the request: those of earlier workers are not included. Otherwise 0. */
    uint32_t drafted_tokens, accepted_tokens;
    double queue_ms, prefill_ms, decode_ms; /* arrival → a worker → first token → last token */
    double prepare_ms, wait_ms, lookup_ms;  /* parts of prefill_ms: until ids, turn and prefix are found */
    struct quern_quota requests, tokens;    /* with "overloaded", if the request has limits for its tenant */
    /* Workers that died with this request, including `lost` of the request. With "worker_lost", 3 means that
     * the request itself is the likely cause: do not resume it elsewhere. */
    uint32_t lost;
};

struct quern_logprob {
    int32_t id;
    float logprob; /* natural logarithm */
};

/* The bytes of a token: at most 256, possibly part of a character; for a control token its name, such as
 * <|im_end|>. */
struct quern_piece {
    const void *bytes;
    size_t len;
};

/* The pool has accepted the request: its end will come. */
struct quern_admitted {
    uint64_t seed;
    struct quern_quota requests, tokens; /* of its tenant, if the request has limits for it */
};

/* How much of the prompt a worker has processed. */
struct quern_progress {
    uint32_t total, cached, read; /* ids; `read` includes the cached ones */
};

/* A piece of a request's output. The pointers are valid during the callback. */
struct quern_output {
    struct quern_id id;
    uint64_t index;     /* of the first id in the output */
    const int32_t *ids; /* [n_ids]; n_ids may be 0 */
    size_t n_ids;
    const char *text; /* UTF-8, not zero-terminated; may lag behind the ids */
    size_t text_len;
    const struct quern_logprob *logprobs; /* [n_ids][n_logprobs]: the id's own first; or NULL */
    size_t n_logprobs;
    const struct quern_piece *pieces; /* [n_ids][n_logprobs], if the request asked for them; or NULL */
    /* [16] identifies the ids of the prompt. It comes with the first output of every worker that runs the
     * request, else NULL. A program that may resume the request elsewhere keeps it. */
    const uint8_t *prompt_digest;
    const float *embedding; /* [n_embedding], of length one, or the scores of a model that ranks: with the
                             * end of a request with `embed`; else NULL */
    size_t n_embedding;
    const struct quern_admitted *admitted; /* if requested: in an output without ids, usually the first */
    /* If requested: in some outputs without ids, before the first id. It starts again after a move to another
     * worker. Some may be missing. */
    const struct quern_progress *progress;
    const struct quern_end *end; /* in the last output, else NULL */
};

/* Called inside quern_dispatch. It may call quern_encode, quern_generate, quern_cancel, quern_attach and
 * their other forms that do not wait, and nothing else: functions that wait return -EBUSY here. */
typedef void quern_output_fn(void *arg, const struct quern_output *output);

/* Sends a request; everything is copied. 0: outputs will come, then an end; a rejection by the pool is also
 * an end, with the reason QUERN_ERROR. -EINVAL: a value is out of range; the text names it. -EMSGSIZE: larger
 * than the pool accepts: 8 bytes for each token of its largest context, at least 4 MiB. Requests above 4 MiB
 * are sent in parts. Only a few MiB of large requests are sent at a time; the others wait in the client until
 * the pool has accepted some, and tenants take turns. -EAGAIN: too many bytes of this tenant are waiting. A
 * single tenant may have 32 MiB, each of n tenants 1/(n + 1) of 64 MiB; quern_dispatch returns when there is
 * room again. */
int quern_generate(struct quern *client, const struct quern_request *request, quern_output_fn *fn, void *arg,
                   struct quern_id *ret_id, struct quern_error *err);

/* An encoded request that can be sent several times, for several outputs of one prompt, which all share one
 * copy in memory. quern_encode checks the request and copies everything; its errors are those of
 * quern_generate. Clients of other pools may send it too; those pools reject what they do not accept.
 * quern_encoded_free takes NULL, returns NULL, and may be called while outputs are still to come. */
struct quern_encoded;
int quern_encode(struct quern *client, const struct quern_request *request,
                 struct quern_encoded **ret_encoded, struct quern_error *err);
struct quern_encoded *quern_encoded_free(struct quern_encoded *encoded);
size_t quern_encoded_bytes(const struct quern_encoded *encoded); /* bytes of the message, for each sending */
/* The progress of a request that began elsewhere; members as in struct quern_request. */
struct quern_resume {
    const int32_t *output; /* [n_output] */
    size_t n_output;
    uint64_t off;
    uint32_t lost;
    const uint8_t *prompt_digest; /* [16]; NULL: any prompt */
    uint64_t elapsed_ms;          /* since it began; shortens its deadline, to 1 ms at least */
};

/* Turns an encoded request into one that resumes, for a program that no longer has the request itself. It
 * must have a seed, here or in quern_generate_encoded; it is treated as already counted against its limits.
 * Errors as for quern_encode; -EINVAL: it already resumes, or requests an embedding. */
int quern_encode_resumed(struct quern *client, const struct quern_encoded *encoded,
                         const struct quern_resume *resume, struct quern_encoded **ret_encoded,
                         struct quern_error *err);

/* Sends it, as quern_generate does. `seed` is for this output; NULL: that of the request, or a random one.
 * -EINVAL: it resumes a request and was already sent. */
int quern_generate_encoded(struct quern *client, struct quern_encoded *encoded, const uint64_t *seed,
                           quern_output_fn *fn, void *arg, struct quern_id *ret_id, struct quern_error *err);

/* Sends a request and dispatches until it has ended. Other requests make progress meanwhile. */
int quern_generate_wait(struct quern *client, const struct quern_request *request, quern_output_fn *fn,
                        void *arg, struct quern_error *err);

/* The embedding of a text or of ids: sends the request as if `embed` were set, and dispatches until it has
 * ended. *ret_embedding, [*ret_n], has Euclidean length one and lives until the next call with this client;
 * its direction is that of the mean of the model's final states, or what the model's pooling specifies. With
 * `document` in the request it has the scores of the pair instead. *ret_end, which may be NULL, has the
 * counters; its texts are "". -EREMOTEIO: the request ended in another way; the text says how. */
int quern_embed_wait(struct quern *client, const struct quern_request *request, const float **ret_embedding,
                     size_t *ret_n, struct quern_end *ret_end, struct quern_error *err);

/* Cancels a request; its end comes through its callback. -ENOENT: it has ended already. */
int quern_cancel(struct quern *client, struct quern_id id, struct quern_error *err);

/* Takes over a request of another session (keep_s), from its first output. Outputs and the end arrive as
 * for a request of this client; a request that no longer exists ends with the error "unknown_request". */
int quern_attach(struct quern *client, struct quern_id session, struct quern_id id, quern_output_fn *fn,
                 void *arg, struct quern_error *err);

/* The number of unfinished requests. */
size_t quern_active(const struct quern *client);

/* Receives messages, calls callbacks and keeps the session alive. Waits at most timeout_ms (0: not at all;
 * -1: without limit). Call it at least once a second, or the pool considers the client gone. Returns the
 * number of callbacks made, which may be 0 if a signal interrupted the wait, or if there is room again after
 * quern_generate returned -EAGAIN. A negative code is final: every request has got its end, and every later
 * call returns the same code. -ETIMEDOUT: the broker did not answer within the patience, or did not reopen a
 * lost session; -EPROTO: it shares no protocol version with this library. */
int quern_dispatch(struct quern *client, int timeout_ms, struct quern_error *err);

/* From now on quern_dispatch also returns when this descriptor is readable: for example an epoll(7) with the
 * program's other descriptors, so that one loop serves both. -1: none. The caller keeps ownership. */
void quern_watch(struct quern *client, int fd);

/* ---- several pools ----
 *
 * A program that has one client per pool waits for all of them at once:
 *
 *     quern_wait(clients, n, fd, 20);
 *     for (size_t i = 0; i < n; i++)
 *         quern_dispatch(clients[i], 0, &err);
 */

/* Waits until one of the clients has something to do (or was used since its last dispatch, or libzmq has done
 * something for it), the descriptor `fd` (-1: none) is readable, or timeout_ms have passed. Dispatch every 20
 * ms while requests run, for their timers, and every 250 ms for those of sessions. Not from inside a
 * callback. 0 or -errno: -ENOMEM. */
int quern_wait(struct quern *const *clients, size_t n, int fd, int timeout_ms);

/* How often to ask the broker whether it is alive, in milliseconds; at least 10. Default 1,000. */
void quern_set_ping(struct quern *client, uint32_t milliseconds);

/* Milliseconds since the broker last answered such a question, or since the client began to connect. Frames
 * do not count as answers: a broker that receives nothing may still send them. */
uint64_t quern_silence(const struct quern *client);

/* The load of the pool, as its broker counts it. */
struct quern_load {
    uint64_t tokens; /* to process and generate, for all clients, as estimated */
    uint64_t own;    /* of those, for this session */
    uint32_t slots;  /* sequences that its ready workers decode at once */
    double kept;     /* share of the prefixes that its caches should hold that they probably hold */
    bool draining;   /* it takes no new requests */
};

/* From now on the questions of quern_set_ping also ask for the pool's load. */
void quern_follow_load(struct quern *client);

/* The last load reported; NULL: none in this session, or the pool is too old to report it. */
const struct quern_load *quern_load(const struct quern *client);

/* How many CURVE handshakes have failed in a row: from three on, the server key is most likely that of
 * another pool. */
uint32_t quern_failed_handshakes(const struct quern *client);

/* ---- questions ---- */

#define QUERN_HISTOGRAM_BOUNDS 15

/* How often a value occurred since its worker started: counts[i] values above bounds[i − 1], up to bounds[i];
 * the last count is of values above all bounds. */
struct quern_histogram {
    const double *bounds; /* [QUERN_HISTOGRAM_BOUNDS] rising: seconds, rows, or shares up to 1 */
    uint64_t counts[QUERN_HISTOGRAM_BOUNDS + 1];
    double sum; /* of all values */
};

struct quern_worker {
    const char *name, *device, *model;
    const char *const *aliases; /* other names of its model, ended by NULL */
    bool chat;                  /* its model has a chat template; else it continues texts */
    const char *tools; /* how its model writes tool calls: "object", "named" or "members"; "": it has none */
    bool thinks;       /* the model thinks before it answers, as far as its chat template shows */
    const char *dialect; /* how it writes both: JSON, as `quern inspect` shows it; "": unknown */
    /* Its sampling defaults, each with its source (pool, model or default): "temperature=0.6:model …" */
    const char *sampling;
    const char *digest; /* of its model's file, 32 hexadecimal digits */
    /* What its ids depend on besides that: "cpu avx2 kv=f16 weights=file". Workers that agree in both
     * generate the same ids. */
    const char *arithmetic;
    /* GPU only: the measurements by which its kernels were chosen, in one line; "": none. `quern inspect
     * --device` shows the choices. */
    const char *choices;
    /* GPU only: its number on its host, UUID, driver version, and compute capability, 10 · major + minor; 0
     * and "": unknown, or no GPU. */
    uint32_t device_number;
    const char *device_uuid, *device_driver;
    uint32_t device_capability;
    const char *state; /* "absent", "starting", "loading", "ready", "draining", "failed" */
    uint32_t pid, incarnation, restarts;
    uint32_t active, waiting, slots;
    uint32_t kv_free, kv_total; /* blocks of the KV cache */
    uint32_t kv_block_bytes;    /* bytes of one: all bytes of the cache / kv_total; 0: not known yet */
    uint32_t context;           /* most tokens of a sequence */
    uint32_t embedding;         /* numbers of an embedding; 0: not available */
    bool ranks;                 /* the model ranks: those numbers are scores of a pair of texts */
    uint64_t steps, tokens, cache_hits;
    double tokens_per_s;
    uint64_t prefill_tokens, evictions, restores;
    /* Bytes: all device memory that it has taken, weights included; of that, the KV cache; of the cache, what
     * sequences hold; and the states of recurrent layers with their snapshots. 0: not known yet. */
    uint64_t memory, memory_kv, memory_kv_held, memory_states;
    /* Also part of `memory`: the weights and the workspace of steps. Not part of it: pinned host memory. Then
     * the free and total memory of its GPU. */
    uint64_t memory_weights, memory_workspace, memory_staging, device_free, device_total;
    uint64_t memory_resident; /* bytes of the machine's memory that its process holds */
    /* Peaks of these since the worker started, in bytes. */
    uint64_t memory_peak, memory_kv_held_peak, memory_resident_peak;
    /* GPU only: kernels launched one by one; steps launched as one recording; rows computed only to fill a
     * recorded size; decode sizes that the driver refused to record, whose kernels are launched one by
     * one. */
    uint64_t launches, recorded_launches, padding_rows, refused_recordings;
    uint64_t library_products; /* matrix products made by cuBLASLt */
    /* With --draft: draft tokens that were verified, and those that were right. */
    uint64_t drafted, accepted;
    /* With --host-sampling: tokens that both GPU and host have sampled, and those that differ. */
    uint64_t ids_compared, ids_different;
    uint32_t kv_cached;
    double hit_rate; /* share of prompt tokens found in the prefix cache: 0 … 1 */
    /* Steps: seconds of those that only decode, only prefill, and do both; rows of each, without and with
     * those that fill a recorded size; shares of slots and KV blocks in use. Answers: seconds between two
     * tokens, and from a request's arrival at the worker to its first token. */
    struct quern_histogram step_decode, step_prefill, step_mixed, step_rows, computed_rows;
    struct quern_histogram slots_used, kv_used;
    struct quern_histogram token_gap, first_token;
    const char *reason; /* why it failed, or "" */
};

/* An unfinished request. */
struct quern_request_status {
    const char *id;         /* hexadecimal */
    const char *request_id; /* its client's name for it; "": none */
    const char *state;      /* "queued", "running", "waiting" for the journal, "cancelling" */
    const char *worker;     /* the worker that runs it; "": none */
    const char *model;      /* the model that it asks for; "": any */
    uint64_t age_ms;        /* since its arrival */
    uint64_t tokens;        /* generated so far */
    uint32_t moves;         /* to other workers */
};

struct quern_status {
    uint64_t boot;
    bool draining;
    const char *version;
    uint32_t sessions, queued, running;
    uint64_t admitted, ended, rejected;
    uint64_t moved; /* requests moved to another worker, after theirs had died or ended */
    uint64_t tokens, journal_bytes;
    uint64_t journal_limit;   /* largest size of the journal in bytes */
    uint32_t journal_waiting; /* running requests that wait for room in it */
    uint32_t max_tokens;      /* limit of an answer; 0: none */
    uint64_t uptime_s;        /* seconds since the pool was started; 0: not known */
    uint32_t supervisor_pid, broker_pid;
    uint32_t gateway_pid; /* of the pool's own gateway; 0: no HTTP, or not running now */
    const struct quern_worker *workers;
    size_t n_workers;
    const struct quern_request_status *requests; /* only from quern_requests */
    size_t n_requests;
};

/* These functions wait at most timeout_ms for the answer, and dispatch meanwhile.
 *
 * The pool's status, valid until the next call with this client. */
int quern_status(struct quern *client, int timeout_ms, const struct quern_status **ret_status,
                 struct quern_error *err);

/* The same with at most `most` (1 to 1024) unfinished requests, oldest first: everybody's if the client is in
 * the run directory, else its own. `request_id`: only those with this name; NULL: all. */
int quern_requests(struct quern *client, const char *request_id, uint32_t most, int timeout_ms,
                   const struct quern_status **ret_status, struct quern_error *err);

/* A step of a worker, or an event of a request, in microseconds since the worker started; 0: not known. */
struct quern_trace_record {
    /* "step"; for a request: "admitted" (n: microseconds in the queue), "tokenized" (ids of its prompt),
     * "slot" (which one), "prefix" (ids found in the cache), "prefill_begin" and "prefill_end" (ids),
     * "first_token", "slot_lost" (preempted, or out of credit; ids that it has), "given_back" (its worker is
     * ending and another takes over; ids of the answer so far), "end" (ids of the answer) */
    const char *what;
    uint64_t at_us;
    uint64_t n; /* for a step: its number */
    /* For a step: its rows, those computed only as padding, and the ids that requests got from it; its time
     * in total, until its rows were embedded, in layers and head, and in sampling. */
    uint32_t decode_rows, prefill_rows, padding_rows, ids;
    uint32_t total_us, embed_us, layers_us, sample_us;
    const char *id;         /* of the request, hexadecimal; "" for a step */
    const char *request_id; /* its client's name for it, at least with "admitted"; "": none */
    const char *reason;     /* with "end": "stop", "length", "cancelled", "deadline", "error"; else "" */
};

struct quern_trace {
    uint32_t incarnation; /* of the worker: each new one numbers its records from the start */
    uint64_t next;        /* `from` of the next call */
    uint64_t lost;        /* records after `from` that were overwritten before this call */
    const struct quern_trace_record *records;
    size_t n;
};

/* What this worker does: records from number `from` on, up to 1024 per answer; `from` 0: records made from
 * now on. The worker records as long as somebody asks at least every three seconds, and keeps the last 4096.
 * In the run directory all steps and requests are visible; other clients see their own requests, in answers
 * of at most 64 records that also count the hidden ones, and may ask every 50 ms; otherwise -EREMOTEIO,
 * "overloaded". Valid until the next call with this client. */
int quern_trace(struct quern *client, const char *worker, uint64_t from, int timeout_ms,
                const struct quern_trace **ret_trace, struct quern_error *err);

/* The cost of a worker's kernel, or of a phase of a step; 0: not measured on its device. */
struct quern_kernel {
    const char *name;
    uint64_t n, ns;       /* runs, and their total time */
    uint64_t bytes, macs; /* weights, keys and values to read; multiply-adds */
    /* Emulated devices count instead: thread blocks; the most threads and shared bytes of a block; bytes
     * loaded; 32-byte transactions, and the bytes of them that threads used; passes over shared memory, and
     * passes caused by bank conflicts. */
    uint64_t blocks, threads, shared_bytes, loaded, sectors, asked, passes, conflicts;
};

struct quern_profile {
    bool done;      /* complete; else ask again soon */
    uint32_t steps; /* measured so far */
    /* Peak bytes per second between the worker's device and its memory, according to its driver. 0:
     * unknown */
    uint64_t bandwidth;
    const struct quern_kernel *kernels;
    size_t n;
};

/* Measures the next steps (1 to 1000) of this worker kernel by kernel: they are slower, and otherwise
 * unchanged. `run` is a nonzero random number that names the profile: call this again with the same number,
 * at least every three seconds, until it is done; that does not restart it. Only in the run directory. Valid
 * until the next call with this client. */
int quern_profile(struct quern *client, const char *worker, uint64_t run, uint32_t steps, int timeout_ms,
                  const struct quern_profile **ret_profile, struct quern_error *err);

/* Memory that a worker has released. */
struct quern_given {
    const char *kind; /* "kv", "states", "workspace", "library", "staging", "heap" */
    uint64_t bytes;
};

struct quern_trim {
    uint64_t blocks; /* KV blocks of cached prefixes that were dropped */
    /* Bytes of the machine's memory that the worker's process holds, and free bytes of its GPU. 0: unknown */
    uint64_t resident_before, resident_after, device_free_before, device_free_after;
    const struct quern_given *given; /* by kind; without the kinds of which nothing was released */
    size_t n;
};

/* Makes this worker release memory that is unused at the moment, between two of its steps; it allocates again
 * what it needs later. `prefixes`: also drops cached prefixes that no request uses; they are computed again
 * on demand. `run` is a nonzero random number that names the trim: repeating it does not trim again and
 * returns the same answer. Only in the run directory. Valid until the next call with this client. */
int quern_trim(struct quern *client, const char *worker, uint64_t run, bool prefixes, int timeout_ms,
               const struct quern_trim **ret_trim, struct quern_error *err);

/* A text to tokenize. */
struct quern_text {
    const char *model; /* whose tokenizer to use; NULL: any */
    const char *text;  /* [len], UTF-8 */
    size_t len;
    bool special; /* parse control tokens in the text */
    bool bare;    /* without the BOS and EOS that the model may want around a text */
    bool pieces;  /* the answer includes the bytes of each id */
};

/* The ids of a text, valid until the next call with this client. */
int quern_tokenize(struct quern *client, const struct quern_text *text, int timeout_ms,
                   const int32_t **ret_ids, size_t *ret_n, struct quern_error *err);

/* Ids to detokenize. */
struct quern_ids {
    const char *model;  /* whose tokenizer to use; NULL: any */
    const int32_t *ids; /* [n] */
    size_t n;
    bool special; /* include control tokens by name; else omit them */
};

/* The text of ids, UTF-8, zero-terminated, *ret_len bytes; invalid bytes become U+FFFD. Valid until the next
 * call with this client. */
int quern_detokenize(struct quern *client, const struct quern_ids *ids, int timeout_ms, const char **ret_text,
                     size_t *ret_len, struct quern_error *err);

/* The beginnings of prompts in the pool's caches, as hashes of their pieces: the changes since the last
 * answer, or a part of the whole. For gateways of a fleet; PROTOCOL.md says what is hashed. */
struct quern_prefixes_wish {
    uint64_t boot, next; /* from the last answer; 0: none yet */
    uint32_t at;
    const char *secret; /* the fleet's */
};
struct quern_prefixes {
    uint64_t boot;                   /* of the pool's broker */
    uint64_t next;                   /* number of the next change */
    uint32_t at;                     /* more of the whole follows from here; 0: no more */
    uint32_t pieces;                 /* that the pool has in total */
    bool begins;                     /* the first part of the whole: discard earlier answers */
    const char *space;               /* the base of the space of this client's prompts */
    const uint64_t *added, *dropped; /* [n_added], [n_dropped] */
    size_t n_added, n_dropped;
};

/* What a tenant uses through a gateway. */
enum { QUERN_RPM, QUERN_TPM, QUERN_RPD, QUERN_TPD, QUERN_RATES };
struct quern_tenant {
    uint8_t id[16];           /* a hash of its name */
    uint64_t requests;        /* being answered now */
    uint64_t tokens;          /* the most that these may generate */
    double used[QUERN_RATES]; /* recent requests and tokens: use at time t ago counts exp(-t / T), where T
                               * is a minute (RPM, TPM) or a day (RPD, TPD) */
    uint32_t gateways;        /* in an answer: how many other gateways report it */
};
struct quern_tenants {
    const struct quern_tenant *items; /* [n], in ascending order of ids */
    size_t n;
};

/* These functions do not wait: the answer comes to a callback inside quern_dispatch, with the same rules as
 * quern_output_fn. Any number of questions may be pending. */
struct quern_answer {
    int code;         /* 0; -EREMOTEIO: the pool rejected it; -ETIMEDOUT; or the code of a broken session */
    const char *text; /* if code is not 0, the reason; else "" */
    const struct quern_status *status;
    const struct quern_trace *trace;
    const struct quern_profile *profile;
    const struct quern_trim *trim;
    const int32_t *ids; /* [n_ids] */
    size_t n_ids;
    const struct quern_piece *pieces; /* [n_ids] if quern_text or quern_request asked for them; else NULL */
    const char *content; /* detokenized text, or a prompt's: zero-terminated, content_len bytes; else NULL */
    size_t content_len;
    const struct quern_prefixes *prefixes;
    const struct quern_tenants *tenants;
};
typedef void quern_answer_fn(void *arg, const struct quern_answer *answer);

/* 0: one answer will come within about timeout_ms; -EMSGSIZE, -ENOMEM, or the code of a broken session. */
int quern_ask_status(struct quern *client, int timeout_ms, quern_answer_fn *fn, void *arg,
                     struct quern_error *err);
/* -EREMOTEIO in the answer: the pool has no secret, or a different one. */
int quern_ask_prefixes(struct quern *client, const struct quern_prefixes_wish *wish, int timeout_ms,
                       quern_answer_fn *fn, void *arg, struct quern_error *err);
/* For gateways that have their own users: reports what its tenants use, [n] in ascending order of ids, at
 * most 4096, replacing its previous report. A tenant that uses nothing yet may be included, so that others
 * know that it may want something. The answer is what these tenants use through other sessions of the same
 * client key, or through other clients in the run directory, reported within the last two seconds. -ENOTSUP:
 * the pool is too old; -EREMOTEIO in the answer: the client is not in the run directory and has no key, or
 * too much has been reported already. */
int quern_ask_tenants(struct quern *client, const struct quern_tenant *tenants, size_t n, int timeout_ms,
                      quern_answer_fn *fn, void *arg, struct quern_error *err);
/* Whether the pool answers that, as far as is known. */
bool quern_knows_tenants(const struct quern *client);
/* The status with requests, as in quern_requests. */
int quern_ask_requests(struct quern *client, const char *request_id, uint32_t most, int timeout_ms,
                       quern_answer_fn *fn, void *arg, struct quern_error *err);
int quern_ask_trace(struct quern *client, const char *worker, uint64_t from, int timeout_ms,
                    quern_answer_fn *fn, void *arg, struct quern_error *err);
int quern_ask_profile(struct quern *client, const char *worker, uint64_t run, uint32_t steps, int timeout_ms,
                      quern_answer_fn *fn, void *arg, struct quern_error *err);
int quern_ask_trim(struct quern *client, const char *worker, uint64_t run, bool prefixes, int timeout_ms,
                   quern_answer_fn *fn, void *arg, struct quern_error *err);
int quern_ask_tokenize(struct quern *client, const struct quern_text *text, int timeout_ms,
                       quern_answer_fn *fn, void *arg, struct quern_error *err);
int quern_ask_detokenize(struct quern *client, const struct quern_ids *ids, int timeout_ms,
                         quern_answer_fn *fn, void *arg, struct quern_error *err);

/* The rendered prompt of a conversation: the answer has its ids, its text as `content` and, if the request
 * sets `pieces`, the bytes of each id. Only model, messages, tools, template_kwargs and continue_turn of the
 * request are used. -EINVAL: it has no messages. */
int quern_ask_prompt(struct quern *client, const struct quern_request *request, int timeout_ms,
                     quern_answer_fn *fn, void *arg, struct quern_error *err);

#ifdef __cplusplus
}
#endif

#endif
