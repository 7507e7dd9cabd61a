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
 * A client is one session with one pool. Any number of requests run at once on it; outputs come to each
 * request's callback inside quern_dispatch, in order, without gap or repetition, and then exactly one end.
 * The library requests frames that the stream lost again; when the broker restarts, it reopens the session
 * and resumes its requests. No function blocks longer than its timeout. A client belongs to one thread at a
 * time; several clients may live in several threads.
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
 * library; -EAGAIN: it accepts no further session now. */
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

/* Whether the session is open now: false while it opens, and if the broker has been silent for three seconds.
 */
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
    bool ranks;         /* those are the scores of a pair of texts: it ranks, and embeds nothing */
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
    const char *name;         /* of the speaker, or of the tool that returned the result; NULL: none */
    const char *tool_calls;   /* of the assistant: JSON, as OpenAI's clients write them; NULL: none */
    const char *tool_call_id; /* of the call that returned the result; NULL: none */
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
    QUERN_JSON,   /* any JSON object; without text */
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
    /* With text, which may then be "": the output fills the gap between the text and this one; NULL: it
     * follows the text. Rejected if the model has no tokens for that. `files`: JSON, an array of other files
     * as context, each an object with `filename` and `text`; NULL: none. If not all fit, the first ones are
     * left out. */
    const char *suffix, *files;
    /* With text and `embed`: the text is a query, and what is asked for is how well this text answers it:
     * scores of a model that ranks (struct quern_worker) in the place of an embedding, the first of which is
     * the one to sort by. NULL: none. */
    const char *document;
    /* With messages: the tools that the model may call, JSON in OpenAI's form; NULL: none. Calls appear in
     * the output text, in the model's own dialect (struct quern_worker). */
    const char *tools;
    /* With messages: variables of the chat template, a JSON object, such as {"enable_thinking": false}; NULL:
     * none. */
    const char *template_kwargs;
    /* With messages: the output text includes the control tokens that the model writes around calls, thoughts
     * and its answer. It always does in requests with tools. */
    bool marks;
    bool special; /* true; parse control tokens in `text`. Those in messages always stay text */
    /* Text and ids only: instead of tokens the only output is the prompt's embedding, with the end. Excludes
     * max_tokens, stops, grammar and logprobs; sampling parameters are ignored. */
    bool embed;

    const char *model;   /* NULL: any */
    uint32_t max_tokens; /* 0: as many as the context has room for */
    bool fit_context;    /* reduce max_tokens to what the prompt leaves */
    /* Parameters left as quern_request_init sets them (QUERN_LEFT, QUERN_LEFT_COUNT) get the pool's value,
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
    /* The same for each id that the tokenizer makes of a text. */
    const struct quern_text_bias *logit_bias_text; /* [n_logit_bias_text] */
    size_t n_logit_bias_text;
    const char *const *bad_words; /* [n_bad_words] texts that the output never completes */
    size_t n_bad_words;
    int32_t repeat_last_n;    /* last ids that the penalties count; −1: all, 0 = off */
    double top_n_sigma;       /* standard deviations below the largest logit; 0 = off */
    double typical_p;         /* 1 = off */
    double xtc_probability;   /* 0 = off */
    double xtc_threshold;     /* of XTC */
    double dynatemp_range;    /* temperature ± this, by the entropy; 0 = off */
    double dynatemp_exponent; /* of that */
    double dry_multiplier;    /* 0 = off */
    double dry_base;          /* of DRY, as the others */
    int32_t dry_allowed_length;
    int32_t dry_penalty_last_n;               /* −1: all, 0 = off */
    const char *const *dry_sequence_breakers; /* [n_dry_sequence_breakers]; NULL: the usual ones */
    size_t n_dry_sequence_breakers;
    bool has_seed; /* false: a random one is chosen */
    uint64_t seed;
    const char *const *stop; /* [n_stop] strings that end the output before them */
    size_t n_stop;
    const int32_t *stop_ids; /* [n_stop_ids] */
    size_t n_stop_ids;
    bool ignore_eos;     /* never generate the model's own end ids; not with a grammar */
    uint32_t min_tokens; /* no stop ends the output before this many; not with a grammar */
    /* A thought has at most thinking_budget tokens; then it is ended as the model's chat template ends one,
     * and the output goes on freely. 0: no thought, where the template has a switch for that, or one that is
     * closed at once. For messages, and prompts that open a thought. Rejected if it is not known how the
     * model's thoughts end. False: thoughts of any length. */
    bool has_thinking_budget;
    uint32_t thinking_budget;
    const char *grammar;             /* that the output must match; NULL: none */
    enum quern_grammar grammar_kind; /* how it is written */
    uint32_t logprobs;               /* 0 = none; n: of the sampled id and of the n − 1 most likely ones */
    bool pieces;                     /* with logprobs: outputs also contain the bytes of those ids */
    int32_t priority;                /* −8 … 8, higher first */
    uint64_t deadline_ms;            /* 0 = none */
    uint32_t keep_s;                 /* 0: ends with the session; else lives this many seconds without it */
    /* Cached prefixes are shared only with requests of the same salt; NULL: of the same tenant. A client with
     * a key of its own shares them with nobody else (SECURITY.md). */
    const char *cache_salt;
    bool cache_prompt; /* true; false: neither look up nor keep the prompt in the prefix cache */
    /* For a program that serves several users: the name of the user, at most 128 bytes. The pool divides
     * turns and shares among tenants. NULL: the request counts for the session. */
    const char *tenant;
    /* Limits of that tenant: requests, and tokens of prompts and answers, per minute and per day; 0: none.
     * The pool counts them over all clients that name the tenant. Needs a client in the run directory, or one
     * with a key of its own. Beyond them a request is "overloaded". Outputs of one quern_encoded count as one
     * request. */
    uint64_t rpm, tpm, rpd, tpd;
    bool part; /* with limits: it belongs to a request that was counted, and only its tokens count */
    /* A name for logs and quern_requests: printable ASCII without blanks, at most 128 bytes; NULL: none. It
     * need not be unique. */
    const char *request_id;
    /* Resuming: this request was begun before, perhaps in another pool, and continues behind `output` as if
     * nothing had happened. Penalties, stops, grammar and thoughts see the output from its first id on, and
     * the counters of the end include it. Outputs begin at index n_output. Everything else is the same as in
     * the request that was begun; above all has_seed and `seed` are required. max_tokens includes `output`:
     * set it, since the default is up to the pool, and so are the values of sampling parameters that are left
     * out. A complete output is answered by its end. Not for embeddings, and an encoded request that resumes
     * can be sent once only. The pool ends it with the error "conflict" if its prompt is another than
     * prompt_digest says, and with "unsupported" if it cannot resume. */
    const int32_t *output; /* [n_output] all ids so far */
    size_t n_output;
    uint64_t off;  /* bytes of text so far, of whole characters; text of `output` beyond them comes again */
    uint32_t lost; /* workers that died with it so far, as quern_end says; at most 2 */
    const uint8_t *prompt_digest; /* [16] that came with `output` (struct quern_output); NULL: any prompt */
    bool progress;      /* outputs also report how much of the prompt is processed (struct quern_progress) */
    bool tell_admitted; /* an output also reports that the pool has accepted it (struct quern_admitted) */
};

/* Sets the defaults given above. */
void quern_request_init(struct quern_request *request);

/* A numeric member of struct quern_request, described so that a program can offer it to its users. */
struct quern_parameter {
    const char *name;   /* of the member: "top_k" */
    const char *letter; /* placeholder for its value in option help: "K"; NULL: not a user option */
    const char *help;   /* "sample from the K most likely; 0 = off, 1 = greedy" */
    double initial;     /* default; a seed is random if it is not set */
    bool of_model;      /* the pool's or the model's value comes before `initial` */
};

/* The i-th parameter; false beyond the last. */
bool quern_parameter(size_t i, struct quern_parameter *ret_parameter);

/* Sets a parameter by name, from text; NULL: to its default. -ENOENT: unknown name; -EINVAL: not a number, or
 * out of range; the text names the range. */
int quern_request_set(struct quern_request *request, const char *name, const char *value,
                      struct quern_error *err);

/* Writes the value of a parameter as quern_request_set takes it; "" if nobody has set it, so that the pool
 * chooses. -ENOENT: unknown name. */
#define QUERN_VALUE_BYTES 32
int quern_request_get(const struct quern_request *request, const char *name,
                      char ret_value[QUERN_VALUE_BYTES]);

/* Why a request ended. */
enum quern_reason { QUERN_STOP, QUERN_LENGTH, QUERN_CANCELLED, QUERN_DEADLINE, QUERN_ERROR };
const char *quern_reason_name(enum quern_reason reason); /* "stop", … */

/* What remains of a limit: of the minute's or the day's, whichever leaves less. */
struct quern_quota {
    uint64_t limit, remaining; /* limit 0: there is none */
    uint64_t reset_ms;         /* until all of it is available again */
};

struct quern_end {
    enum quern_reason reason;
    const char *error;       /* QUERN_ERROR: its name in the protocol ("overloaded"); else "" */
    const char *text;        /* a text for people; else "" */
    const char *stop;        /* QUERN_STOP: the stop string that ended it; else "" */
    const char *limit;       /* QUERN_LENGTH: the limit: "max_tokens", "context" or "pool"; else "" */
    uint32_t retry_after_ms; /* of "overloaded" */
    uint64_t seed;
    uint32_t prompt_tokens, cached_tokens, output_tokens;
    /* With --draft: tokens of drafts that were verified, and those of them that are part of the output. Only
     * of the worker that ended the request: what an earlier one verified is not counted. Otherwise 0. */
    uint32_t drafted_tokens, accepted_tokens;
    double queue_ms, prefill_ms, decode_ms; /* arrival → a worker → first token → last token */
    double prepare_ms, wait_ms, lookup_ms;  /* parts of prefill_ms: until ids, turn and prefix are found */
    struct quern_quota requests, tokens;    /* of "overloaded", if the request has limits for its tenant */
    /* Workers that died with this request, including `lost` of the request. With "worker_lost", 3 says that
     * the request itself is the likely reason: do not resume it elsewhere. */
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
    /* [16] identifies the ids that the prompt became: in the first output of every worker that has the
     * request, else NULL. A program that may resume the request elsewhere keeps it. */
    const uint8_t *prompt_digest;
    const float *embedding; /* [n_embedding], of length one, or the scores of a model that ranks: with the
                             * end of a request with `embed` */
    size_t n_embedding;
    const struct quern_admitted *admitted; /* if requested: in an output without ids, usually the first */
    /* If requested: in some outputs without ids, before the first id. After a move to another worker it
     * starts again. Some may be missing. */
    const struct quern_progress *progress;
    const struct quern_end *end; /* in the last output, else NULL */
};

/* Called inside quern_dispatch. It may call quern_encode, quern_generate, quern_cancel, quern_attach and
 * their other forms that do not wait, nothing else: functions that wait return -EBUSY here. */
typedef void quern_output_fn(void *arg, const struct quern_output *output);

/* Sends a request; everything is copied. 0: outputs will come until an end; a rejection by the pool is also
 * an end, with the reason QUERN_ERROR. -EINVAL: a value is out of range; the text names it. -EMSGSIZE: larger
 * than the pool accepts, which is 8 bytes for each token of its largest context, and at least 4 MiB; requests
 * above 4 MiB are sent in parts. Only a few MiB of large requests are sent at a time; the others wait in the
 * client until the pool has accepted some, and tenants take turns. -EAGAIN: too many bytes of this tenant are
 * waiting. A single tenant may have 32 MiB, each of n tenants 1/(n + 1) of 64 MiB; quern_dispatch returns
 * when there is room again. */
int quern_generate(struct quern *client, const struct quern_request *request, quern_output_fn *fn, void *arg,
                   struct quern_id *ret_id, struct quern_error *err);

/* An encoded request that can be sent several times, for several outputs of one prompt: all of them share one
 * copy in memory. quern_encode checks the request and copies everything; errors are those of quern_generate.
 * Clients of other pools may send it too; what one of those does not take, it rejects.
 * quern_encoded_free takes NULL, returns NULL, and may be called while outputs are still to come. */
struct quern_encoded;
int quern_encode(struct quern *client, const struct quern_request *request,
                 struct quern_encoded **ret_encoded, struct quern_error *err);
struct quern_encoded *quern_encoded_free(struct quern_encoded *encoded);
size_t quern_encoded_bytes(const struct quern_encoded *encoded); /* of the message sent for each */

/* What has come of a request that was begun elsewhere: members as those of struct quern_request. */
struct quern_resume {
    const int32_t *output; /* [n_output] */
    size_t n_output;
    uint64_t off;
    uint32_t lost;
    const uint8_t *prompt_digest; /* [16]; NULL: any prompt */
    uint64_t elapsed_ms;          /* since it was begun: its deadline is that much shorter, at least 1 ms */
};

/* The encoded request as one that resumes, for a program that no longer has the request itself. It must have
 * a seed, here or in quern_generate_encoded; its limits are taken as counted.
 * Errors as of quern_encode; -EINVAL: it resumes already, or asks for an embedding. */
int quern_encode_resumed(struct quern *client, const struct quern_encoded *encoded,
                         const struct quern_resume *resume, struct quern_encoded **ret_encoded,
                         struct quern_error *err);

/* Sends it, as quern_generate does. `seed` is for this output; NULL: that of the request, or a random one.
 * -EINVAL: it resumes a request, and was sent before. */
int quern_generate_encoded(struct quern *client, struct quern_encoded *encoded, const uint64_t *seed,
                           quern_output_fn *fn, void *arg, struct quern_id *ret_id, struct quern_error *err);

/* Sends a request and dispatches until it has ended. Other requests make progress meanwhile. */
int quern_generate_wait(struct quern *client, const struct quern_request *request, quern_output_fn *fn,
                        void *arg, struct quern_error *err);

/* The embedding of a text or of ids: sends the request as if its `embed` was set, and dispatches until it has
 * ended. *ret_embedding, [*ret_n], is of length one (Euclidean) and lives until the next call with this
 * client; it has the direction of the mean of the model's final states, or of the pooling that the model
 * specifies. With `document` in the request it has the scores of the pair instead. *ret_end, which may be
 * NULL, has the counters; its texts are "". -EREMOTEIO: the pool ended it otherwise, and the text says how.
 */
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
 * -1: without limit) for messages. Call it at least once a second, or the pool considers the client gone.
 * Returns the number of callbacks made, which may be 0 if a signal interrupted the wait, or if there is room
 * again after quern_generate returned -EAGAIN. Or a negative code, which every later call returns too, after
 * every request has had its end: -ETIMEDOUT: the broker did not answer within the patience, or did not reopen
 * a lost session; -EPROTO: it shares no protocol version with this library. */
int quern_dispatch(struct quern *client, int timeout_ms, struct quern_error *err);

/* From now on quern_dispatch also returns when this descriptor can be read: an epoll(7) with the program's
 * other descriptors, so that one loop serves both. -1: none. It stays the caller's. */
void quern_watch(struct quern *client, int fd);

/* ---- several pools ----
 *
 * A program with a client for each of several pools waits for all of them at once:
 *
 *     quern_wait(clients, n, fd, 20);
 *     for (size_t i = 0; i < n; i++)
 *         quern_dispatch(clients[i], 0, &err);
 */

/* Waits until one of the clients has something to do (or was used since its last dispatch, or libzmq has done
 * something for it), the descriptor `fd` (-1: none) can be read, or timeout_ms have passed. Timers of
 * requests need a dispatch every 20 ms while requests run, and of sessions every 250. Not from inside a
 * callback. 0 or -errno: -ENOMEM. */
int quern_wait(struct quern *const *clients, size_t n, int fd, int timeout_ms);

/* How often the broker is asked whether it lives, in milliseconds; at least 10. Default 1,000. */
void quern_set_ping(struct quern *client, uint32_t milliseconds);

/* Milliseconds since the broker last answered such a question, or since the client began to connect. Frames
 * are no answer: a broker that hears nothing may still send them. */
uint64_t quern_silence(const struct quern *client);

/* The load of the pool, as its broker counts it. */
struct quern_load {
    uint64_t tokens; /* to process and generate, for all clients, as estimated */
    uint64_t own;    /* of those, for this session */
    uint32_t slots;  /* sequences that its ready workers decode at once */
    double kept;     /* share of what it should have in its prefix caches that it probably has */
    bool draining;   /* it takes no new requests */
};

/* From now on the questions whether the broker lives (quern_set_ping) also ask for its load. */
void quern_follow_load(struct quern *client);

/* The last one that it told; NULL: none in this session, or the pool is older than this. */
const struct quern_load *quern_load(const struct quern *client);

/* How many handshakes have failed in a row, with CURVE: from three on the server key is most likely another
 * pool's. */
uint32_t quern_failed_handshakes(const struct quern *client);

/* ---- questions ---- */

#define QUERN_HISTOGRAM_BOUNDS 15

/* How often a value was seen, since its worker's start: counts[i] times above the bound before and up to
 * bounds[i], the last of them above all bounds. */
struct quern_histogram {
    const double *bounds; /* [QUERN_HISTOGRAM_BOUNDS] rising: seconds, rows, or shares up to 1 */
    uint64_t counts[QUERN_HISTOGRAM_BOUNDS + 1];
    double sum; /* of all values */
};

struct quern_worker {
    const char *name, *device, *model;
    const char *const *aliases; /* other names of its model; a NULL ends them */
    bool chat;                  /* its model has a chat template; else it continues texts */
    const char *tools; /* how its model writes tool calls: "object", "named" or "members"; "": it has none */
    bool thinks;       /* the model thinks before it answers, as far as its chat template shows it */
    const char *dialect; /* how it does both: JSON, as `quern inspect` shows it; "": unknown */
    /* Its sampling defaults, each with its source (pool, model or default): "temperature=0.6:model …" */
    const char *sampling;
    const char *digest; /* of its model's file, 32 hexadecimal digits */
    /* What its ids depend on beside that: "cpu avx2 kv=f16 weights=file"; with the same, they are the same.
     */
    const char *arithmetic;
    /* Of a GPU: what was measured to choose kernels by, in a line; "": nothing was. `quern inspect --device`
     * shows the choices. */
    const char *choices;
    /* Of a GPU: its number on its host, UUID, the driver's version, and compute capability, 10 · major +
     * minor; 0 and "": unknown, or no GPU. */
    uint32_t device_number;
    const char *device_uuid, *device_driver;
    uint32_t device_capability;
    const char *state; /* "absent", "starting", "loading", "ready", "draining", "failed" */
    uint32_t pid, incarnation, restarts;
    uint32_t active, waiting, slots;
    uint32_t kv_free, kv_total; /* blocks of the KV cache */
    uint32_t kv_block_bytes;    /* of one: all bytes of the cache / kv_total; 0: not known yet */
    uint32_t context;           /* most tokens of a sequence */
    uint32_t embedding;         /* numbers of an embedding; 0: not available */
    bool ranks;                 /* those are the scores of a pair of texts: it ranks, and embeds nothing */
    uint64_t steps, tokens, cache_hits;
    double tokens_per_s;
    uint64_t prefill_tokens, evictions, restores;
    /* Bytes: what its device has taken for it, weights and all; of it the KV cache, of which sequences hold a
     * part; and the states of recurrent layers with their snapshots. 0: not known yet. */
    uint64_t memory, memory_kv, memory_kv_held, memory_states;
    /* Of it also the weights and the work space of steps; beside it, pinned memory of the host. What its GPU
     * has free, and in all. */
    uint64_t memory_weights, memory_workspace, memory_staging, device_free, device_total;
    uint64_t memory_resident; /* bytes of the machine's memory that its process holds */
    /* The most that each of these has been since the worker's start, in bytes. */
    uint64_t memory_peak, memory_kv_held_peak, memory_resident_peak;
    /* Of a GPU: kernels launched one by one, steps launched as one recording, and rows computed for nothing
     * to fill one. Sizes of decodes that its driver refused to record; their kernels are launched one by one.
     */
    uint64_t launches, recorded_launches, padding_rows, refused_recordings;
    uint64_t library_products; /* of matrices, made by cuBLASLt */
    /* With --draft: tokens of drafts that were verified, and those of them that were right. */
    uint64_t drafted, accepted;
    /* With --host-sampling: tokens that GPU and host have sampled, and those of them that differ. */
    uint64_t ids_compared, ids_different;
    uint32_t kv_cached;
    double hit_rate; /* share of prompt tokens found in the prefix cache: 0 … 1 */
    /* Of all steps: seconds of those that only decode, only prefill, and do both; rows of each, and with
     * those that fill a recorded size; the shares of slots and KV blocks in use. Of all answers: seconds
     * between two tokens, and from a request's arrival at the worker to its first one. */
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
    const char *worker;     /* that has it; "": none */
    const char *model;      /* that it asks for; "": any */
    uint64_t age_ms;        /* since its arrival */
    uint64_t tokens;        /* generated so far */
    uint32_t moves;         /* to another worker */
};

struct quern_status {
    uint64_t boot;
    bool draining;
    const char *version;
    uint32_t sessions, queued, running;
    uint64_t admitted, ended, rejected;
    uint64_t moved; /* to another worker, after theirs had died or ended */
    uint64_t tokens, journal_bytes;
    uint64_t journal_limit;   /* bytes that the journal may have */
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

/* These functions wait for the answer at most timeout_ms, and dispatch meanwhile.
 *
 * The pool's status, valid until the next call with this client. */
int quern_status(struct quern *client, int timeout_ms, const struct quern_status **ret_status,
                 struct quern_error *err);

/* The same with at most `most` (1 to 1024) unfinished requests, the oldest first: in the run directory
 * everybody's, else the client's own. `request_id`: only those with this name; NULL: all. */
int quern_requests(struct quern *client, const char *request_id, uint32_t most, int timeout_ms,
                   const struct quern_status **ret_status, struct quern_error *err);

/* A step of a worker, or a mark of a request, in microseconds since the worker began; 0: not known. */
struct quern_trace_record {
    /* "step"; of a request: "admitted" (n: microseconds in the queue), "tokenized" (ids of its prompt),
     * "slot" (which), "prefix" (ids found in the cache), "prefill_begin" and "prefill_end" (ids),
     * "first_token", "slot_lost" (preempted, or out of credit; ids that it has), "given_back" (its worker is
     * ending, another one goes on; ids of the answer so far), "end" (ids of the answer) */
    const char *what;
    uint64_t at_us;
    uint64_t n; /* of a step: its number */
    /* Of a step: its rows, those that were computed for nothing, and ids that requests got from it; its time
     * in all, until its rows were embedded, in layers and head, and sampling. */
    uint32_t decode_rows, prefill_rows, padding_rows, ids;
    uint32_t total_us, embed_us, layers_us, sample_us;
    const char *id;         /* of the request, hexadecimal; "": of a step */
    const char *request_id; /* its client's name for it, at least with "admitted"; "": none */
    const char *reason;     /* of an "end": "stop", "length", "cancelled", "deadline", "error"; else "" */
};

struct quern_trace {
    uint32_t incarnation; /* of the worker: another one counts its records anew */
    uint64_t next;        /* `from` of the next call */
    uint64_t lost;        /* records after `from` that were overwritten before this call */
    const struct quern_trace_record *records;
    size_t n;
};

/* What this worker does: records from number `from` on, as many as one answer has (1024); 0: of those made
 * from now on. The worker makes them as long as somebody asks at least every three seconds, and keeps the
 * last 4096. In the run directory all steps and requests are seen, else the client's own requests, in answers
 * of at most 64 records, the hidden ones counted; a client may then ask every 50 ms: -EREMOTEIO, "overloaded"
 * otherwise. Valid until the next call with this client. */
int quern_trace(struct quern *client, const char *worker, uint64_t from, int timeout_ms,
                const struct quern_trace **ret_trace, struct quern_error *err);

/* What a kernel of a worker, or a phase of a step, took; 0: not measured on its device. */
struct quern_kernel {
    const char *name;
    uint64_t n, ns;       /* runs, and the time of all */
    uint64_t bytes, macs; /* weights, keys and values to read; multiply-adds */
    /* Of an emulated device, which counts instead: blocks of threads; threads and shared bytes of a block at
     * most; bytes loaded; transactions of 32 bytes, and the bytes of them that threads used; passes over
     * shared memory, and those of bank conflicts. */
    uint64_t blocks, threads, shared_bytes, loaded, sectors, asked, passes, conflicts;
};

struct quern_profile {
    bool done;      /* these are the kernels; else ask again, soon: */
    uint32_t steps; /* measured so far */
    /* Bytes a second between the worker's device and its memory, at best, as its driver has it. 0: unknown */
    uint64_t bandwidth;
    const struct quern_kernel *kernels;
    size_t n;
};

/* Has the next steps (1 to 1000) of this worker measured kernel by kernel: they are slower, and nothing else
 * is different. `run` is a random number that is not 0 and names the profile: call this again with the same
 * one, at least every three seconds, until it is done: it does not begin again. Only in the run directory.
 * Valid until the next call with this client. */
int quern_profile(struct quern *client, const char *worker, uint64_t run, uint32_t steps, int timeout_ms,
                  const struct quern_profile **ret_profile, struct quern_error *err);

/* Memory that a worker gave back. */
struct quern_given {
    const char *kind; /* "kv", "states", "workspace", "library", "staging", "heap" */
    uint64_t bytes;
};

struct quern_trim {
    uint64_t blocks; /* KV blocks of cached prefixes that went */
    /* Bytes of the machine's memory that the worker's process holds, and free bytes of its GPU. 0: unknown */
    uint64_t resident_before, resident_after, device_free_before, device_free_after;
    const struct quern_given *given; /* what went, by kind; none of a kind of which there was nothing */
    size_t n;
};

/* Has this worker give back memory that nothing uses at the moment, between two of its steps; what it needs
 * it takes again. `prefixes`: cached prefixes that no request uses go too, and are computed again when they
 * are asked for. `run` is a random number that is not 0 and names the trim: with the same one it is not made
 * again, and has the same answer. Only in the run directory. Valid until the next call with this client. */
int quern_trim(struct quern *client, const char *worker, uint64_t run, bool prefixes, int timeout_ms,
               const struct quern_trim **ret_trim, struct quern_error *err);

/* A text to tokenize. */
struct quern_text {
    const char *model; /* whose tokenizer to use; NULL: any */
    const char *text;  /* [len], UTF-8 */
    size_t len;
    bool special; /* parse control tokens in the text */
    bool bare;    /* without BOS and EOS, which the model may want around a text */
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
    bool special; /* include control tokens by their names; else leave them out */
};

/* The text of ids, UTF-8, zero-terminated, *ret_len bytes; invalid bytes become U+FFFD. Valid until the next
 * call with this client. */
int quern_detokenize(struct quern *client, const struct quern_ids *ids, int timeout_ms, const char **ret_text,
                     size_t *ret_len, struct quern_error *err);

/* The beginnings of prompts that the pool has in its caches, as hashes of their pieces: what changed since
 * the last answer, or part of all of them. For gateways of a fleet; PROTOCOL.md says what is hashed. */
struct quern_prefixes_wish {
    uint64_t boot, next; /* of the last answer; 0: none yet */
    uint32_t at;
    const char *secret; /* of the fleet */
};
struct quern_prefixes {
    uint64_t boot;                   /* of the pool's broker */
    uint64_t next;                   /* number of the next change */
    uint32_t at;                     /* more of all pieces follow; 0: no more */
    uint32_t pieces;                 /* that the pool has in all */
    bool begins;                     /* the first part of all: what was told before is void */
    const char *space;               /* the base of the space of this client's prompts */
    const uint64_t *added, *dropped; /* [n_added], [n_dropped] */
    size_t n_added, n_dropped;
};

/* What a tenant has through a gateway. */
enum { QUERN_RPM, QUERN_TPM, QUERN_RPD, QUERN_TPD, QUERN_RATES };
struct quern_tenant {
    uint8_t id[16];           /* a hash of its name */
    uint64_t requests;        /* being answered now */
    uint64_t tokens;          /* that these may generate at most */
    double used[QUERN_RATES]; /* requests and tokens lately: what was used t ago counts exp(-t / T), where T
                               * is a minute (RPM, TPM) or a day (RPD, TPD) */
    uint32_t gateways;        /* of an answer: how many others tell of it */
};
struct quern_tenants {
    const struct quern_tenant *items; /* [n], in ascending order of ids */
    size_t n;
};

/* These functions do not wait: the answer comes to a callback inside quern_dispatch, with the same rules as
 * quern_output_fn. Any number of questions may be open. */
struct quern_answer {
    int code;         /* 0; -EREMOTEIO: the pool rejected it; -ETIMEDOUT; or the code of a broken session */
    const char *text; /* the reason if it is not 0; else "" */
    const struct quern_status *status;
    const struct quern_trace *trace;
    const struct quern_profile *profile;
    const struct quern_trim *trim;
    const int32_t *ids; /* [n_ids] */
    size_t n_ids;
    const struct quern_piece *pieces; /* [n_ids] if the tokenize asked for them; else NULL */
    const char *content; /* of a detokenize, or of a prompt: zero-terminated, content_len bytes; else NULL */
    size_t content_len;
    const struct quern_prefixes *prefixes;
    const struct quern_tenants *tenants;
};
typedef void quern_answer_fn(void *arg, const struct quern_answer *answer);

/* 0: one answer will come within about timeout_ms; -EMSGSIZE, -ENOMEM, or the code of a broken session. */
int quern_ask_status(struct quern *client, int timeout_ms, quern_answer_fn *fn, void *arg,
                     struct quern_error *err);
/* -EREMOTEIO in the answer: the pool has no secret, or another one. */
int quern_ask_prefixes(struct quern *client, const struct quern_prefixes_wish *wish, int timeout_ms,
                       quern_answer_fn *fn, void *arg, struct quern_error *err);
/* For gateways that have users of their own: tells what its tenants have, [n] in ascending order of ids, at
 * most 4096, in place of what it told before; of one that has nothing now others know by it that he may want
 * something. The answer is what they have through other sessions of the same client key, or through other
 * clients in the run directory, that told it within the last two seconds. -ENOTSUP: the pool is too old;
 * -EREMOTEIO in the answer: the client is not in the run directory and has no key, or too much is told
 * already. */
int quern_ask_tenants(struct quern *client, const struct quern_tenant *tenants, size_t n, int timeout_ms,
                      quern_answer_fn *fn, void *arg, struct quern_error *err);
/* Whether the pool answers that, as far as it was heard. */
bool quern_knows_tenants(const struct quern *client);
/* The status with requests, as quern_requests. */
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

/* The rendered prompt of a conversation: the answer has its ids, its text as `content`, and with the
 * request's `pieces` the bytes of each id. Only model, messages, tools, template_kwargs and continue_turn of
 * the request are used. -EINVAL: it has no messages. */
int quern_ask_prompt(struct quern *client, const struct quern_request *request, int timeout_ms,
                     quern_answer_fn *fn, void *arg, struct quern_error *err);

#ifdef __cplusplus
}
#endif

#endif
