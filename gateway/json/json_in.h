/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_JSON_JSON_IN_H
#define GATEWAY_JSON_JSON_IN_H

/* Reads clients' JSON objects with a table that has a row for each key.
 *
 * Unknown keys and values of another type are rejected with an error that names the key; nothing is ignored.
 * A null value counts as omitted. Invalid JSON, duplicate keys, NUL characters and numbers beyond 63 bits and
 * a sign are rejected before any row is used; but a "seed" of 64 bits becomes the string of its digits. */

#include <jansson.h>

#include "gateway/json/refusal.h"

struct json_row;

/* Takes a value, which is not null. 0 or REFUSED. `path` names it for errors: "stream_options". */
typedef int json_row_take(void *into, const struct json_row *row, const char *path, json_t *value,
                          struct refusal *refusal);

struct json_row {
    const char *key;
    json_row_take *take;
    const char *name; /* for takers of several keys: the member's name, or the allowed values */
    size_t offset;    /* in *into, for takers of simple values */
};

/* Parses a body. The caller frees the object with json_decref. */
int json_in_parse(const void *data, size_t len, json_t **ret_object, struct refusal *refusal);

/* Reads an object with the rows; the last row has no key. `path`: the object's own path; "" at the top. */
int json_in_take(void *into, const struct json_row *rows, const char *path, json_t *object,
                 struct refusal *refusal);

/* ---- takers ---- */

/* A bool at the offset. */
json_row_take json_in_bool;

/* Accepts any value without effect: it only describes the request. */
json_row_take json_in_ignore;

/* A parameter that would change the answer and is not supported: accepts values that request nothing (false,
 * 0, "", [], {}, or the text of `name`), and rejects others with an error that names it. */
json_row_take json_in_unsupported;

/* An integer within bounds. 0 or REFUSED. */
int json_in_integer(const char *path, json_t *value, int64_t least, int64_t most, int64_t *ret_number,
                    struct refusal *refusal);

/* The kind of a value, in words: "a string". */
const char *json_in_kind(const json_t *value);

#endif
