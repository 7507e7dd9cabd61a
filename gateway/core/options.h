/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_OPTIONS_H
#define GATEWAY_CORE_OPTIONS_H

/* The gateway's options: its command line. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

#define OPTIONS_HALF      UINT32_MAX
#define OPTIONS_NO_BUDGET UINT32_MAX

struct options {
    const char *listen;             /* HOST:PORT */
    const char *connect;            /* endpoint or run directory of the pool; NULL: the default one */
    const char *fleet;              /* folder, or DNS name, of a fleet's members, instead; NULL: one pool */
    const char *fleet_secret;       /* file of the fleet's secret; NULL: none */
    const char *server_key;         /* CURVE; NULL: none */
    const char *client_key;         /* its own certificate at the pool; NULL: none */
    const char *keys;               /* file of keys; NULL: none */
    const char *hosts;              /* the gateway's further names, as in Host headers, or "*"; NULL: none */
    const char *cors;               /* origin of pages that may use it, or "*"; NULL: none */
    const char *request_log;        /* file; NULL: none */
    const char *otlp;               /* URL of a collector of spans; NULL: none */
    const char *otlp_headers;       /* file of its headers; NULL: none */
    const char *tls_cert, *tls_key; /* PEM files; NULL: HTTP without TLS */
    uint32_t parent;                /* process that started the gateway; it ends with that process; 0: none */
    uint32_t listen_fd;             /* inherited listening socket; 0: none, create one */
    uint32_t report_fd;             /* for reports to the parent (proto/gateway_report.h); 0: none */
    bool check;                     /* only check these options, and the files that they name */
    bool share_prefixes;            /* all keys share the prefix cache */
    bool open;                      /* other machines may use it without keys */
    uint32_t connections;           /* most at once */
    uint32_t address_connections; /* most of one address; 0: no limit; OPTIONS_HALF: half of `connections` */
    uint32_t request_seconds;     /* from a connection's start or its last answer to the end of a request */
    uint32_t body_kb, bodies_mb;  /* limit of a request's body (0: follows the pool), of all together */
    uint32_t stream_kb, streams_mb; /* limit of unread bytes of one stream, of all streams together */
    uint32_t sse_ping;              /* seconds of silence before a stream gets a ping; 0: never */
    uint32_t max_tokens;            /* of answers without max_tokens; 0: to the end of the context */
    uint32_t thinking_budget; /* tokens of thinking, if a request sets no budget; or OPTIONS_NO_BUDGET */
    uint32_t drain_seconds;   /* from the first signal until unfinished answers are ended */
};

/* Sets defaults, then parses the command line. Exits through argp for --help and --usage, and with status 2
 * for a wrong command line. */
void options_parse(int argc, char **argv, struct options *ret_options);

#endif
