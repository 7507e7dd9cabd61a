/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_FRAMING_H
#define GATEWAY_HTTP_FRAMING_H

/* Checks that the head of a request states unambiguously where the request ends.
 *
 *     framing_begin(&framing, …);
 *     for each field in the order of the wire: framing_field(&framing, name, value, refusal);
 *     framing_end(&framing, refusal);
 *
 * Each returns 0, or REFUSED with 400 and the field in `param`; then the connection must be closed, since it
 * is unknown where the next request on it begins. */

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"
#include "gateway/json/refusal.h"

/* Fields that a request may have at most once. */
enum framing_single {
    FRAMING_HOST,
    FRAMING_LENGTH,
    FRAMING_ENCODING,
    FRAMING_ORIGIN,
    FRAMING_FETCH_SITE,
    FRAMING_AUTHORIZATION,
    FRAMING_API_KEY,
    FRAMING_SINGLES
};

struct framing {
    const char *at;  /* the next field in the bytes of the head; NULL: they are not checked */
    const char *end; /* of these bytes */
    bool old;        /* HTTP/1.0 */
    bool seen[FRAMING_SINGLES];
};

/* The request line as parsed by libmicrohttpd. */
struct framing_line {
    const char *method, *target, *version; /* the target as received, or decoded in place */
    size_t target_len;                     /* before decoding */
};

/* Why a target, as received, is rejected, in a few words for "the request target …"; NULL: it is a path. */
const char *framing_target_fault(const char *target);

/* Begins with the request line. `head_size`: bytes of the head from line->method on, which are checked as
 * libmicrohttpd 0.9 leaves them (see framing.c); 0: they are not checked. */
int framing_begin(struct framing *framing, const struct framing_line *line, size_t head_size,
                  struct refusal *refusal);
int framing_field(struct framing *framing, struct bytes name, struct bytes value, struct refusal *refusal);
int framing_end(const struct framing *framing, struct refusal *refusal);

#endif
