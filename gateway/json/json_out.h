/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_JSON_JSON_OUT_H
#define GATEWAY_JSON_JSON_OUT_H

/* Writes JSON directly into bytes: answers are written for every token, and have a fixed shape.
 *
 *     json_out_text(&out, "{\"object\":\"model\",\"id\":");
 *     json_out_string(&out, id);
 *     json_out_text(&out, "}");
 *
 * If memory runs out, only `failed` at the end shows it. A zeroed struct is empty and ready for use. */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/bytes.h"

struct json_out {
    struct buffer buffer;
    bool failed;
};

/* Appends bytes unchanged, for the fixed parts. */
void json_out_bytes(struct json_out *out, const void *data, size_t len);
static inline void json_out_text(struct json_out *out, const char *text) /* inline: its length is known */
{
    json_out_bytes(out, text, strlen(text));
}

/* Appends a string, escaped and in quotes. Bytes that are not UTF-8 become U+FFFD. */
void json_out_string(struct json_out *out, struct bytes text);
static inline void json_out_name(struct json_out *out, const char *text)
{
    json_out_string(out, bytes_of_string(text));
}

void json_out_number(struct json_out *out, int64_t number);
void json_out_bool(struct json_out *out, bool value);

/* Appends a number with enough digits to be read back as the same float. Values that JSON cannot express
 * become −9999, the usual value for the logarithm of 0. */
void json_out_real(struct json_out *out, double real);

/* Appends a time in milliseconds, to the nanosecond: "12.0345". */
void json_out_ms(struct json_out *out, double ms);

/* Empties the output and keeps its memory. */
static inline void json_out_reset(struct json_out *out)
{
    out->buffer.len = 0;
    out->failed = false;
}

/* Appends bytes in base64 with padding (RFC 4648), without quotes. If data comes in several parts, all but
 * the last must be multiples of 3 bytes. */
void json_out_base64(struct json_out *out, struct bytes bytes);

void json_out_deinit(struct json_out *out);

#endif
