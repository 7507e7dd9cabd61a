/* SPDX-License-Identifier: MIT */
/* quern-gateway's options, by argp. */

#include "gateway/options.h"

#include <argp.h>
#include <stddef.h>

#include "common/number.h"

enum {
    KEY_NUMBER = 1000,
    KEY_LISTEN = 256,
    KEY_CONNECT,
    KEY_SERVER_KEY,
    KEY_CLIENT_KEY,
    KEY_KEYS,
    KEY_CORS,
    KEY_OPEN,
    KEY_REQUEST_LOG,
    KEY_TLS_CERT,
    KEY_TLS_KEY
};

static const struct number_option {
    const char *name, *argument, *help;
    size_t offset;
    uint32_t least, most;
} numbers[] = {
    {"connections", "N", "Most connections at once (default 2048)", offsetof(struct options, connections), 1,
     65536},
    {"request-seconds", "N",
     "Close a connection on which no whole request has come for so many seconds (default 60)",
     offsetof(struct options, request_seconds), 1, 86400},
    {"body-kb", "N", "Most of the body of a request (default 8192)", offsetof(struct options, body_kb), 1,
     1 << 20},
    {"bodies-mb", "N", "Most of all bodies that are being received (default 256)",
     offsetof(struct options, bodies_mb), 1, 1 << 20},
    {"stream-kb", "N", "Cut off a client that leaves so much of its stream unread (default 1024)",
     offsetof(struct options, stream_kb), 4, 1 << 20},
    {"streams-mb", "N", "Most of all streams and embeddings that waits to be read (default 256)",
     offsetof(struct options, streams_mb), 1, 1 << 20},
    {"max-tokens", "N", "Tokens of an answer where a request does not say (default 1024)",
     offsetof(struct options, max_tokens), 1, INT32_MAX},
    {"parent", "PID", "End when this process, our parent, does; it passes signals on",
     offsetof(struct options, parent), 1, INT32_MAX},
    {"listen-fd", "N",
     "Serve on the socket that listens and is inherited as descriptor N, in place of --listen",
     offsetof(struct options, listen_fd), 3, INT32_MAX},
    {"report-fd", "N", "Tell the parent there when it serves, or why it does not",
     offsetof(struct options, report_fd), 3, INT32_MAX},
    {"drain-seconds", "N", "When told to end, end what is not finished after so many seconds (default 60)",
     offsetof(struct options, drain_seconds), 0, 86400},
};
#define N_NUMBERS (sizeof numbers / sizeof *numbers)
#define N_TEXTS   10 /* options that are no numbers */

static error_t take_option(int key, char *value, struct argp_state *state)
{
    struct options *options = state->input;
    struct error err;
    switch (key) {
    case KEY_LISTEN:
        options->listen = value;
        return 0;
    case KEY_CONNECT:
        options->connect = value;
        return 0;
    case KEY_SERVER_KEY:
        options->server_key = value;
        return 0;
    case KEY_CLIENT_KEY:
        options->client_key = value;
        return 0;
    case KEY_KEYS:
        options->keys = value;
        return 0;
    case KEY_CORS:
        options->cors = value;
        return 0;
    case KEY_OPEN:
        options->open = true;
        return 0;
    case KEY_REQUEST_LOG:
        options->request_log = value;
        return 0;
    case KEY_TLS_CERT:
        options->tls_cert = value;
        return 0;
    case KEY_TLS_KEY:
        options->tls_key = value;
        return 0;
    case ARGP_KEY_END:
        if (!options->tls_cert != !options->tls_key)
            argp_error(state, "--tls-cert and --tls-key go together");
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "\"%s\" is one too many", value);
        return 0;
    default:
        if (key < KEY_NUMBER || key >= KEY_NUMBER + (int)N_NUMBERS)
            return ARGP_ERR_UNKNOWN;
    }
    const struct number_option *number = &numbers[key - KEY_NUMBER];
    uint32_t *to = (uint32_t *)(void *)((char *)options + number->offset);
    if (number_read_u32(value, number->least, number->most, to, &err) < 0)
        argp_error(state, "--%s: %s", number->name, err.text);
    return 0;
}

void options_parse(int argc, char **argv, struct options *ret_options)
{
    struct argp_option table[N_NUMBERS + N_TEXTS + 1] = {
        {"listen", KEY_LISTEN, "HOST:PORT", 0, "Where to serve HTTP (default 127.0.0.1:8080); port 0: any",
         0},
        {"connect", KEY_CONNECT, "EP", 0,
         "The pool: ipc://PATH, tcp://HOST:PORT or a run directory (default: "
         "$XDG_RUNTIME_DIR/quern or /tmp/quern-UID)",
         0},
        {"server-key", KEY_SERVER_KEY, "KEY", 0, "The pool's public key, or the file that holds it (CURVE)",
         0},
        {"client-key", KEY_CLIENT_KEY, "FILE", 0,
         "The gateway's own certificate at the pool (its secret file)", 0},
        {"keys", KEY_KEYS, "FILE", 0, "Serve only who has a key: lines of NAME KEY [requests=N] [tokens=N]",
         0},
        {"cors", KEY_CORS, "ORIGIN", 0, "Let pages of ORIGIN use it: https://HOST, or * for all", 0},
        {"open", KEY_OPEN, NULL, 0, "Serve other machines too, whoever asks", 0},
        {"request-log", KEY_REQUEST_LOG, "FILE", 0,
         "Write a line of JSON for each request there; SIGHUP opens it anew", 0},
        {"tls-cert", KEY_TLS_CERT, "FILE", 0, "Serve HTTPS with this certificate and its chain (PEM)", 0},
        {"tls-key", KEY_TLS_KEY, "FILE", 0, "Its secret key (PEM), which others may not read", 0},
    };
    for (size_t i = 0; i < N_NUMBERS; i++)
        table[N_TEXTS + i] = (struct argp_option){
            numbers[i].name, KEY_NUMBER + (int)i, numbers[i].argument, 0, numbers[i].help, 0};
    const struct argp argp = {
        table,
        take_option,
        NULL,
        "Serves a pool by HTTP: the interfaces of OpenAI, Anthropic and Ollama, and a page.\v"
        "SIGTERM or Ctrl-C refuses new requests and finishes those under way; after --drain-seconds, or at a "
        "second one, what is not finished ends. SIGUSR1 leaves new connections to another gateway on the "
        "same "
        "socket, and ends it with the last of its own.",
        NULL,
        NULL,
        NULL};
    struct options options = {.listen = "127.0.0.1:8080",
                              .connections = 2048,
                              .request_seconds = 60,
                              .body_kb = 8192,
                              .bodies_mb = 256,
                              .stream_kb = 1024,
                              .streams_mb = 256,
                              .max_tokens = 1024,
                              .drain_seconds = 60};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    *ret_options = options;
}
