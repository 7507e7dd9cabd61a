/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_JSON_JSON_IN_H
#define GATEWAY_JSON_JSON_IN_H

/* What clients send: JSON objects whose keys are known, each read by its row of a table.
 *
 * A key that no row names is refused by its name, as is a value of another type: what is not understood is
 * never passed over. A key that is null counts as left out. Bytes that are no JSON, keys that come twice,
 * NUL characters and numbers beyond 63 bits and a sign are refused before any row is asked; but a "seed" of
 * 64 bits becomes the string of its digits. */

#include <jansson.h>

#include "gateway/json/refusal.h"

struct json_row;

/* Takes a value, which is not null: 0 or REFUSED. `path` names it for errors: "stream_options". */
typedef int json_row_take(void *into, const struct json_row *row, const char *path, json_t *value,
                          struct refusal *refusal);

struct json_row {
    const char *key;
    json_row_take *take;
    const char *name; /* for takers of several: of the member, or what is allowed */
    size_t offset;    /* in *into, for takers of simple values */
};

/* Parses a body. The caller gives the object back with json_decref. */
int json_in_parse(const void *data, size_t len, json_t **ret_object, struct refusal *refusal);

/* Reads an object by rows ended by one without a key. `path`: where it stands; "" at the top. */
int json_in_take(void *into, const struct json_row *rows, const char *path, json_t *object,
                 struct refusal *refusal);

/* ---- takers ---- */

/* A bool at the offset. */
json_row_take json_in_bool;

/* Accepted and without effect: what only describes the request. */
json_row_take json_in_ignore;

/* Something that would change the answer, and cannot be done: accepted where it asks for nothing (false, 0,
 * "", [], {}, or the text of `name`), else refused by name. */
json_row_take json_in_unsupported;

/* An integer within bounds. 0 or REFUSED. */
int json_in_integer(const char *path, json_t *value, int64_t least, int64_t most, int64_t *ret_number,
                    struct refusal *refusal);

/* What a value is, in words: "a string". */
const char *json_in_kind(const json_t *value);

#endif
