/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_REQUEST_LOG_H
#define GATEWAY_HTTP_REQUEST_LOG_H

/* A file with a JSON line for each request: its client, endpoint and time, how it ended, and how long each
 * phase took. It contains no text of requests and answers except what an error quotes: the name of a
 * parameter or model, or a short piece of an invalid value.
 *
 * A line is a single write to the end of the file. Lines that cannot be written are counted, and the
 * gateway's log says when that starts and when it stops; requests continue. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "gateway/json/json_out.h"

struct request_log {
    const char *path; /* NULL: there is none */
    int fd;
    uint64_t written, lost; /* lines */
    bool failing;           /* the last one could not be written */
    struct json_out line;   /* reused */
};

/* The work done for one request; zeroed: none. */
struct request_record {
    char model[132];    /* "": none */
    const char *finish; /* how it ended: "stop", "length", "tool_calls", "error"; NULL: it did not, or there
                           was no generation */
    bool stream;
    uint32_t choices, prompt_tokens, cached_tokens, output_tokens;
    double queue_ms, prefill_ms, prepare_ms, wait_ms, lookup_ms, decode_ms;
    double first_token_ms; /* from the request's arrival here; 0: no token */
    /* Why it failed; message "": it did not. */
    const char *code; /* a constant; NULL: none */
    char param[64], message[200];
};

/* Notes why a request failed. `code` is a constant or NULL; the other texts are cut to fit. */
void request_record_error(struct request_record *record, const char *code, const char *param,
                          const char *message);

/* The request itself. */
struct request_line {
    const char *method, *path, *peer;
    const char *key; /* the name of its key; NULL: none */
    const char *request_id;
    const char *traceparent; /* "": none */
    unsigned status;         /* 0: the client left before it was known */
    bool gone;               /* the client left before the end */
    double seconds;
    const struct request_record *record;
};

/* Opens the file, and creates it, readable by owner and group, if it does not exist. 0 or -errno with a
 * reason. */
int request_log_open(struct request_log *log, const char *path, struct error *err);

/* Whether the file could be opened; creates nothing. 0 or -errno with a reason. */
int request_log_check(const char *path, struct error *err);

/* Reopens the file after log rotation has moved it. If that fails, writing continues to the old file, and
 * this is logged. */
void request_log_reopen(struct request_log *log);

void request_log_write(struct request_log *log, const struct request_line *line);

void request_log_close(struct request_log *log);

#endif
