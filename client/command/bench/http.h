/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_BENCH_HTTP_H
#define CLIENT_COMMAND_BENCH_HTTP_H

/* A client of server-sent events, cheap enough to measure servers: it counts bytes and inspects only the
 * end. */

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct bench_http {
    int fd;         /* −1: closed */
    uint64_t bytes; /* received of the current answer, HTTP framing included */
    /* The contents of the answer's chunks. */
    uint64_t events; /* events with JSON, including those of the end and of the usage */
    char tail[1024]; /* the last bytes, zero-terminated */
    size_t tail_len;
    bool whole;    /* the last chunk has arrived */
    int place;     /* http.c's: in the head or in a chunk */
    uint64_t left; /* bytes left of a chunk, or its size so far while that line is being read */
    size_t line;   /* bytes of that line, or of the head's end */
};

/* The status of a GET; 0: no answer. */
int bench_http_status(const struct sockaddr_in *address, const char *path);

/* Opens a connection; -errno with a reason. */
int bench_http_open(struct bench_http *http, const struct sockaddr_in *address, struct error *err);
void bench_http_close(struct bench_http *http);

/* Requests a streamed completion of this many tokens, with usage. Prompts differ by `number`. */
int bench_http_ask(struct bench_http *http, unsigned number, unsigned tokens, struct error *err);

/* Reads available data, waiting for some. 1: there may be more; 0: the answer is complete; -errno with a
 * reason: the connection ended, or the answer is not a stream. */
int bench_http_read(struct bench_http *http, struct error *err);

/* Whether the complete answer had this many tokens. */
bool bench_http_had(const struct bench_http *http, unsigned tokens);

#endif
