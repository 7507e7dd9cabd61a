/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_OPTIONS_H
#define GATEWAY_CORE_OPTIONS_H

/* What the gateway was asked to do: its command line. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

#define OPTIONS_HALF UINT32_MAX

struct options {
    const char *listen;             /* HOST:PORT */
    const char *connect;            /* endpoint or run directory of the pool; NULL: the default one */
    const char *server_key;         /* CURVE; NULL: none */
    const char *client_key;         /* its own certificate at the pool; NULL: none */
    const char *keys;               /* file of keys; NULL: none */
    const char *hosts;              /* further names of it, as pages have them, or "*"; NULL: none */
    const char *cors;               /* origin that pages may come from, or "*"; NULL: none */
    const char *request_log;        /* file; NULL: none */
    const char *tls_cert, *tls_key; /* files of PEM; NULL: HTTP without TLS */
    uint32_t parent;                /* process that started it; it ends with that; 0: none */
    uint32_t listen_fd;             /* socket that listens, inherited; 0: none, one is made */
    uint32_t report_fd;             /* where the parent is told whether it serves; 0: nowhere */
    bool share_prefixes;            /* keys find one another's prompts in the prefix cache */
    bool open;                      /* anybody who reaches it may use it */
    uint32_t connections;           /* most at once */
    uint32_t address_connections;   /* of one address; 0: no limit; OPTIONS_HALF: half of those */
    uint32_t
        request_seconds; /* from the start of a connection, or its last answer, to the end of a request */
    uint32_t body_kb,
        bodies_mb; /* most of one request's body, of all that are being received; 0: by the pool */
    uint32_t stream_kb, streams_mb; /* most that waits to be read, of one stream, of all */
    uint32_t sse_ping;              /* seconds of silence of a stream until it is pinged; 0: it never is */
    uint32_t max_tokens;            /* where a request does not say; 0: as the context has */
    uint32_t drain_seconds;         /* from the first signal until what has not ended is ended */
};

/* Sets defaults, then parses the command line. Exits through argp for --help and --usage, and with status 2
 * for a wrong command line. */
void options_parse(int argc, char **argv, struct options *ret_options);

#endif
