/* SPDX-License-Identifier: MIT */
/* The command line and the configuration file.
 *
 * Both go through one table of settings by name, so that every long option may also stand in the file:
 *
 *     model = /models/llama.gguf
 *     workers = 2
 *
 * The command line is walked twice: first for --config alone, so that the file can be read before the rest of
 * the line is laid over it. */

#include "broker/settings/options.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/choose/admission.h"
#include "broker/settings/allowance.h"
#include "common/files/config_file.h"
#include "broker/settings/options_check.h"
#include "broker/settings/sampling_options.h"
#include "broker/books/ledger.h"
#include "broker/books/session.h"
#include "broker/choose/worker.h"
#include "common/program/arguments.h"
#include "common/clock.h"
#include "common/files/default_model.h"
#include "common/number.h"
#include "common/program/program.h"
#include "common/utf8.h"
#include "proto/launch.h"

#define DRAIN_S     60 /* with the time to stop, within the 90 s that service managers give */
#define DRAIN_MAX_S 86400

#define RETENTION_MAX_S 86400

enum setting_type {
    SETTING_TEXT,    /* char [limit] */
    SETTING_NUMBER,  /* uint32_t */
    SETTING_ALIASES, /* options.aliases, which each mention adds to */
    SETTING_OVERRIDE /* options.overrides, the same */
};

/* Under which heading --help shows it, in this order. */
enum setting_group {
    GROUP_NONE,
    GROUP_MODEL,
    GROUP_SAMPLING,
    GROUP_WORKERS,
    GROUP_POOL,
    GROUP_NETWORK,
    GROUP_HTTP,
    GROUP_CLIENTS,
    N_GROUPS
};

static const char *const headings[N_GROUPS] = {
    [GROUP_MODEL] = "Model:",
    [GROUP_SAMPLING] = "Sampling defaults, in place of the model's own:",
    [GROUP_WORKERS] = "Workers and memory:",
    [GROUP_POOL] = "Pool:",
    [GROUP_NETWORK] = "Network:",
    [GROUP_HTTP] = "HTTP:",
    [GROUP_CLIENTS] = "Limits of a client:",
};

#define OVERRIDE_SETTING(name, argument, help, ...)                                                          \
    {GROUP_MODEL, name, argument, help, SETTING_OVERRIDE, offsetof(struct options, overrides), 0, 0},

static const struct setting {
    enum setting_group group;
    const char *name;
    const char *argument; /* NULL: the option has none, and is 1 in the file */
    const char *help;     /* NULL: nobody needs to know */
    enum setting_type type;
    size_t offset;  /* of the member */
    uint32_t limit; /* texts: bytes with the zero; numbers: the largest */
    uint32_t least; /* numbers */
} settings[] = {
    {GROUP_MODEL, "alias", "NAME", "Another name for the model; may be given several times", SETTING_ALIASES,
     offsetof(struct options, aliases), 0, 0},
    {GROUP_MODEL, "chat-template", "FILE", "Chat template (default: the model's own)", SETTING_TEXT,
     offsetof(struct options, chat_template), PATH_MAX, 0},
    {GROUP_MODEL, "ctx", "N", "Context length in tokens (default: the model's)", SETTING_NUMBER,
     offsetof(struct options, context), LAUNCH_MAX_CONTEXT, 1},
    {GROUP_MODEL, "kv-type", "TYPE",
     "Type of keys and values: f16, bf16, f32, q8_0 or q4_0 (default f16; f32 for models that rank)",
     SETTING_TEXT, offsetof(struct options, kv_type), OPTIONS_TEXT_MAX + 1, 0},
    {GROUP_MODEL, "quantize", "TYPE",
     "Quantize weights in F32, F16 or BF16 while loading: Q8_0, Q4_K_M ... (default no)", SETTING_TEXT,
     offsetof(struct options, quantize), OPTIONS_TEXT_MAX + 1, 0},
    OVERRIDE_OPTIONS(OVERRIDE_SETTING){GROUP_MODEL, "system", "TEXT",
                                       "System message for conversations without one", SETTING_TEXT,
                                       offsetof(struct options, system), OPTIONS_SYSTEM_MAX + 1, 0},
    {GROUP_WORKERS, "workers", "N", "Worker processes (default: one per GPU; 1 without a GPU)",
     SETTING_NUMBER, offsetof(struct options, workers), WORKER_MAX, 1},
    {GROUP_WORKERS, "device", "D", QUERN_DEVICES " (default auto)", SETTING_TEXT,
     offsetof(struct options, device), OPTIONS_TEXT_MAX + 1, 0},
    {GROUP_WORKERS, "slots", "N", "Sequences that a worker decodes at once (default 32; on a GPU up to 256)",
     SETTING_NUMBER, offsetof(struct options, slots), LAUNCH_MAX_SLOTS, 1},
    {GROUP_WORKERS, "kv-blocks", "N",
     "KV cache of a worker, in blocks of 32 tokens (default: as many as the slots need, if they fit)",
     SETTING_NUMBER, offsetof(struct options, kv_blocks), LAUNCH_MAX_KV_BLOCKS, 1},
    {GROUP_WORKERS, "snapshots", "N",
     "Snapshots of recurrent layers' states in the prefix cache (default: four for each slot)",
     SETTING_NUMBER, offsetof(struct options, snapshots), LAUNCH_MAX_SNAPSHOTS, 1},
    {GROUP_WORKERS, "draft", "N",
     "Draft up to N tokens that followed the same tokens earlier in a text; 0: none (default none)",
     SETTING_NUMBER, offsetof(struct options, draft), LAUNCH_MAX_DRAFT, 0},
    {GROUP_WORKERS, "cached-blocks", "N",
     "Maximum KV blocks that the prefix cache keeps; 0: none (default all)", SETTING_NUMBER,
     offsetof(struct options, cached_blocks), LAUNCH_MAX_KV_BLOCKS, 0},
    {GROUP_WORKERS, "prefix-store", "MIB",
     "Memory through which workers share KV blocks of prompts (default none)", SETTING_NUMBER,
     offsetof(struct options, prefix_store), LAUNCH_MAX_PREFIX_STORE, 1},
    {GROUP_WORKERS, "share-prefixes", NULL,
     "Share the prefix cache between all keys and tenants (default: each has its own part)", SETTING_NUMBER,
     offsetof(struct options, share_prefixes), 1, 0},
    {GROUP_WORKERS, "threads", "N", "CPU threads of a worker (default: cores/workers)", SETTING_NUMBER,
     offsetof(struct options, threads), LAUNCH_MAX_THREADS, 1},
    {GROUP_WORKERS, "invariant", NULL,
     "Make answers independent of concurrent requests, also on a GPU; slower there", SETTING_NUMBER,
     offsetof(struct options, invariant), 1, 0},
    {GROUP_WORKERS, "host-sampling", NULL,
     "On a GPU, also sample each token on the host, compare, and use the host's; slow", SETTING_NUMBER,
     offsetof(struct options, host_sampling), 1, 0},
    {GROUP_WORKERS, "cublas", "ROWS",
     "On a GPU, use cuBLASLt for prompt steps of ROWS rows or more: off, auto or a number (default off)",
     SETTING_TEXT, offsetof(struct options, cublas), OPTIONS_TEXT_MAX + 1, 0},
    {GROUP_POOL, "rundir", "DIR", "Run directory (default $XDG_RUNTIME_DIR/quern or /tmp/quern-UID)",
     SETTING_TEXT, offsetof(struct options, rundir), RUNDIR_PATH_MAX + 1, 0},
    {GROUP_POOL, "frame-us", "N",
     "Send tokens generated within this many microseconds in one frame; 0: never (default 250)",
     SETTING_NUMBER, offsetof(struct options, frame_us), LAUNCH_MAX_FRAME_US, 0},
    {GROUP_POOL, "journal", "MIB",
     "Memory for answers that clients may request again (default: as slots and contexts need, 256 to 4096, "
     "at "
     "most an eighth of the memory)",
     SETTING_NUMBER, offsetof(struct options, journal), OPTIONS_JOURNAL_MAX_MIB, 16},
    {GROUP_POOL, "max-tokens", "N",
     "Maximum tokens of an answer; requests for more are rejected (default: to the end of the context)",
     SETTING_NUMBER, offsetof(struct options, max_tokens), INT32_MAX, 1},
    {GROUP_POOL, "retention", "SECONDS",
     "Keep answers this long after their end, if there is room (default 60)", SETTING_NUMBER,
     offsetof(struct options, retention), RETENTION_MAX_S, 1},
    {GROUP_POOL, "drain-seconds", "N",
     "On shutdown, end unfinished requests after this many seconds (default 60)", SETTING_NUMBER,
     offsetof(struct options, drain_seconds), DRAIN_MAX_S, 0},
    {GROUP_POOL, "no-sandbox", NULL, "Do not confine workers, for debugging", SETTING_NUMBER,
     offsetof(struct options, no_sandbox), 1, 0},
    {GROUP_POOL, "owner", "PID", "On exit, remove the run directory if the parent process PID is gone",
     SETTING_NUMBER, offsetof(struct options, owner), INT32_MAX, 1},
    {GROUP_POOL, "supervision-fd", "FD", NULL, SETTING_NUMBER, offsetof(struct options, supervision_fd),
     INT32_MAX, 1},
    {GROUP_POOL, "began", "SECONDS", NULL, SETTING_NUMBER, offsetof(struct options, began), INT32_MAX, 1},
    {GROUP_POOL, "said-by", "NAME", NULL, SETTING_TEXT, offsetof(struct options, said_by),
     OPTIONS_TEXT_MAX + 1, 0},
    {GROUP_NETWORK, "tcp", "HOST:PORT", "Also listen on TCP; token streams on PORT + 1", SETTING_TEXT,
     offsetof(struct options, tcp), OPTIONS_TEXT_MAX + 1, 0},
    {GROUP_NETWORK, "public-host", "NAME", "Name or address at which clients reach --tcp (default: its HOST)",
     SETTING_TEXT, offsetof(struct options, public_host), OPTIONS_TEXT_MAX + 1, 0},
    {GROUP_NETWORK, "curve-key", "FILE", "Encrypt TCP with this CURVE certificate (its secret file)",
     SETTING_TEXT, offsetof(struct options, curve_key), PATH_MAX, 0},
    {GROUP_NETWORK, "client-keys", "DIR", "Accept over TCP only clients whose public certificates are in DIR",
     SETTING_TEXT, offsetof(struct options, client_keys), PATH_MAX, 0},
    {GROUP_NETWORK, "any-client", NULL, "Accept over TCP any client that knows the public key of --curve-key",
     SETTING_NUMBER, offsetof(struct options, any_client), 1, 0},
    {GROUP_NETWORK, "member", "DIR/NAME",
     "Join the fleet in DIR: keep the file NAME there while the pool serves", SETTING_TEXT,
     offsetof(struct options, member), PATH_MAX, 0},
    {GROUP_NETWORK, "fleet-secret", "FILE",
     "Let gateways that have the same secret know which prompts the pool has cached", SETTING_TEXT,
     offsetof(struct options, fleet_secret), PATH_MAX, 0},
    {GROUP_HTTP, "http", "HOST:PORT",
     "Also serve HTTP there, with a quern-gateway; auto: 127.0.0.1:8080, or another port if it is taken",
     SETTING_TEXT, offsetof(struct options, http), OPTIONS_TEXT_MAX + 1, 0},
    {GROUP_HTTP, "http-keys", "FILE", "API keys: lines of NAME KEY, see quern-gateway(1)", SETTING_TEXT,
     offsetof(struct options, http_keys), PATH_MAX, 0},
    {GROUP_HTTP, "http-hosts", "NAME,...", "Without keys: further host names that browsers may use",
     SETTING_TEXT, offsetof(struct options, http_hosts), OPTIONS_TEXT_MAX + 1, 0},
    {GROUP_HTTP, "http-tls-cert", "FILE", "Serve HTTPS with this certificate and its chain (PEM)",
     SETTING_TEXT, offsetof(struct options, http_tls_cert), PATH_MAX, 0},
    {GROUP_HTTP, "http-tls-key", "FILE", "The private key of that certificate (PEM)", SETTING_TEXT,
     offsetof(struct options, http_tls_key), PATH_MAX, 0},
    {GROUP_HTTP, "http-log", "FILE", "Write a line of JSON to FILE for each HTTP request", SETTING_TEXT,
     offsetof(struct options, http_log), PATH_MAX, 0},
    {GROUP_HTTP, "http-otlp", "URL",
     "Send spans of each HTTP request to this OpenTelemetry collector, e.g. http://HOST:4318", SETTING_TEXT,
     offsetof(struct options, http_otlp), OPTIONS_TEXT_MAX + 1, 0},
    {GROUP_HTTP, "http-otlp-headers", "FILE", "Send the headers in FILE with the spans", SETTING_TEXT,
     offsetof(struct options, http_otlp_headers), PATH_MAX, 0},
    {GROUP_HTTP, "http-cors", "ORIGIN", "Allow web pages of ORIGIN: https://HOST, or * for all", SETTING_TEXT,
     offsetof(struct options, http_cors), OPTIONS_TEXT_MAX + 1, 0},
    {GROUP_HTTP, "http-open", NULL, "Serve other machines without keys", SETTING_NUMBER,
     offsetof(struct options, http_open), 1, 0},
    {GROUP_HTTP, "http-max-tokens", "N",
     "Max tokens of an answer if the request sets none (default: to the end of the context)", SETTING_NUMBER,
     offsetof(struct options, http_max_tokens), INT32_MAX, 1},
    {GROUP_HTTP, "http-thinking-budget", "N",
     "End a thought after N tokens if the request sets no budget; 0: no thought (default: no budget)",
     SETTING_NUMBER, offsetof(struct options, http_thinking_budget), INT32_MAX, 0},
    {GROUP_HTTP, "http-body-kb", "N",
     "Largest request body, in KiB (default: twice the longest prompt, 8192 at least)", SETTING_NUMBER,
     offsetof(struct options, http_body_kb), 1 << 20, 1},
    {GROUP_HTTP, "http-sse-ping", "N",
     "Send a ping on an event stream after N seconds of silence (default 15; 0: never)", SETTING_NUMBER,
     offsetof(struct options, http_sse_ping), 86400, 0},
    {GROUP_CLIENTS, "client-requests", "N",
     "Maximum unfinished requests of a client, by key or session (default: its share)", SETTING_NUMBER,
     offsetof(struct options, client_requests), ADMISSION_MAX_QUEUED, 1},
    {GROUP_CLIENTS, "client-sessions", "N", "Maximum sessions of a client with a key (default 4096)",
     SETTING_NUMBER, offsetof(struct options, client_sessions), SESSION_MAX, 1},
    {GROUP_CLIENTS, "client-subscriptions", "N",
     "Maximum stream subscriptions of a client with a key (default 8192, or two for each session)",
     SETTING_NUMBER, offsetof(struct options, client_subscriptions), ALLOWANCE_MAX_SUBSCRIPTIONS, 1},
    {GROUP_CLIENTS, "client-tokens", "N",
     "Maximum tokens per minute of a client with a key, prompts and answers (default: no limit)",
     SETTING_NUMBER, offsetof(struct options, client_tokens), INT32_MAX, 1},
};
#define N_SETTINGS (sizeof settings / sizeof *settings)

enum { KEY_CONFIG = 1000, KEY_SETTING, KEY_SAMPLING = KEY_SETTING + N_SETTINGS };

static int set_text(const char *name, const char *value, size_t size, char *ret_text, struct error *err)
{
    size_t len = strlen(value);
    if (len == 0 || len >= size)
        return error_set(err, -EINVAL, "%s: \"%.80s\" is %s", name, value, len ? "too long" : "empty");
    memcpy(ret_text, value, len + 1);
    return 0;
}

/* Adds a name to those that the model answers to. */
static int add_alias(struct options *options, const char *name, const char *value, struct error *err)
{
    struct bytes text = bytes_of_string(value);
    if (options->n_aliases == PROTO_MAX_ALIASES)
        return error_set(err, -EINVAL, "%s: more than %d names", name, PROTO_MAX_ALIASES);
    for (uint32_t i = 0; i < options->n_aliases; i++)
        if (strcmp(options->aliases[i], value) == 0)
            return error_set(err, -EINVAL, "%s: \"%.80s\" is given twice", name, value);
    for (const char *at = value; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return error_set(err, -EINVAL, "%s: \"%.80s\" has a control character", name, value);
    if (utf8_valid(text) < text.len)
        return error_set(err, -EINVAL, "%s: \"%.80s\" is not UTF-8", name, value);
    int r = set_text(name, value, sizeof options->aliases[0], options->aliases[options->n_aliases], err);
    options->n_aliases += r == 0;
    return r;
}

static int set(struct options *options, const struct setting *setting, const char *value, struct error *err)
{
    void *field = (char *)options + setting->offset;
    if (field == &options->frame_us)
        options->has_frame_us = true;
    if (field == &options->http_sse_ping)
        options->has_http_sse_ping = true;
    if (field == &options->http_thinking_budget)
        options->has_http_thinking_budget = true;
    if (field == &options->cached_blocks)
        options->has_cached_blocks = true;
    if (setting->type == SETTING_NUMBER) {
        int r = number_read_u32(value, setting->least, setting->limit, field, err);
        return r < 0 ? error_prefix(err, r, "%s", setting->name) : 0;
    }
    if (setting->type == SETTING_ALIASES)
        return add_alias(options, setting->name, value, err);
    if (setting->type == SETTING_OVERRIDE) {
        int r = overrides_add(options->overrides, setting->name, value, err);
        return r < 0 ? error_prefix(err, r, "%s", setting->name) : 0;
    }
    return set_text(setting->name, value, setting->limit, field, err);
}

/* A configuration file being read. */
struct reading {
    struct options *options;
    unsigned
        lines[N_SETTINGS + 1 + SAMPLING_N]; /* of each setting, the model, each of sampling; 0: not yet */
};

/* Two lines that give one setting would hide one of them. */
static int note_line(struct reading *reading, size_t i, unsigned line, const char *name, struct error *err)
{
    if (reading->lines[i] > 0)
        return error_set(err, -EINVAL, "%s: already set in line %u", name, reading->lines[i]);
    reading->lines[i] = line;
    return 0;
}

/* config_file_read's call. What only our own processes say to each other is no setting of a file. */
static int take_setting(void *arg, unsigned line, const char *name, const char *value, struct error *err)
{
    struct reading *reading = arg;
    struct options *options = reading->options;
    size_t i = 0;
    bool is_model = strcmp(name, "model") == 0;
    while (i < N_SETTINGS && (is_model || !settings[i].help || strcmp(settings[i].name, name) != 0))
        i++;
    size_t sampling = i < N_SETTINGS || is_model ? SAMPLING_N : sampling_option_find(name);
    if (sampling < SAMPLING_N) {
        int r = note_line(reading, N_SETTINGS + 1 + sampling, line, name, err);
        return r < 0 ? r : sampling_option_set(options->sampling, sampling, value, err);
    }
    if (i == N_SETTINGS && !is_model)
        return error_set(err, -EINVAL, "unknown setting \"%.80s\"", name);
    const struct override_option *override = override_option_find(name);
    bool may_repeat =
        !is_model && (settings[i].type == SETTING_ALIASES || (override && override->kind == OVERRIDE_KEY));
    int r = may_repeat ? 0 : note_line(reading, i, line, name, err);
    if (r < 0)
        return r;
    return is_model ? set_text(name, value, sizeof options->model, options->model, err)
                    : set(options, &settings[i], value, err);
}

struct walk {
    struct options *options;
    bool config_only;
    bool again;   /* the line was read before: nothing exits */
    bool aliases; /* the line has said one: those of the file do not count */
    int result;
    struct error *err;
};

static int take_value(struct walk *walk, const struct setting *setting, const char *value)
{
    if (setting->type == SETTING_ALIASES && !walk->aliases) {
        walk->aliases = true;
        walk->options->n_aliases = 0;
    }
    return set(walk->options, setting, value ? value : "1", walk->err);
}

static error_t take_option(int key, char *value, struct argp_state *state)
{
    struct walk *walk = state->input;
    if (key == ARGP_KEY_END && !walk->config_only && walk->result == 0 && walk->options->model[0] == 0 &&
        walk->options->config[0] && !walk->again)
        argp_error(state, "no MODEL given, and %s names none", walk->options->config);
    if (key == ARGP_KEY_ARG && state->arg_num > 0)
        argp_error(state, "only one MODEL is allowed; unexpected \"%s\"", value);
    bool known = key == ARGP_KEY_ARG || key == KEY_CONFIG ||
                 (key >= KEY_SETTING && key < KEY_SETTING + (int)N_SETTINGS) ||
                 sampling_option_of_key(key - KEY_SAMPLING) < SAMPLING_N;
    if (!known)
        return ARGP_ERR_UNKNOWN;
    if (walk->result != 0 || walk->config_only != (key == KEY_CONFIG))
        return 0;
    struct options *options = walk->options;
    if (key == ARGP_KEY_ARG)
        walk->result = set_text("model", value, sizeof options->model, options->model, walk->err);
    else if (key == KEY_CONFIG)
        walk->result = set_text("config", value, sizeof options->config, options->config, walk->err);
    else if (key >= KEY_SAMPLING)
        walk->result = sampling_option_set(options->sampling, sampling_option_of_key(key - KEY_SAMPLING),
                                           value, walk->err);
    else
        walk->result = take_value(walk, &settings[key - KEY_SETTING], value);
    return 0;
}

/* Unless they are given: of a client with so many sessions. */
static uint32_t subscriptions_for(uint32_t sessions)
{
    uint32_t n = ALLOWANCE_A_SESSION * sessions;
    return n > ALLOWANCE_SUBSCRIPTIONS ? n : ALLOWANCE_SUBSCRIPTIONS;
}

/* The options as argp takes them, with the headings of their groups. */
static void fill_table(struct sampling_option_texts *texts, struct argp_option *ret_table)
{
    struct argp_option *row = ret_table;
    for (int group = 0; group < N_GROUPS; group++)
        if (headings[group])
            *row++ = (struct argp_option){.doc = headings[group], .group = group};
    for (size_t i = 0; i < N_SETTINGS; i++)
        *row++ = (struct argp_option){settings[i].name,     KEY_SETTING + (int)i,
                                      settings[i].argument, settings[i].help ? 0 : OPTION_HIDDEN,
                                      settings[i].help,     settings[i].group};
    sampling_options_fill(KEY_SAMPLING, GROUP_SAMPLING, texts, row);
    row += SAMPLING_OPTIONS;
    *row++ = (struct argp_option){
        "config", KEY_CONFIG, "FILE", 0, "Read settings from FILE: lines of NAME = VALUE", GROUP_POOL};
}

/* No model was named: the demo model is served, by HTTP too where that was built. */
static int serve_demo(struct options *options, struct error *err)
{
    char gateway[PATH_MAX];
    int r = default_model(options->model, err);
    if (r < 0)
        return error_prefix(err, r, "no MODEL given");
    options->model_is_default = true;
    if (options->http[0] || program_sibling("quern-gateway", gateway, NULL) < 0)
        return 0;
    return set_text("http", OPTIONS_HTTP_AUTO, sizeof options->http, options->http, err);
}

static int parse(int argc, char **argv, bool again, struct options *ret_options, struct error *err)
{
    struct argp_option table[N_SETTINGS + SAMPLING_OPTIONS + N_GROUPS + 2] = {{0}};
    struct sampling_option_texts texts;
    fill_table(&texts, table);
    const struct argp argp = {
        table,
        take_option,
        "[MODEL]",
        "Serves MODEL, a GGUF file or a folder with SafeTensors, to the clients of the run directory with a "
        "pool of worker processes. Without MODEL and --config, serves the demo model, also over HTTP.\v"
        "Ctrl-C or SIGTERM finishes running requests and rejects new ones; after --drain-seconds, or at a "
        "second signal, unfinished requests end.",
        NULL,
        NULL,
        NULL};
    struct options options = {.device = "auto",
                              .client_sessions = ALLOWANCE_SESSIONS,
                              .retention = LEDGER_RETENTION_NS / CLOCK_NS_PER_S,
                              .drain_seconds = DRAIN_S};
    _Static_assert(ALLOWANCE_A_SESSION * SESSION_MAX <= ALLOWANCE_MAX_SUBSCRIPTIONS,
                   "what is not given could be");
    for (size_t i = 0; i < SAMPLING_N; i++)
        options.sampling[i] = SAMPLING_LEFT_REAL;
    struct walk walk = {.options = &options, .config_only = true, .again = again, .err = err};
    arguments_parse(&argp, argc, argv, &walk);
    if (walk.result == 0 && options.config[0])
        walk.result =
            config_file_read(options.config, take_setting, &(struct reading){.options = &options}, err);
    walk.config_only = false;
    if (walk.result == 0)
        arguments_parse(&argp, argc, argv, &walk);
    if (walk.result == 0 && options.model[0] == 0 && options.config[0])
        walk.result = error_set(err, -EINVAL, "%s names no model", options.config);
    if (walk.result == 0 && options.model[0] == 0)
        walk.result = serve_demo(&options, err);
    if (walk.result == 0)
        walk.result = rundir_path(options.rundir[0] ? options.rundir : NULL, options.rundir, err);
    if (walk.result == 0)
        walk.result = options_check(&options, err);
    if (options.client_subscriptions == 0)
        options.client_subscriptions = subscriptions_for(options.client_sessions);
    if (walk.result == 0)
        *ret_options = options;
    return walk.result;
}

int options_parse(int argc, char **argv, struct options *ret_options, struct error *err)
{
    return parse(argc, argv, false, ret_options, err);
}

/* What is bound, opened or taken once, by the supervisor or for as long as clients know the pool. */
static bool is_fixed(const struct setting *setting)
{
    static const char *const names[] = {"device",     "prefix-store", "rundir",    "no-sandbox",
                                        "tcp",        "public-host",  "curve-key", "client-keys",
                                        "any-client", "member",       "http",      "http-open"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(setting->name, names[i]) == 0)
            return true;
    return false;
}

static bool differs(const struct options *a, const struct options *b, const struct setting *setting)
{
    const char *x = (const char *)a + setting->offset, *y = (const char *)b + setting->offset;
    return setting->type == SETTING_TEXT ? strcmp(x, y) != 0 : memcmp(x, y, sizeof(uint32_t)) != 0;
}

int options_parse_again(int argc, char **argv, const struct options *running, struct options *ret_options,
                        struct error *err)
{
    struct options options;
    int r = parse(argc, argv, true, &options, err);
    if (r < 0)
        return r;
    if (strcmp(options.model, running->model) != 0)
        return error_set(err, -EINVAL, "model: it cannot change while the pool runs; start another pool");
    if (strcmp(options.overrides, running->overrides) != 0)
        return error_set(err, -EINVAL,
                         "override-kv, rope-* and yarn-*: they cannot change while the pool runs");
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (is_fixed(&settings[i]) && differs(&options, running, &settings[i]))
            return error_set(err, -EINVAL, "%s: it cannot change while the pool runs", settings[i].name);
    if (options.workers == 0)
        options.workers = running->workers;
    options.owner = running->owner;
    options.supervision_fd = running->supervision_fd;
    *ret_options = options;
    return 0;
}

/* Whether a number has to be said: 0 stands for "not given" where it is not a value itself. */
static bool is_given(const struct options *options, const struct setting *setting)
{
    const void *field = (const char *)options + setting->offset;
    if (field == &options->owner || field == &options->supervision_fd || field == &options->began)
        return false;
    if (field == &options->frame_us)
        return options->has_frame_us;
    if (field == &options->http_sse_ping)
        return options->has_http_sse_ping;
    if (field == &options->http_thinking_budget)
        return options->has_http_thinking_budget;
    if (field == &options->cached_blocks)
        return options->has_cached_blocks;
    return field == &options->drain_seconds || *(const uint32_t *)field > 0;
}

static void write_overrides(const char *text, struct command_line *line)
{
    struct bytes rest = bytes_of_string(text);
    const struct override_option *option;
    char value[OVERRIDES_TEXT], name[40];
    while (overrides_next(&rest, &option, value)) {
        snprintf(name, sizeof name, "--%s", option->name);
        command_line_option(line, name, value);
    }
}

void options_write(const struct options *options, struct command_line *line)
{
    for (size_t i = 0; i < N_SETTINGS; i++) {
        const struct setting *setting = &settings[i];
        const void *field = (const char *)options + setting->offset;
        char name[40];
        snprintf(name, sizeof name, "--%s", setting->name);
        for (uint32_t j = 0; setting->type == SETTING_ALIASES && j < options->n_aliases; j++)
            command_line_option(line, name, options->aliases[j]);
        if (setting->type == SETTING_ALIASES || setting->type == SETTING_OVERRIDE)
            continue;
        if (setting->type == SETTING_TEXT)
            command_line_option(line, name, *(const char *)field && field != options->said_by ? field : NULL);
        else if (is_given(options, setting) && setting->argument)
            command_line_number(line, name, *(const uint32_t *)field);
        else if (is_given(options, setting))
            command_line_add(line, name);
    }
    write_overrides(options->overrides, line);
    sampling_options_write(options->sampling, line);
    command_line_add(line, "--"); /* a model may be called -x */
    command_line_add(line, options->model);
}
