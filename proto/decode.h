/* SPDX-License-Identifier: MIT */
#ifndef PROTO_DECODE_H
#define PROTO_DECODE_H

/* Private to proto/: what decode.c and decode_value.c share. `depth` is the number of levels of containers
 * that may still be opened, including the value's own. Results: 0; MESSAGE_E_MALFORMED with a reason;
 * -ENOMEM. */

#include "common/arena.h"
#include "proto/fields.h"
#include "proto/reader.h"

struct decoding {
    struct reader reader;
    struct arena *arena;
    size_t logprob_rows; /* of a frame; compared with the number of its ids at the end */
};

/* decode_value.c: decodes the value of `field` to `at`. */
int decode_value(struct decoding *decoding, unsigned depth, const struct field *field, void *at,
                 struct error *err);

/* decode.c: decodes a map to the struct at `base`. */
int decode_map(struct decoding *decoding, unsigned depth, const struct field_table *table, void *base,
               struct error *err);

/* Sets the error for bytes that end too early or are not msgpack. */
int decode_broken(struct error *err);

#endif
