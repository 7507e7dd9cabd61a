/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SETTINGS_OPTIONS_H
#define BROKER_SETTINGS_OPTIONS_H

/* The pool's options: the command line, and the configuration file. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/program/overrides.h"
#include "common/sampling_defaults.h"
#include "common/program/command_line.h"
#include "common/error.h"
#include "common/files/rundir.h"
#include "proto/message.h"

#define OPTIONS_TEXT_MAX        255
#define OPTIONS_SYSTEM_MAX      4095
#define OPTIONS_JOURNAL_MAX_MIB 4096
#define OPTIONS_HTTP_AUTO       "auto" /* 127.0.0.1:8080, or a free port if that is taken */

struct options {
    char model[PATH_MAX];
    bool model_is_default;                                     /* the options name no model */
    char aliases[PROTO_MAX_ALIASES][PROTO_MAX_NAME_BYTES + 1]; /* [n_aliases] other names of the model */
    uint32_t n_aliases;
    uint32_t workers;                    /* 0 = not given: one for each device */
    char device[OPTIONS_TEXT_MAX + 1];   /* passed to the workers */
    char kv_type[OPTIONS_TEXT_MAX + 1];  /* the same; "" = not given */
    char cublas[OPTIONS_TEXT_MAX + 1];   /* the same */
    char quantize[OPTIONS_TEXT_MAX + 1]; /* the same */
    char chat_template[PATH_MAX];        /* the same */
    char system[OPTIONS_SYSTEM_MAX + 1]; /* the same */
    char overrides[OVERRIDES_TEXT];      /* the same: overrides of the model's metadata */
    double sampling[SAMPLING_N];         /* defaults of sampling parameters; NaN = not given */
    char tcp[OPTIONS_TEXT_MAX + 1];      /* HOST:PORT of the frontend; "" = ipc only; the stream: PORT + 1 */
    char public_host[OPTIONS_TEXT_MAX + 1]; /* host by which clients reach tcp; "" = the bound one */
    char http[OPTIONS_TEXT_MAX +
              1];             /* HOST:PORT where the gateway serves HTTP, or OPTIONS_HTTP_AUTO; "" = none */
    char http_keys[PATH_MAX]; /* the gateway's file of keys; "" = none */
    char http_hosts[OPTIONS_TEXT_MAX + 1]; /* its other names, as in Host headers of browsers; "" = none */
    char http_tls_cert[PATH_MAX];          /* certificate and key for HTTPS; "" = HTTP */
    char http_tls_key[PATH_MAX];
    char http_log[PATH_MAX];                /* its request log; "" = none */
    char http_otlp[OPTIONS_TEXT_MAX + 1];   /* its collector of spans; "" = none */
    char http_otlp_headers[PATH_MAX];       /* file of headers for that; "" = none */
    char http_cors[OPTIONS_TEXT_MAX + 1];   /* origin of web pages that may use it; "" = none */
    uint32_t http_open;                     /* 1: it serves other machines without keys */
    uint32_t http_max_tokens, http_body_kb; /* passed to it; 0 = not given */
    bool has_http_sse_ping;                 /* passed to it: */
    uint32_t http_sse_ping;                 /* seconds; 0 = never */
    bool has_http_thinking_budget;          /* passed to it: */
    uint32_t http_thinking_budget;          /* tokens; 0 = no thinking */
    char curve_key[PATH_MAX];               /* certificate file of the server; "" = none */
    char client_keys[PATH_MAX];             /* folder of clients' public keys; "" = none */
    char fleet_secret[PATH_MAX];            /* file; "" = books of prefixes are not published */
    char member[PATH_MAX];                  /* DIR/NAME: its file in the folder of a fleet; "" = none */
    uint32_t any_client;                    /* 1: tcp accepts any client that knows the server's key */
    char rundir[RUNDIR_PATH_MAX + 1];
    char config[PATH_MAX];
    /* Passed to the workers; 0 = not given. */
    uint32_t context, slots, kv_blocks, snapshots, draft, threads;
    bool has_cached_blocks;
    uint32_t cached_blocks;
    bool has_frame_us;
    uint32_t frame_us;
    uint32_t invariant;                      /* 1: passed to the workers */
    uint32_t host_sampling;                  /* the same */
    uint32_t prefix_store;                   /* MiB of the workers' prefix store; 0 = none */
    uint32_t share_prefixes;                 /* 1: all keys and tenants share the prefix cache */
    uint32_t no_sandbox;                     /* 1: passed to the workers */
    uint32_t client_requests;                /* unfinished requests of a client; 0: no limit per client */
    uint32_t client_sessions, client_tokens; /* of a key: open sessions, tokens per minute; 0: no limit */
    uint32_t client_subscriptions;           /* of a key */
    uint32_t journal;                        /* MiB; 0 = not given: follows slots and contexts */
    uint32_t max_tokens;                     /* of an answer; 0 = to the end of the context */
    uint32_t retention;                      /* seconds that an answer is kept after its end */
    uint32_t drain_seconds;                  /* from the first signal until unfinished requests are ended */
    uint32_t owner;          /* process that created the run directory and removes it; 0 = none */
    uint32_t supervision_fd; /* set by the supervisor for its broker: the connection between them; else 0 */
    uint32_t began;          /* set by the supervisor: when the pool began, clock_ns in seconds; else 0 */
    char said_by[OPTIONS_TEXT_MAX +
                 1]; /* set by the supervisor: the name in the broker's log lines; else "" */
};

/* Sets defaults, then the settings of the file named by --config, then those of the command line, which take
 * precedence. Exits through argp for --help and --usage, with status 2 for a wrong command line. -errno with
 * the reason if the file is invalid or a value is out of range. */
int options_parse(int argc, char **argv, struct options *ret_options, struct error *err);

/* Reads the command line and its file again, for a pool that runs with the options `running`. Fails as
 * options_parse does, and also for a setting that cannot change while the pool runs; never exits. Values
 * determined at the start (number of workers, address) stay unless they are given. */
int options_parse_again(int argc, char **argv, const struct options *running, struct options *ret_options,
                        struct error *err);

/* Appends a command line that options_parse reads as these options, without those that concern a single
 * process: `owner`, `supervision_fd`, `began` and `said_by`. */
void options_write(const struct options *options, struct command_line *line);

#endif
