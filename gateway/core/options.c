/* SPDX-License-Identifier: MIT */
/* quern-gateway's options, by argp. */

#include "gateway/core/options.h"

#include <argp.h>
#include <stddef.h>

#include "common/program/arguments.h"
#include "gateway/fleet/dns.h"
#include "gateway/http/origin.h"

enum {
    KEY_LISTEN = 256,
    KEY_CONNECT,
    KEY_FLEET,
    KEY_FLEET_SECRET,
    KEY_SERVER_KEY,
    KEY_CLIENT_KEY,
    KEY_KEYS,
    KEY_CORS,
    KEY_HOSTS,
    KEY_OPEN,
    KEY_SHARE_PREFIXES,
    KEY_REQUEST_LOG,
    KEY_OTLP,
    KEY_OTLP_HEADERS,
    KEY_TLS_CERT,
    KEY_TLS_KEY,
    KEY_CONNECTIONS,
    KEY_ADDRESS_CONNECTIONS,
    KEY_REQUEST_SECONDS,
    KEY_BODY_KB,
    KEY_BODIES_MB,
    KEY_STREAM_KB,
    KEY_STREAMS_MB,
    KEY_SSE_PING,
    KEY_MAX_TOKENS,
    KEY_THINKING_BUDGET,
    KEY_PARENT,
    KEY_LISTEN_FD,
    KEY_REPORT_FD,
    KEY_CHECK,
    KEY_DRAIN_SECONDS
};

static const struct argp_option known[] = {
    {"listen", KEY_LISTEN, "HOST:PORT", 0, "Address for HTTP (default 127.0.0.1:8080); port 0: any free port",
     0},
    {"connect", KEY_CONNECT, "EP", 0,
     "The pool: ipc://PATH, tcp://HOST:PORT or a run directory (default: "
     "$XDG_RUNTIME_DIR/quern or /tmp/quern-UID)",
     0},
    {"fleet", KEY_FLEET, "DIR", 0,
     "The pools of a fleet, instead of one pool: DIR has a file for each (quern serve --member); "
     "dns:NAME:PORT: a pool at each address of NAME, with --server-key",
     0},
    {"fleet-secret", KEY_FLEET_SECRET, "FILE", 0,
     "The secret of the fleet: its pools then report which prompts they have cached, whoever sent them", 0},
    {"server-key", KEY_SERVER_KEY, "KEY", 0, "The pool's public key, or its file (CURVE)", 0},
    {"client-key", KEY_CLIENT_KEY, "FILE", 0, "The gateway's own certificate for the pool (its secret file)",
     0},
    {"keys", KEY_KEYS, "FILE", 0,
     "Require API keys: lines of NAME KEY [requests=N] [tokens=N] [rpm=N] [tpm=N] [rpd=N] [tpd=N] "
     "[priority=N] [group=NAME]",
     0},
    {"share-prefixes", KEY_SHARE_PREFIXES, NULL, 0,
     "Share the prefix cache between all keys (default: each has its own part)", 0},
    {"cors", KEY_CORS, "ORIGIN", 0, "Allow web pages of ORIGIN: https://HOST, or * for all", 0},
    {"hosts", KEY_HOSTS, "NAME,...", 0,
     "Without keys: further host names that browsers may use, or * for any", 0},
    {"open", KEY_OPEN, NULL, 0, "Serve other machines without keys", 0},
    {"request-log", KEY_REQUEST_LOG, "FILE", 0,
     "Write a line of JSON for each request to FILE; SIGHUP reopens it", 0},
    {"otlp", KEY_OTLP, "URL", 0,
     "Send spans of each request to this OpenTelemetry collector (OTLP over HTTP), e.g. http://HOST:4318", 0},
    {"otlp-headers", KEY_OTLP_HEADERS, "FILE", 0,
     "Send the headers in FILE with the spans, lines of \"Name: value\"; FILE must not be readable by others",
     0},
    {"tls-cert", KEY_TLS_CERT, "FILE", 0, "Serve HTTPS with this certificate and its chain (PEM)", 0},
    {"tls-key", KEY_TLS_KEY, "FILE", 0,
     "The private key of that certificate (PEM); must not be readable by others", 0},
    {"connections", KEY_CONNECTIONS, "N", 0, "Maximum connections at once (default 2048)", 0},
    {"address-connections", KEY_ADDRESS_CONNECTIONS, "N", 0,
     "Maximum connections of one address except loopback (default: half of --connections; 0: no limit)", 0},
    {"request-seconds", KEY_REQUEST_SECONDS, "N", 0,
     "Close a connection without a complete request after this many seconds (default 60)", 0},
    {"body-kb", KEY_BODY_KB, "N", 0,
     "Largest request body (default: twice the longest prompt that the pool takes, 8192 at least)", 0},
    {"bodies-mb", KEY_BODIES_MB, "N", 0,
     "Memory for the bodies of all requests (default 96, or three of the largest)", 0},
    {"stream-kb", KEY_STREAM_KB, "N", 0,
     "Cut off a client with this much of its stream unread (default 1024)", 0},
    {"streams-mb", KEY_STREAMS_MB, "N", 0, "Memory for all unread answers (default 96)", 0},
    {"sse-ping", KEY_SSE_PING, "N", 0,
     "Send a ping on an event stream after N seconds of silence (default 15; 0: never)", 0},
    {"max-tokens", KEY_MAX_TOKENS, "N", 0,
     "Max tokens of an answer if the request sets none (default: to the end of the context)", 0},
    {"thinking-budget", KEY_THINKING_BUDGET, "N", 0,
     "End a thought after N tokens if the request sets no budget; 0: no thought (default: no budget)", 0},
    {"parent", KEY_PARENT, "PID", 0, "End when the parent process PID ends; the parent forwards signals", 0},
    {"listen-fd", KEY_LISTEN_FD, "N", 0,
     "Serve on the listening socket inherited as descriptor N, instead of --listen", 0},
    {"report-fd", KEY_REPORT_FD, "N", 0, "Report on descriptor N when serving, or the reason why not", 0},
    {"check", KEY_CHECK, NULL, 0, "Check the options and the files that they name, and exit", 0},
    {"drain-seconds", KEY_DRAIN_SECONDS, "N", 0,
     "On shutdown, end unfinished requests after this many seconds (default 60)", 0},
    {0}};

static const struct argument arguments[] = {
    {KEY_LISTEN, ARGUMENT_TEXT, offsetof(struct options, listen), 0, 0},
    {KEY_CONNECT, ARGUMENT_TEXT, offsetof(struct options, connect), 0, 0},
    {KEY_FLEET, ARGUMENT_TEXT, offsetof(struct options, fleet), 0, 0},
    {KEY_FLEET_SECRET, ARGUMENT_TEXT, offsetof(struct options, fleet_secret), 0, 0},
    {KEY_SERVER_KEY, ARGUMENT_TEXT, offsetof(struct options, server_key), 0, 0},
    {KEY_CLIENT_KEY, ARGUMENT_TEXT, offsetof(struct options, client_key), 0, 0},
    {KEY_KEYS, ARGUMENT_TEXT, offsetof(struct options, keys), 0, 0},
    {KEY_CORS, ARGUMENT_TEXT, offsetof(struct options, cors), 0, 0},
    {KEY_HOSTS, ARGUMENT_TEXT, offsetof(struct options, hosts), 0, 0},
    {KEY_OPEN, ARGUMENT_FLAG, offsetof(struct options, open), 0, 0},
    {KEY_SHARE_PREFIXES, ARGUMENT_FLAG, offsetof(struct options, share_prefixes), 0, 0},
    {KEY_REQUEST_LOG, ARGUMENT_TEXT, offsetof(struct options, request_log), 0, 0},
    {KEY_OTLP, ARGUMENT_TEXT, offsetof(struct options, otlp), 0, 0},
    {KEY_OTLP_HEADERS, ARGUMENT_TEXT, offsetof(struct options, otlp_headers), 0, 0},
    {KEY_TLS_CERT, ARGUMENT_TEXT, offsetof(struct options, tls_cert), 0, 0},
    {KEY_TLS_KEY, ARGUMENT_TEXT, offsetof(struct options, tls_key), 0, 0},
    {KEY_CONNECTIONS, ARGUMENT_NUMBER, offsetof(struct options, connections), 1, 65536},
    {KEY_ADDRESS_CONNECTIONS, ARGUMENT_NUMBER, offsetof(struct options, address_connections), 0, 65536},
    {KEY_REQUEST_SECONDS, ARGUMENT_NUMBER, offsetof(struct options, request_seconds), 1, 86400},
    {KEY_BODY_KB, ARGUMENT_NUMBER, offsetof(struct options, body_kb), 1, 1 << 20},
    {KEY_BODIES_MB, ARGUMENT_NUMBER, offsetof(struct options, bodies_mb), 1, 1 << 20},
    {KEY_STREAM_KB, ARGUMENT_NUMBER, offsetof(struct options, stream_kb), 4, 1 << 20},
    {KEY_STREAMS_MB, ARGUMENT_NUMBER, offsetof(struct options, streams_mb), 1, 1 << 20},
    {KEY_SSE_PING, ARGUMENT_NUMBER, offsetof(struct options, sse_ping), 0, 86400},
    {KEY_MAX_TOKENS, ARGUMENT_NUMBER, offsetof(struct options, max_tokens), 1, INT32_MAX},
    {KEY_THINKING_BUDGET, ARGUMENT_NUMBER, offsetof(struct options, thinking_budget), 0, INT32_MAX},
    {KEY_PARENT, ARGUMENT_NUMBER, offsetof(struct options, parent), 1, INT32_MAX},
    {KEY_LISTEN_FD, ARGUMENT_NUMBER, offsetof(struct options, listen_fd), 3, INT32_MAX},
    {KEY_REPORT_FD, ARGUMENT_NUMBER, offsetof(struct options, report_fd), 3, INT32_MAX},
    {KEY_CHECK, ARGUMENT_FLAG, offsetof(struct options, check), 0, 0},
    {KEY_DRAIN_SECONDS, ARGUMENT_NUMBER, offsetof(struct options, drain_seconds), 0, 86400},
    {0}};

static void check_fleet(const struct options *options, struct argp_state *state)
{
    if (!options->fleet)
        return;
    const bool is_name = dns_is_place(options->fleet);
    if (is_name && options->connect)
        argp_error(state, "--fleet excludes --connect");
    if (is_name && !options->server_key)
        argp_error(state, "--fleet dns:NAME:PORT requires --server-key, the key that all its pools share");
    if (!is_name && (options->connect || options->server_key))
        argp_error(state, "--fleet excludes --connect and --server-key, which come from the members' files");
}

static error_t take_option(int key, char *value, struct argp_state *state)
{
    const struct options *options = state->input;
    switch (key) {
    case ARGP_KEY_END:
        if (!options->tls_cert != !options->tls_key)
            argp_error(state, "--tls-cert and --tls-key must be given together");
        check_fleet(options, state);
        if (options->otlp_headers && !options->otlp)
            argp_error(state, "--otlp-headers requires --otlp");
        if (options->fleet_secret && !options->fleet)
            argp_error(state, "--fleet-secret requires --fleet");
        if (options->cors && !origin_cors_is_valid(options->cors))
            argp_error(state, "--cors: \"%s\" is not the origin of a page (https://HOST[:PORT]) or *",
                       options->cors);
        if (options->hosts && !origin_hosts_are_valid(options->hosts))
            argp_error(state, "--hosts: \"%s\" is not a list of names (NAME[:PORT],...) or *",
                       options->hosts);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument \"%s\"", value);
        return 0;
    default:
        return arguments_take(arguments, known, key, value, state, state->input);
    }
}

void options_parse(int argc, char **argv, struct options *ret_options)
{
    static const struct argp argp = {
        known,
        take_option,
        NULL,
        "Serves a pool over HTTP: the interfaces of OpenAI, Anthropic and Ollama, and a page.\vSIGTERM or "
        "Ctrl-C rejects new requests and finishes running ones; after --drain-seconds, or at a second "
        "signal, unfinished requests end. After SIGUSR1 the gateway leaves new connections to another "
        "gateway on the same socket, and ends with its last connection.",
        NULL,
        NULL,
        NULL};
    struct options options = {.listen = "127.0.0.1:8080",
                              .connections = 2048,
                              .address_connections = OPTIONS_HALF,
                              .request_seconds = 60,
                              .stream_kb = 1024,
                              .streams_mb = 96,
                              .sse_ping = 15,
                              .thinking_budget = OPTIONS_NO_BUDGET,
                              .drain_seconds = 60};
    arguments_parse(&argp, argc, argv, &options);
    *ret_options = options;
}
